package staging

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestParentChangesAfterItsFiles: the directory of targets that were all checked is moved away,
// or another one is put in its place, before the check of that directory itself.
func TestParentChangesAfterItsFiles(t *testing.T) {
	for name, c := range map[string]struct {
		parent string
		stands bool // another directory is in its place
		step   Step
		path   string
	}{
		"new directory moved":         {"fresh/deep", false, StepMissing, "fresh/deep/f1"},
		"new directory replaced":      {"fresh/deep", true, StepVerify, "fresh/deep/f1"},
		"existing directory moved":    {"existing", false, StepMissing, "existing/new"},
		"existing directory replaced": {"existing", true, StepVerify, "existing/new"},
		"empty directory moved":       {"existing/empty", false, StepMissing, "existing/empty/x"},
		"empty directory replaced":    {"existing/empty", true, StepVerify, "existing/empty/x"},
	} {
		t.Run(name, func(t *testing.T) {
			sc := singleCommit(t, t.TempDir())
			at := filepath.Join(sc.root, c.parent)
			last, done := "", false
			err := sc.run(func(op, path string, f func() error) error {
				switch {
				case op == "open":
					last = path
				case op == "look again" && !done && strings.HasPrefix(last, c.parent+"/") && !strings.Contains(last[len(c.parent)+1:], "/"):
					done = true
					must(t, os.Rename(at, filepath.Join(sc.root, "aside")))
					if c.stands {
						must(t, os.Mkdir(at, 0o755))
					}
				}
				return f()
			})
			if !done {
				t.Fatalf("no directory was looked at again: %v", err)
			}
			_ = wantStep(t, err, c.step, c.path)
			for _, artifact := range []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json"} {
				if _, err := os.Lstat(filepath.Join(sc.root, artifact)); !os.IsNotExist(err) {
					t.Errorf("%s: %v", artifact, err)
				}
			}
		})
	}
}
