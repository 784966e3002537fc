package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// serviceManager listens as systemd does for Type=notify.
type serviceManager struct {
	t    *testing.T
	conn *net.UnixConn
}

func listen(t *testing.T, address string) serviceManager {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return serviceManager{t, conn}
}

// checkAcknowledgement returns the next message.
func (m serviceManager) hear() string {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		m.t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := m.conn.Read(buf)
	if err != nil {
		m.t.Fatal(err)
	}
	return string(buf[:n])
}

// silent makes sure that there is no message.
func (m serviceManager) silent() {
	m.t.Helper()
	if err := m.conn.SetReadDeadline(time.Now()); err != nil {
		m.t.Fatal(err)
	}
	if n, err := m.conn.Read(make([]byte, 1)); err == nil {
		m.t.Errorf("a message, of %d bytes or more", n)
	}
}

// TestNotify: a manager is notified when the view is there, and when it is to end, on
// a socket in the file system and on an abstract one.
func TestNotify(t *testing.T) {
	sockets := harness.ShortDir(t)
	for _, address := range []string{filepath.Join(sockets, "socket"), "@" + sockets} {
		t.Run(address[:1], func(t *testing.T) {
			run, dir := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"}), t.TempDir()
			manager := listen(t, address)
			cmd := command(t, "mount", run.Dir, dir)
			serveUnder(t, cmd, manager, dir, address)
			if isMounted(t, dir) {
				t.Error("it is still mounted")
			}
			manager.silent()
		})
	}
}

// serveUnder runs a mount for a manager, from READY to its end by SIGTERM.
func serveUnder(t *testing.T, cmd *exec.Cmd, manager serviceManager, dir, address string) {
	t.Helper()
	cmd.Env = append(cmd.Env, notifyVariable+"="+address)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	if got := manager.hear(); !strings.HasPrefix(got, "READY=1\nSTATUS=1 file, ") || !strings.Contains(got, dir) {
		t.Errorf("it told %q", got)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "a")); err != nil || string(got) != "alpha" {
		t.Errorf("%q, %v", got, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := manager.hear(); got != "STOPPING=1" {
		t.Errorf("it told %q", got)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestNotifyWithoutSocket: a manager that is not there is a warning, and the view is
// served; what is rejected, or serves in the background, tells nothing.
func TestNotifyWithoutSocket(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run-1", map[string]string{"a": "alpha"})
	t.Setenv(notifyVariable, filepath.Join(t.TempDir(), "missing"))
	v := mountView(t, run.Dir)
	if got, err := os.ReadFile(filepath.Join(v.dir, "a")); err != nil || string(got) != "alpha" {
		t.Errorf("%q, %v", got, err)
	}
	if said, err := v.stop(syscall.SIGTERM); err != nil || strings.Count(said, "could not notify the service manager") != 2 {
		t.Errorf("%v: %s", err, said)
	}

	socket, dir := filepath.Join(harness.ShortDir(t), "s"), t.TempDir()
	manager := listen(t, socket)
	t.Setenv(notifyVariable, socket)
	unmountAfter(t, dir)
	must(t, "mount", "--daemon", run.Dir, dir)
	must(t, "umount", dir)
	project.Write("a", "alphA")
	if _, stderr, status := spectrum(t, "mount", run.Dir, dir); status != statusRejected {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	manager.silent()
}

const unitFile = repository + "/contrib/systemd/spectrum-view@.service"

// TestUnit runs the command of the unit as systemd would.
func TestUnit(t *testing.T) {
	raw, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(name, "#") {
			settings[name] = value
		}
	}
	if settings["Type"] != "notify" || settings["TimeoutStartSec"] != "infinity" || settings["EnvironmentFile"] != "/etc/spectrum/%i.conf" {
		t.Errorf("settings %q", settings)
	}
	run, dir := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"}), t.TempDir()
	words := strings.NewReplacer("$OPTIONS", "-o nofail,exec", "${RUN}", run.Dir, "%f", dir).Replace(settings["ExecStart"])
	program, args, _ := strings.Cut(words, " ")
	if program != "/usr/local/bin/spectrum" {
		t.Errorf("program %q", program)
	}
	address := filepath.Join(harness.ShortDir(t), "notify")
	serveUnder(t, command(t, strings.Fields(args)...), listen(t, address), dir, address)
}

// TestUnitVerifies has systemd itself look at the unit, where it is there.
func TestUnitVerifies(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(unitFile)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "/usr/local/bin/spectrum", program)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, filepath.Base(unitFile)), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := runIn(t, dir, "systemd-analyze", "verify", "./spectrum-view@mnt-view.service"); out != "" {
		t.Errorf("systemd says %s", out)
	}
}
