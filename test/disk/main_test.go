package disk

import (
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestMain gives the tests mounts of their own.
func TestMain(m *testing.M) {
	os.Exit(harness.Main(m))
}

// want fails unless the site is in this state.
func want(t *testing.T, site *harness.Site, state harness.State) {
	t.Helper()
	if _, err := site.Check(state); err != nil {
		t.Error(err)
	}
}

// again commits where there is nothing in the way any longer.
func again(t *testing.T, site *harness.Site) {
	t.Helper()
	if r := site.Commit(t, nil); r.Status != 0 {
		t.Errorf("with space again: %v", r)
	}
	want(t, site, harness.After)
}

// codes are those that a full disk may end with. The exit status is that of a fault of the
// machine.
var codes = []string{"RESTORE_INTERNAL_ERROR", "RESTORE_FINALIZE_FAILED", "RESTORE_RESULT_ARTIFACT_WRITE_FAILED"}

// run runs a tool of the system that has to succeed.
func run(t *testing.T, argv ...string) {
	t.Helper()
	out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
}

// filled makes and mounts a file system that is going to be filled.
func filled(t *testing.T, f harness.Format) *harness.Volume {
	t.Helper()
	v := harness.MountedVolume(t, f)
	v.PrepareFill(t)
	return v
}

func wantFull(t *testing.T, r harness.Reply) {
	t.Helper()
	if !slices.Contains(codes, r.Answer.Code) || r.Status != 74 {
		t.Errorf("a full disk ends with %v", r)
	}
}
