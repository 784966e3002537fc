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

// TestUnfinished: what an attempt leaves is found by its name, in the root and
// beside it, and nothing else is taken for one.
func TestUnfinished(t *testing.T) {
	above := t.TempDir()
	path := filepath.Join(above, "root")
	commit, exchange, whole := stagePrefix+uuid.NewString(), exchangePrefix+uuid.NewString(), rootExchangeName("root")
	for _, name := range []string{path, filepath.Join(path, ".spectrum06_staging_x"), filepath.Join(path, "a"), filepath.Join(above, rootExchangeName("other"))} {
		must(t, os.Mkdir(name, 0o700))
	}
	root, parent := openRoot(t, path), openRoot(t, above)
	look := func(parent *pathsafe.Dir, want ...string) {
		t.Helper()
		if got, err := Unfinished(root, parent, "root"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; not %q", got, err, want)
		}
	}
	look(parent)
	look(nil)
	for _, name := range []string{filepath.Join(path, commit), filepath.Join(path, exchange), filepath.Join(above, whole)} {
		must(t, os.Mkdir(name, 0o700))
	}
	look(nil, exchange, commit)
	look(parent, exchange, commit, whole)
	closed, err := pathsafe.OpenRoot(above)
	must(t, errors.Join(err, closed.Close()))
	if got, err := Unfinished(root, closed, "root"); err == nil || got != nil {
		t.Errorf("a parent that cannot be asked: %q", got)
	}
	if got, err := Unfinished(closed, nil, ""); err == nil || got != nil {
		t.Errorf("a root that cannot be asked: %q", got)
	}
}
