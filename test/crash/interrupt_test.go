package crash

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestInterruptCommit asks a commit to end before its calls: it goes on to its end or
// rolls back by itself, says which, and leaves nothing to recover.
func TestInterruptCommit(t *testing.T) {
	sum := sweep(t, sample.Thin(t, 43, 3), restoring(harness.Single()), func(t *testing.T, tr *trials, n int) bool {
		s := tr.site(t, n)
		r := s.Commit(t, harness.Interrupt(n, s.Beneath(harness.Changing)))
		if r.Fault.Fired == 0 {
			return false
		}
		done, err := harness.Interrupted(r)
		want := harness.Before
		if done {
			want = harness.After
		}
		_, wrong := s.Check(want)
		if err := errors.Join(err, wrong, nothingToRecover(t, s), s.Ended()); err != nil {
			t.Errorf("before %s: %v\n%v", s.Last(r), r, err)
		}
		tr.Add(want.String() + map[bool]string{true: ", rolled back"}[strings.Contains(r.Stderr, "rolled back")])
		s.Remove(t)
		return true
	})
	sum.Demand(t, "before, rolled back", "after")
}

// nothingToRecover checks that a recovery finds nothing.
func nothingToRecover(t *testing.T, s *harness.Site) error {
	t.Helper()
	r := s.Recover(t, nil)
	if r.Status != 0 || !strings.Contains(r.Stdout, `"attempts":[]`) {
		return fmt.Errorf("there was something to recover: %v", r)
	}
	return nil
}

// TestInterruptTruth asks commands to end at any of their calls, where they first have to
// end what a kill has left, and where they have not. One that says that nothing was
// changed has changed nothing, in the root or in the state directory; one that has ended
// what was left says that, and that alone is why the root is another one.
func TestInterruptTruth(t *testing.T) {
	rollback := func(t *testing.T, s *harness.Site) []string {
		if r := s.Commit(t, nil); r.Status != 0 {
			t.Fatal(r)
		}
		var list struct {
			Savepoints []struct{ Attempt string } `json:"savepoints"`
		}
		harness.Must(t, json.Unmarshal([]byte(s.Project.Must(t, "savepoint", "list", "--json", s.Root).Stdout), &list))
		return []string{"rollback", list.Savepoints[0].Attempt}
	}
	type scenario struct {
		name    string
		killed  string // the moment; "" for none
		command func(t *testing.T, s *harness.Site) []string
	}
	var sum harness.Tally
	for _, c := range sample.Pick(t, 3, []scenario{
		{"preview", "prepared", func(_ *testing.T, s *harness.Site) []string {
			return []string{"preview", "-q", "--restore-root", s.Root, s.Project.Runs[0].Dir}
		}},
		{"preview of what is complete", "committed", func(_ *testing.T, s *harness.Site) []string {
			return []string{"preview", "-q", "--restore-root", s.Root, s.Project.Runs[0].Dir}
		}},
		{"recover", "all in place", func(_ *testing.T, s *harness.Site) []string { return []string{"recover", s.Root} }},
		{"snapshot", "half reported", func(_ *testing.T, s *harness.Site) []string { return []string{"snapshot", "take", s.Root} }},
		{"commit", "", func(t *testing.T, s *harness.Site) []string {
			return []string{"commit", "--preview", s.Preview(t), "--approve", harness.Statement}
		}},
		{"rollback", "", rollback},
	}) {
		t.Run(c.name, func(t *testing.T) {
			stride := sample.Random(t, sample.Of(239, 83, 5))
			harness.TakeTurns(t, harness.Turns(t.Name(), harness.Grounds()), stride, func(t *testing.T, g harness.Ground, own sample.Stride) {
				dir := g.Dir(t)
				for i, fired := 0, true; fired; i++ {
					tr := newTrials(t, makeDir(t, dir, i), harness.Small())
					rollback(t, tr.site(t, "first")) // what is made once is there
					s := tr.site(t, "root")
					harness.Must(t, os.RemoveAll(filepath.Join(s.Root, harness.ForeignStaging))) // no snapshot is taken with it
					for _, m := range moments {
						if m.name == c.killed {
							killedAt(t, s, m)
						}
					}
					args := c.command(t, s)
					root, state := tree(t, s.Root), exactly(t, tr.State)
					r := tr.Run(t, harness.Interrupt(own.At(i), s.Beneath(harness.Anything)), args...)
					fired = r.Fault.Fired > 0
					said, err := tr.saidTruly(t, s, r, root, state)
					if err != nil {
						t.Fatalf("before %s: %v\n%v", s.Last(r), err, r)
					}
					sum.Add(said)
				}
			})
		})
	}
	sum.Demand(t, "changed", "unchanged", "done")
}

