package staging

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// TestLeftovers: what an attempt leaves in a root is found by its name, and nothing else
// is taken for one.
func TestLeftovers(t *testing.T) {
	path := t.TempDir()
	commit, reset := stagePrefix+uuid.NewString(), resetPrefix+uuid.NewString()
	for _, name := range []string{".spectrum06_staging_x", "a", reset + "0"} {
		must(t, os.Mkdir(filepath.Join(path, name), 0o700))
	}
	root := openRoot(t, path)
	look := func(want ...string) {
		t.Helper()
		if got, err := Leftovers(root); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; not %q", got, err, want)
		}
	}
	look()
	for _, name := range []string{commit, reset} {
		must(t, os.Mkdir(filepath.Join(path, name), 0o700))
	}
	look(reset, commit)
	closed, err := pathsafe.OpenRoot(path)
	must(t, errors.Join(err, closed.Close()))
	if got, err := Leftovers(closed); err == nil || got != nil {
		t.Errorf("a root that cannot be asked: %q", got)
	}
}
