package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// Trials are a project, a directory for the restore roots of its trials, and their
// counts.
type trials struct {
	*harness.Project
	dir string
	harness.Tally
}

func newTrials(t *testing.T, dir string, runs ...harness.Files) *trials {
	t.Helper()
	return &trials{Project: harness.NewIn(t, dir, runs...), dir: dir}
}

func (tr *trials) site(t *testing.T, name ...any) *harness.Site {
	t.Helper()
	return tr.Site(t, filepath.Join(tr.dir, strings.ReplaceAll(fmt.Sprintln(name...), "\n", "")))
}
