package staging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// moved is a transaction on a resetFixture after Move.
func (f *resetFixture) moved(l *session) (*Tx, error) {
	tx, err := l.Plan(f.e.change())
	must(f.t, err)
	must(f.t, tx.Begin())
	must(f.t, tx.Stage(context.Background(), f.e.stage))
	return tx, tx.Move(context.Background())
}

// TestCloseByRecovery: an attempt is killed between Commit and Close. Every old entry is still in
// staging then, also after Resolve, until Forget removes it.
func TestCloseByRecovery(t *testing.T) {
	for _, c := range resetCases {
		f := c.make(t, filepath.Join(t.TempDir(), "x"))
		f.before = f.see(f.above)
		old := ""
		must(t, f.session(nil, func(l *session) error {
			tx, err := f.moved(l)
			must(t, err)
			old = f.at(filepath.Join(tx.Staging(), oldsName))
			must(t, tx.Commit())
			var none error
			tx.Abort(&none)
			return none
		}))
		f.wantDisplaced(old)
		must(t, f.session(nil, func(l *session) error {
			all, err := l.Unfinished()
			must(t, err)
			if len(all) != 1 || all[0].Kind != "rollback" {
				t.Fatalf("%v", all)
			}
			defer all[0].Close()
			out, err := all[0].Resolve(t.Context(), Automatic)
			must(t, err)
			if out.Result != Completed {
				t.Errorf("%s: %v, want Completed", c.name, out.Result)
			}
			f.wantDisplaced(old)
			_, err = all[0].Forget()
			return err
		}))
		f.is(f.after(), "asked for")
	}
}

// wantDisplaced requires the old entry of each swap in a directory, by the number of the swap.
func (f *resetFixture) wantDisplaced(dir string) {
	f.t.Helper()
	for i, s := range f.e.Swaps {
		if _, err := os.Lstat(filepath.Join(dir, strconv.Itoa(i))); (s.Old != nil) != (err == nil) {
			f.t.Errorf("%q, number %d: %v", s.Path, i, err)
		}
	}
}

// TestCallerErrorUndoes: an error of the caller is that of the step that it comes after, and undoes
// everything. Without an error the journal stays. After Commit nothing is undone.
func TestCallerErrorUndoes(t *testing.T) {
	mine := errors.New("mine")
	resetFixture := func() *resetFixture {
		f := mixedReset(t, filepath.Join(t.TempDir(), "x"))
		f.before = f.see(f.above)
		return f
	}
	f := resetFixture()
	must(t, f.session(nil, func(l *session) error {
		tx, err := l.Plan(f.e.change())
		must(t, err)
		err = mine
		tx.Abort(&err)
		if e := wantStep(t, err, StepBegin, ""); e.Attempt != "" || !errors.Is(err, mine) {
			t.Error(err)
		}
		return nil
	}))
	f.is(f.before, "before")
	must(t, f.session(nil, func(l *session) error {
		tx, err := f.moved(l)
		must(t, err)
		if tx.Close() == nil {
			t.Error("closed before it was committed")
		}
		err = mine
		tx.Abort(&err)
		if e := wantStep(t, err, StepVerify, ""); e.Attempt != tx.Attempt() || e.Staging != tx.Staging() || e.Rollback != nil || !errors.Is(err, mine) {
			t.Error(err)
		}
		return nil
	}))
	f.is(f.before, "before")
	must(t, f.session(nil, func(l *session) error {
		tx, err := f.moved(l)
		tx.Abort(&err)
		return err
	}))
	if f.settle(Automatic) != RolledBack {
		t.Error("nothing was left to be resolved")
	}
	f = resetFixture()
	must(t, f.session(nil, func(l *session) error {
		tx, err := f.moved(l)
		must(t, err)
		must(t, tx.Commit())
		must(t, tx.Close())
		err = mine
		if tx.Abort(&err); !errors.Is(err, mine) || errors.As(err, new(*Error)) {
			t.Error(err)
		}
		return nil
	}))
	f.is(f.after(), "asked for")
}

// TestPlanRejects: a commit has files and then artifacts, and nothing else.
func TestPlanRejects(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	good := sc.spec.change()
	n := len(good.Swaps)
	for name, spoil := range map[string]func(c *Change){
		"a file last":  func(c *Change) { c.Swaps[0], c.Swaps[n-1] = c.Swaps[n-1], c.Swaps[0] },
		"a tree":       func(c *Change) { c.Swaps[0].New = Tree{} },
		"nothing":      func(c *Change) { c.Swaps[0].New = nil },
		"other kind":   func(c *Change) { c.Kind = "rollback" },
		"no such kind": func(c *Change) { c.Kind = "Commit" },
	} {
		c := good
		c.Swaps = slices.Clone(good.Swaps)
		spoil(&c)
		l, err := enter(t.Context(), sc.dir, testKey, &sysHook{})
		must(t, err)
		if tx, err := l.Plan(c); tx != nil || failure(t, err).Step != StepBegin {
			t.Errorf("%s: %v", name, err)
		}
		l.Close()
	}
	f := mixedReset(t, filepath.Join(t.TempDir(), "x"))
	f.e.stage = nil
	_ = wantStep(t, f.run(nil), StepStage, "")
	f.is(f.before, "before")
}
