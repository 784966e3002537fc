package attack

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

const readerEnv = "ATTACK_VIEW_READER"

// init is where the test binary goes on when it was started as a reader of a view: it
// holds as many handles of status.json as it can have contents, and of the root as
// directory; then it starts readers of "latest", and kills them.
func init() {
	dir, ok := os.LookupEnv(readerEnv)
	if !ok {
		return
	}
	_ = unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 20000, Max: 20000})
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	runs, err := os.ReadDir(dir)
	fail(err)
	for _, run := range runs { // from now on it is in status.json
		_, _ = os.Lstat(filepath.Join(dir, run.Name()))
	}
	for i := range sample.Of(500, 500, 1500) {
		_, err := unix.Open(filepath.Join(dir, ".spectrum/status.json"), unix.O_PATH, 0)
		fail(err)
		_, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		fail(err)
		if i%10 == 0 { // or the contents would be the same
			_, _ = os.ReadFile(filepath.Join(dir, "run-001", fmt.Sprintf("f%d", i/10)))
		}
	}
	for range 40 {
		cmd := exec.Command("readlink", filepath.Join(dir, "latest"))
		fail(cmd.Start())
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	fmt.Println("done")
	os.Exit(0)
}

// TestReadersDoNotGrowTheServer: another user, whom --allow-other lets in, holds as many
// handles of a view of many runs as he can. The server's memory stays what it was, but
// for what is bounded.
func TestReadersDoNotGrowTheServer(t *testing.T) { victims(t, readersDoNotGrow) }

func readersDoNotGrow(t *testing.T, uid int) {
	files := harness.Files{}
	for i := range 150 {
		files[fmt.Sprintf("f%d", i)] = fmt.Sprint("content ", i)
	}
	p := harness.New(t, files)
	runs := filepath.Dir(p.Runs[0].Dir)
	for i := range 300 { // names that make status.json long; they are rejected when they are entered
		harness.Must(t, os.Mkdir(filepath.Join(runs, fmt.Sprintf("%03d-%s", i, strings.Repeat("n", 200))), 0o755))
	}
	p.Runs[0].Dir = runs
	dir := open(t)
	give(t, p, uid, dir)
	letOthersIn(t)
	v := p.MountOn(t, dir, harness.Mounting{Flags: []string{"--all", "--allow-other"}})
	before := residentOf(t, v.Server.Pid)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), readerEnv+"="+v.Dir)
	cmd.SysProcAttr = harness.AsNobody()
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "done\n" {
		t.Fatalf("%v: %s", err, out)
	}
	bound := int64(sample.Of(32, 32, 64)) << 20 // without bounds the handles take more
	if after := peakResidentOf(t, v.Server.Pid); after > before+bound {
		t.Errorf("the server grew from %d to %d MiB", before>>20, after>>20)
	}
	var status struct {
		Runs map[string]any `json:"runs"`
	}
	raw, err := os.ReadFile(v.Path(".spectrum/status.json"))
	if err != nil || json.Unmarshal(raw, &status) != nil || len(status.Runs) != 301 {
		t.Errorf("status.json names %d runs: %v", len(status.Runs), err)
	}
}

func residentOf(t *testing.T, pid int) int64     { return memoryOf(t, pid, "VmRSS:") }
func peakResidentOf(t *testing.T, pid int) int64 { return memoryOf(t, pid, "VmHWM:") }

func memoryOf(t *testing.T, pid int, field string) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	harness.Must(t, err)
	for line := range strings.Lines(string(raw)) {
		var kib int64
		if rest, ok := strings.CutPrefix(line, field); ok {
			_, err := fmt.Sscan(rest, &kib)
			harness.Must(t, err)
			return kib << 10
		}
	}
	t.Fatalf("process %d has no %s", pid, field)
	return 0
}

// letOthersIn has every user mount with allow_other, in the mounts of these tests.
func letOthersIn(t *testing.T) {
	t.Helper()
	conf := filepath.Join(open(t), "fuse.conf")
	harness.Must(t, os.WriteFile(conf, []byte("user_allow_other\n"), 0o644))
	harness.Must(t, unix.Mount(conf, "/etc/fuse.conf", "", unix.MS_BIND, ""))
	t.Cleanup(func() { harness.Must(t, unix.Unmount("/etc/fuse.conf", 0)) })
}
