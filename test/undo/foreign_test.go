package undo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestTakeOfOthers: an ordinary user who takes a snapshot is shown at once what of it he will
// not be able to restore; what is all his own is not mentioned.
func TestTakeOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("files of other users need root")
	}
	for _, format := range kindsOfVolumes() {
		t.Run(format.Name, func(t *testing.T) {
			volume := harness.MountedVolume(t, format).Path
			harness.LetOthersIn(t, volume)
			dir := filepath.Join(volume, "own")
			harness.Must(t, os.MkdirAll(filepath.Join(dir, "state"), 0o700))
			harness.Must(t, os.MkdirAll(filepath.Join(dir, "root", "sub"), 0o755))
			harness.Must(t, os.WriteFile(filepath.Join(dir, "root", "sub", "mine"), nil, 0o644))
			harness.GiveToNobody(t, dir)
			own := *project(t)
			own.State, own.Dir = filepath.Join(dir, "state"), filepath.Join(harness.MemoryDir(t), "project")
			harness.LetOthersIn(t, filepath.Dir(own.Dir))
			take := func() harness.Reply {
				t.Helper()
				r := own.RunAsNobody(t, "snapshot", "take", "--json", filepath.Join(dir, "root"))
				if r.Status != 0 {
					t.Fatal(r)
				}
				return r
			}
			if r := take(); strings.Contains(r.Stderr, "only root can restore") || !strings.Contains(r.Stdout, `"needs_root":[]`) {
				t.Errorf("all his own: %v", r)
			}
			harness.Must(t, os.WriteFile(filepath.Join(dir, "root", "sub", "theirs"), nil, 0o644))
			if r := take(); !strings.Contains(r.Stderr, "only root can restore") || !strings.Contains(r.Stdout, `"needs_root":["sub/theirs"]`) {
				t.Errorf("a file of root: %v", r)
			}
		})
	}
}
