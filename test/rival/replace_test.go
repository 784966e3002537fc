package rival

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// writers are what another program does to a file that a commit replaces. What they return has to
// be at the name whenever the commit was undone after that.
var writers = map[string]func(at string) (newest string, err error){
	"save": func(at string) (string, error) {
		return "saved", errors.Join(os.WriteFile(at+".tmp", []byte("saved"), 0o640), os.Rename(at+".tmp", at))
	},
	"edit":   func(at string) (string, error) { return "edited", os.WriteFile(at, []byte("edited"), 0o640) },
	"unlink": func(at string) (string, error) { return "", os.Remove(at) },
	"ln":     func(at string) (string, error) { return "", os.Link(at, at+"-linked") },
}

// TestWriters: a program saves, edits, removes or links a file at every call of a commit that
// replaces it. The commit succeeds or is undone, what the program wrote is there, all other names
// are as before or complete, and the root is not halted.
func TestWriters(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(writers)) {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, killed %v", name, killed), func(t *testing.T) {
				t.Parallel()
				p := harness.New(t, outputs())
				p.Replaces = []string{"out/new.txt", "top.txt"}
				var sum harness.Tally
				trials := 0
				inWindows(t, sample.Thin(t, 37, 4), func(n int) int {
					trials++
					w := &writer{attempt: newAttempt(t, p, fmt.Sprint(trials)), act: writers[name]}
					w.at = filepath.Join(w.Root, p.Replaces[trials%2])
					r := w.commit(t, n, killed)
					if w.acted == 0 {
						return 0
					}
					sum.Add(fmt.Sprint("status ", r.Status))
					w.judge(t, r)
					if w.failed(t, fmt.Sprintf("%s before call %d", name, n), r) {
						return 0
					}
					return n
				})
				t.Log(&sum)
			})
		}
	}
}

// A writer acts once on a file that a commit replaces.
type writer struct {
	*attempt
	at     string
	act    func(at string) (string, error)
	newest string
}

// commit commits with the writer at work before call n; killed: the commit is killed there, the
// writer acts, and the answer is that of the recovery.
func (w *writer) commit(t *testing.T, n int, killed bool) harness.Reply {
	t.Helper()
	act := func() {
		var err error
		if w.newest, err = w.act(w.at); !errors.Is(err, os.ErrNotExist) {
			harness.Must(t, err)
			w.acted++
		}
	}
	plan := sysfault.Plan{N: n, Match: w.names, Before: func(sysfault.Call) { act() }}
	if killed {
		plan.Kill, plan.Before = true, nil
	}
	r := wantEnd(t, w.Project.Run(t, &plan, harness.CommitArgs(w.Preview(t))...))
	if !killed || r.Status < 128 {
		return r
	}
	act()
	return wantEnd(t, w.Recover(t, nil))
}

func (w *writer) judge(t *testing.T, r harness.Reply) {
	t.Helper()
	if r.Status != 0 && !refused(r) {
		t.Errorf("exit status %d", r.Status)
	}
	undone := []string{"RESTORE_FINALIZE_FAILED", "RESTORE_HASH_MISMATCH_AFTER_RESTORE", "RESTORE_OUTPUT_MISSING_AFTER_RESTORE"}
	if r.Status == 1 && !slices.Contains(undone, r.Answer.Code) {
		t.Errorf("code %s", r.Answer.Code)
	}
	if again := wantEnd(t, w.Recover(t, nil)); again.Status != 0 {
		t.Errorf("recover: %v", again)
	}
	is := harness.MustTake(t, w.Root)
	if got, err := os.ReadFile(w.at); w.newest != "" && (err != nil || string(got) != w.newest) {
		t.Errorf("%q is at the name, not %q (%v)", got, w.newest, err)
	}
	own, err := filepath.Rel(w.Root, w.at)
	harness.Must(t, err)
	before, after := maps.Clone(w.Before), maps.Clone(w.After)
	for _, tree := range []harness.Tree{is, before, after} {
		for name := range tree {
			if name == own || name == own+"-linked" || strings.HasPrefix(name, "spectrum-kept-") || strings.HasPrefix(name, harness.Lock) {
				delete(tree, name)
			}
		}
	}
	if d := harness.Diff(before, is); d != "" && harness.Diff(after, is) != "" {
		t.Errorf("the root is neither as before nor complete:\n%s", d)
	}
}
