package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// Trials are a project, a directory for the restore roots of its trials, and their
// counts.
type trials struct {
	*harness.Project
	dir string
	*harness.Tally
}

func newTrials(t *testing.T, dir string, runs ...harness.Files) *trials {
	t.Helper()
	return &trials{Project: harness.NewIn(t, dir, runs...), dir: dir, Tally: new(harness.Tally)}
}

// A maker makes trials in a directory.
type maker func(t *testing.T, dir string) *trials

// restoring makes trials of commits of these runs.
func restoring(runs ...harness.Files) maker {
	return func(t *testing.T, dir string) *trials {
		t.Helper()
		return newTrials(t, dir, runs...)
	}
}

// onGrounds has the grounds take turns in the trials of a stride, in a sample one, which follows from
// the seed and the name of the test. The trials on a ground have a project of their own there. It
// returns the counts of all.
func onGrounds(t *testing.T, s sample.Stride, made maker, on func(t *testing.T, tr *trials, own sample.Stride)) *harness.Tally {
	t.Helper()
	sum := new(harness.Tally)
	harness.TakeTurns(t, harness.Turns(t.Name(), harness.Grounds()), s, func(t *testing.T, g harness.Ground, own sample.Stride) {
		tr := made(t, g.Dir(t))
		tr.Tally = sum
		on(t, tr, own)
	})
	return sum
}

// sweep runs trials on the grounds, until one reports that there is no such case.
func sweep(t *testing.T, s sample.Stride, made maker, trial func(t *testing.T, tr *trials, n int) bool) *harness.Tally {
	t.Helper()
	return onGrounds(t, s, made, func(t *testing.T, tr *trials, own sample.Stride) {
		harness.Sweep(t, own, func(t *testing.T, n int) bool { return trial(t, tr, n) })
	})
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
