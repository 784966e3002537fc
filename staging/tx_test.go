package staging

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
)

// moved is a transaction on a fair after Move.
func (f *fair) moved(l *session) (*Tx, error) {
	tx, err := l.Plan(f.e.change())
	must(f.t, err)
	must(f.t, tx.Begin())
	must(f.t, tx.Stage(context.Background(), f.e.stage))
	return tx, tx.Move(context.Background())
}

// TestDisplaced: what was displaced is listed alike before Close and after a crash, each thing
// once, in the order of the swaps; what had gone by itself is not there.
func TestDisplaced(t *testing.T) {
	for _, c := range fairs {
		f := c.make(t, filepath.Join(t.TempDir(), "x"))
		f.before = f.see(f.above)
		var want []Displaced
		must(t, f.session(nil, func(l *session) error {
			tx, err := f.moved(l)
			must(t, err)
			dir, all := tx.Displaced()
			want = all
			for _, d := range all {
				if _, err := dir.Lstat(d.Name); err != nil {
					t.Error(err)
				}
			}
			must(t, tx.Commit())
			var none error
			tx.Abort(&none)
			return none
		}))
		goes := 0
		for _, s := range f.e.Swaps {
			if s.Old != nil {
				goes++
			}
		}
		if len(want) != goes {
			t.Errorf("%s: %d are displaced, want %d", c.name, len(want), goes)
		}
		must(t, f.session(nil, func(l *session) error {
			all, err := l.Unfinished()
			must(t, err)
			if len(all) != 1 || all[0].Kind != "rollback" {
				t.Fatalf("%v", all)
			}
			defer all[0].Close()
			if _, none := all[0].Displaced(); none != nil {
				t.Errorf("before it is resolved: %v", none)
			}
			_, err = all[0].Resolve(t.Context(), Automatic)
			must(t, err)
			dir, again := all[0].Displaced()
			if !slices.Equal(again, want) {
				t.Errorf("%v, want %v", again, want)
			}
			for _, d := range again {
				if _, err := dir.Lstat(d.Name); err != nil {
					t.Error(err)
				}
			}
			_, err = all[0].Forget()
			return err
		}))
		f.is(f.after(), "asked for")
	}
}

// TestCallerErrorUndoes: an error of the caller is that of the step that it comes after, and undoes
// everything. Without an error the journal stays. After Commit nothing is undone.
func TestCallerErrorUndoes(t *testing.T) {
	mine := errors.New("mine")
	fair := func() *fair {
		f := mixedFair(t, filepath.Join(t.TempDir(), "x"))
		f.before = f.see(f.above)
		return f
	}
	f := fair()
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
	f = fair()
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
	sc := singleScene(t, t.TempDir())
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
	f := mixedFair(t, filepath.Join(t.TempDir(), "x"))
	f.e.stage = nil
	_ = wantStep(t, f.run(nil), StepStage, "")
	f.is(f.before, "before")
}
