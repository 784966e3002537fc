package attack

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

const leaseEnv = "ATTACK_LEASES"

// init is where the test binary goes on as a process that takes a lease on each of some files,
// and gives none up.
func init() {
	paths, ok := os.LookupEnv(leaseEnv)
	if !ok {
		return
	}
	signal.Ignore(unix.SIGIO)
	for path := range strings.SplitSeq(paths, "\n") {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_WRLCK)
		}
		if err != nil {
			fmt.Println(path, err)
			os.Exit(1)
		}
	}
	fmt.Println("held")
	select {}
}

// lease has a user hold leases on files.
func lease(t *testing.T, uid uint32, paths ...string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{leaseEnv + "=" + strings.Join(paths, "\n")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("no lease: %q, %v", line, err)
	}
}

// TestLeases: another user holds leases on files of his in the root and gives none up. Every
// command that reads them says what it waits for, and Ctrl-C ends it at once, with nothing
// changed; without Ctrl-C there is one wait for all of them, after which the kernel has taken
// them away.
func TestLeases(t *testing.T) {
	needRoot(t)
	for _, name := range []string{"Ctrl-C", "wait"} {
		t.Run(name, func(t *testing.T) {
			if name == "wait" { // it takes 45 seconds
				sample.Need(t, sample.Sweep)
			}
			l := newLodger(t, 0)
			for i := range 5 {
				l.write(t, fmt.Sprintf("u/more%d", i), "more")
			}
			own(t, alice, filepath.Join(l.root, "u"))
			before := filesIn(t, l.root)
			var paths []string
			for name := range before {
				if path := filepath.Join(l.root, name); strings.HasPrefix(name, "u/") && before[name] != "no file" {
					paths = append(paths, path)
				}
			}
			lease(t, alice, paths...)
			argv := l.p.Argv("snapshot", "restore", l.snapshot)
			cmd := exec.Command(argv[0], argv[1:]...)
			stderr, err := cmd.StderrPipe()
			harness.Must(t, err)
			begun := time.Now()
			harness.Must(t, cmd.Start())
			lines, said := bufio.NewScanner(stderr), ""
			for lines.Scan() {
				said += lines.Text() + "\n"
				if name == "Ctrl-C" && strings.Contains(lines.Text(), "waiting for u/") {
					harness.Must(t, cmd.Process.Signal(os.Interrupt))
				}
			}
			_ = cmd.Wait()
			took, status := time.Since(begun), cmd.ProcessState.ExitCode()
			if !strings.Contains(said, "waiting for u/") {
				t.Errorf("it does not say what it waits for: %s", said)
			}
			if name == "wait" {
				if status != 0 || took > time.Minute || harness.ReadFile(t, filepath.Join(l.root, "u/a")) != "a" {
					t.Errorf("exit %d after %v: %s", status, took, said)
				}
				return
			}
			if status != 130 || took > 20*time.Second {
				t.Errorf("exit %d after %v: %s", status, took, said)
			}
			if now := names(filesUnread(t, l.root)); now != names(before) {
				t.Errorf("%v, was %v", now, names(before))
			}
		})
	}
}

// filesUnread is filesIn that opens no file.
func filesUnread(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	harness.Must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		all[rel] = ""
		return err
	}))
	return all
}

func names(all map[string]string) string {
	only := map[string]string{}
	for name := range all {
		only[name] = ""
	}
	return fmt.Sprint(only)
}
