package verify_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// TestNoDescriptors verifies a good bundle with fewer and fewer descriptors.
// That this machine has none left is not a verdict on the bundle.
func TestNoDescriptors(t *testing.T) {
	r := newRun(t)
	project, err := pathsafe.OpenRoot(r.Root)
	must(t, err)
	defer project.Close()
	laws := map[string]func(run *verify.Run) error{
		"strict": func(run *verify.Run) error { _, err := verify.Strict(t.Context(), run, verify.Watch{}); return err },
		"gate":   func(run *verify.Run) error { _, err := verify.Gate(t.Context(), run, verify.Watch{}); return err },
		"resume": func(run *verify.Run) error { return verify.Resume(t.Context(), run, "", verify.Watch{}) },
		"memory": func(run *verify.Run) error { return verify.Memory(t.Context(), []*verify.Run{run}, verify.Watch{}) },
	}
	for name, law := range laws {
		failed := 0
		for limit := uint64(3); limit < 200; limit++ {
			err := withDescriptors(t, limit, func() error { return openAnd(project, r.Dir, law) })
			if err == nil {
				break
			}
			var reject *verify.Reject
			if failed++; errors.As(err, &reject) || !errors.Is(err, syscall.EMFILE) {
				t.Errorf("%s, %d descriptors: %v", name, limit, err)
			}
		}
		if failed < 3 || failed > 190 {
			t.Errorf("%s: failed %d times", name, failed)
		}
	}
}

// TestNoDescriptorForAnOutput: they run out when the first output has been
// read. The second one is not missing because of that.
func TestNoDescriptorForAnOutput(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	run := openRuns(t, newRun(t))[0]
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	watch := verify.Watch{Hashed: func(int64) {
		must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}))
	}}
	_, err := verify.Strict(t.Context(), run, watch)
	var reject *verify.Reject
	if errors.As(err, &reject) || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("%v", err)
	}
}

func openAnd(project *pathsafe.Dir, dir string, law func(*verify.Run) error) error {
	run, err := verify.OpenRun(project, dir)
	if err != nil {
		return err
	}
	defer run.Close()
	return law(run)
}

// withDescriptors calls f while no descriptor may have a number of limit or
// more.
func withDescriptors(t *testing.T, limit uint64, f func() error) error {
	t.Helper()
	var before unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: before.Max}))
	defer func() { must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) }()
	return f()
}

// TestNoDescriptorIsLeft by any verdict.
func TestNoDescriptorIsLeft(t *testing.T) {
	r := newRun(t)
	project, err := pathsafe.OpenRoot(r.Root)
	must(t, err)
	defer project.Close()
	law := func(run *verify.Run) error { _, err := verify.Strict(t.Context(), run, verify.Watch{}); return err }
	must(t, openAnd(project, r.Dir, law))
	before := len(harness.OpenFiles(t, os.Getpid()))
	for _, f := range strictFaults {
		r := newRunIn(t, r)
		spoil(r, f)
		_ = openAnd(project, r.Dir, law)
	}
	if after := len(harness.OpenFiles(t, os.Getpid())); after != before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// newRunIn makes the run's project as good as new.
func newRunIn(t testing.TB, r *bundletest.Run) *bundletest.Run {
	t.Helper()
	must(t, os.RemoveAll(at(r, "dist")))
	must(t, os.RemoveAll(r.Dir))
	return r.Project.Run("run-1", map[string]string{"dist/a": "aaa", "dist/b": "bbb"})
}

// TestUnreadable runs this test binary as a user without rights: a file that
// it may not read is missing, and an artifact malformed.
func TestUnreadable(t *testing.T) {
	if dir := os.Getenv("VERIFY_AS_NOBODY"); dir != "" {
		r := &bundletest.Run{Project: &bundletest.Project{T: t, Root: dir}, Dir: filepath.Join(dir, "CONTRACTS/_runs/run-1")}
		_, err := strict(t, r)
		t.Logf("verdict: %v", err)
		return
	}
	if os.Geteuid() != 0 {
		t.Skip("only root may become another user")
	}
	r := newRun(t)
	must(t, os.Chmod(filepath.Dir(r.Root), 0o755))
	asNobody(t, r, "verdict: <nil>")
	must(t, os.Chmod(at(r, "dist/a"), 0o000))
	asNobody(t, r, "OUTPUT_MISSING")
	must(t, os.Chmod(at(r, "dist/a"), 0o644))
	must(t, os.Chmod(at(r, "dist"), 0o600))
	asNobody(t, r, "OUTPUT_MISSING")
	must(t, os.Chmod(r.Path("STATUS.json"), 0o000))
	asNobody(t, r, "ARTIFACT_MALFORMED: STATUS.json")
}

func asNobody(t *testing.T, r *bundletest.Run, verdict string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestUnreadable$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = []string{"VERIFY_AS_NOBODY=" + r.Root, "TMPDIR=" + os.TempDir()}
	cmd.SysProcAttr = harness.AsNobody()
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), verdict) {
		t.Errorf("want %q (%v):\n%s", verdict, err, out)
	}
}