// saidTruly holds what an interrupted command has said against what is there.
func (tr *trials) saidTruly(t *testing.T, s *harness.Site, r harness.Reply, root, state []string) (said string, err error) {
	t.Helper()
	done, err := harness.Interrupted(r)
	if done || err != nil {
		return "done", err
	}
	if now := tree(t, s.Root); !strings.Contains(r.Stderr, "interrupted: an unfinished commit was found and ") && !slices.Equal(now, root) {
		return "", fmt.Errorf("the root has %q, and had %q", now, root)
	}
	if !strings.Contains(r.Stderr, "interrupted: "+harness.Unchanged) {
		return "changed", nil
	}
	if now := exactly(t, tr.State); !slices.Equal(now, state) {
		return "", fmt.Errorf("the state directory is another one:\n%q\n%q", state, now)
	}
	return "unchanged", nil
}

// makeDir makes a directory for one trial.
func makeDir(t *testing.T, dir string, n int) string {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprint("trial ", n))
	harness.Must(t, os.Mkdir(path, 0o755))
	return path
}

// exactly is all that is beneath a directory, with its contents.
func exactly(t *testing.T, dir string) (things []string) {
	t.Helper()
	all, err := harness.Take(dir)
	harness.Must(t, err)
	for name, thing := range all {
		things = append(things, fmt.Sprint(name, thing))
	}
	slices.Sort(things)
	return things
}

// TestInterruptReaders asks commands to end that change nothing, or make one thing, at
// any of their calls: nothing of it is left, unless it is whole.
func TestInterruptReaders(t *testing.T) {
	sum := onGrounds(t, sample.Thin(t, 53, 3), restoring(harness.Single()), func(t *testing.T, tr *trials, own sample.Stride) {
		s := tr.site(t, "root")
		sealed := filepath.Join(tr.Dir, "CONTRACTS/_runs/sealed")
		key := filepath.Join(filepath.Dir(tr.State), "key.pem")
		for _, args := range [][]string{
			{"verify", "--json", tr.Runs[0].Dir},
			{"verify", "--law", "resume", tr.Runs[0].Dir},
			{"preview", "--json", "--restore-root", s.Root, "--html", filepath.Join(tr.dir, "page.html"), tr.Runs[0].Dir},
			{"seal", "--json", "--key", key, "--run-dir", sealed, filepath.Join(tr.Dir, "out")},
		} {
			t.Run(args[0]+" "+args[1], func(t *testing.T) {
				before := tree(t, tr.Dir)
				about := func(c sysfault.Call) bool { return harness.Inside(c.Path, tr.Dir) || harness.Inside(c.Path, tr.State) }
				for i := 0; ; i++ { // one at a time: they make the same
					r := tr.Run(t, harness.Interrupt(own.At(i), about), args...)
					if !tr.interrupted(t, s, r, before, sealed) || r.Fault.Fired == 0 {
						break
					}
				}
			})
		}
	})
	sum.Demand(t, "interrupted verify", "interrupted seal", "interrupted preview")
}

// interrupted checks what is left of a command that was asked to end, and removes what
// it has made.
func (tr *trials) interrupted(t *testing.T, s *harness.Site, r harness.Reply, before []string, sealed string) bool {
	t.Helper()
	done, err := harness.Interrupted(r)
	tr.Add(map[bool]string{true: "done ", false: "interrupted "}[done] + r.Args[0])
	for path, made := range map[string]bool{sealed: r.Args[0] == "seal" && done, filepath.Join(tr.dir, "page.html"): r.Args[0] == "preview" && done} {
		if _, missing := os.Lstat(path); (missing == nil) != made {
			err = errors.Join(err, fmt.Errorf("%q is there: %v", path, missing == nil))
		}
		err = errors.Join(err, os.RemoveAll(path))
	}
	if got := tree(t, tr.Dir); !slices.Equal(got, before) {
		err = errors.Join(err, fmt.Errorf("the project has %q, and had %q", got, before))
	}
	_, wrong := s.Check(harness.Before)
	if err := errors.Join(err, wrong); err != nil {
		t.Errorf("before %s: %v\n%v", s.Last(r), r, err)
	}
	return !t.Failed()
}

// tree are the names of all that is beneath a directory.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	all := harness.MustTake(t, dir)
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
