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
	return tr.Site(t, tr.at(name...))
}

func (tr *trials) at(name ...any) string {
	return filepath.Join(tr.dir, strings.TrimSuffix(fmt.Sprintln(name...), "\n"))
}

// aloneIn is site with a state directory of its own, as it was when the project was signed. A
// recovery looks at what earlier trials have left in a state directory: a sweep of its calls
// would go on as long as each trial adds some.
func (tr *trials) aloneIn(t *testing.T, name ...any) *harness.Site {
	t.Helper()
	p := *tr.Project
	p.State = tr.at(append(name, "state")...)
	harness.CopyAll(t, tr.State, p.State)
	return p.Site(t, tr.at(name...))
}

// remove removes a site of aloneIn, after a look at its audit log.
func (tr *trials) remove(t *testing.T, s *harness.Site) {
	t.Helper()
	s.Project.CheckAudit(t)
	s.Remove(t)
	harness.Must(t, os.RemoveAll(s.Project.State))
}
