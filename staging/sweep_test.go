package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// A fault is one way for a call to fail: before it did anything, or after.
type fault struct {
	err   error
	after bool
}

func (f fault) String() string { return fmt.Sprintf("%v after=%v", f.err, f.after) }

var faults = []fault{{unix.EIO, false}, {unix.ENOSPC, false}, {unix.EIO, true}}

// others are errors that take no other way than these, as long as nothing looks
// for one of them.
var others = []fault{
	{unix.EACCES, false}, {unix.EROFS, false}, {unix.EDQUOT, false}, {unix.EMFILE, false},
	{unix.EINTR, false}, {unix.ENOMEM, false}, {unix.ELOOP, false}, {unix.ENOSPC, true},
}

// injector makes call n fail, or all calls from n on.
type injector struct {
	mu     sync.Mutex
	fault  fault
	n      int
	onward bool
	calls  int
	fired  bool
	what   string
}

func (in *injector) hook(op, path string, f func() error) error {
	in.mu.Lock()
	in.calls++
	hit := in.calls == in.n || in.onward && in.calls > in.n
	if hit && !in.fired {
		in.fired, in.what = true, op+" "+path
	}
	in.mu.Unlock()
	if !hit {
		return f()
	}
	if in.fault.after {
		if err := f(); err != nil {
			return err
		}
	}
	return in.fault.err
}

// sweeper makes fresh fixtures in directories below one that is fast to sync.
type sweeper struct {
	t    *testing.T
	base string
	make func(t testing.TB, root string) *commitFixture
	n    int
}

func (s *sweeper) fresh() (*commitFixture, picture) {
	s.t.Helper()
	s.n++
	root := filepath.Join(s.base, fmt.Sprint("root", s.n))
	sc := s.make(s.t, root)
	return sc, take(s.t, root)
}

// One fault at call n: either it did not matter and everything is in place, or it
// was reported and everything is as it was before. A sample tries the first kind of
// fault at more calls than the others.
func TestEveryCallFails(t *testing.T) {
	for _, c := range commitCases {
		for _, f := range append(faults, others...) {
			if c.name == "many" && f != faults[0] && f != faults[2] {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, f), func(t *testing.T) {
				t.Parallel()
				wanted := 5
				if f == faults[0] {
					wanted = 20
				}
				sweepOnce(&sweeper{t: t, base: scratch(t), make: c.make}, f, wanted)
			})
		}
	}
}

// The same on the file system that the tests run on, with one kind of fault.
func TestEveryCallFailsOnDisk(t *testing.T) {
	sweepOnce(&sweeper{t: t, base: t.TempDir(), make: singleCommit}, faults[0], 12)
}

// sweepOnce lets each call fail, or at least so many of them.
func sweepOnce(s *sweeper, f fault, wanted int) {
	t := s.t
	_, total := traceOf(t, s)
	sc, before := s.fresh()
	rolledBack, harmless := 0, 0
	sc.takes = sc.takes && !errors.Is(f.err, fs.ErrPermission) // then it may be left out
	for _, n := range tries(t, wanted, total) {
		in := &injector{fault: f, n: n}
		err := sc.run(in.hook)
		switch {
		case !in.fired:
			t.Fatalf("call %d of %d was not reached: %v", n, total, err)
		case err == nil:
			harmless++
			completed(t, sc)
			sc.done(before)
			takes := sc.takes
			sc, before = s.fresh()
			sc.takes = takes
		default:
			rolledBack++
			checkSingleFault(t, sc, before, in, err)
		}
		if t.Failed() {
			t.Fatalf("call %d, %q", n, in.what)
		}
	}
	t.Logf("%d calls: %d rolled back, %d did not matter", total, rolledBack, harmless)
	if !sampled() && rolledBack < 50 {
		t.Error("hardly any call failed")
	}
}

// completed requires that all that may be left of a complete restore goes.
func completed(t *testing.T, sc *commitFixture) {
	t.Helper()
	out, err := sc.recover(Automatic)
	for _, o := range out {
		if o.Result != Completed && o.Result != Cleared {
			t.Error(o)
		}
	}
	must(t, err)
}

func checkSingleFault(t *testing.T, sc *commitFixture, before picture, in *injector, err error) {
	t.Helper()
	e := failure(t, err)
	if e.Rollback != nil {
		t.Errorf("rollback failed though nothing was in its way: %v", err)
	}
	if !errors.Is(err, in.fault.err) {
		t.Errorf("the cause is lost: %v", err)
	}
	sameTree(t, before, sc.root)
}

// A second fault at call n of a rollback: either everything is as before, or
// the rollback says that it failed. Nothing foreign is touched. The rollback
// begins as late as it can, or while staging is still there.
func TestEveryCallOfRollbackFails(t *testing.T) {
	for _, c := range commitCases {
		for _, f := range faults {
			if c.name == "many" && f != faults[0] {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, f), func(t *testing.T) {
				t.Parallel()
				s := &sweeper{t: t, base: scratch(t), make: c.make}
				ops, _ := traceOf(t, s)
				sweepRollback(s, f, lastMove(ops)+1) // the sync after it
				sweepRollback(s, f, lastMove(ops))
			})
		}
	}
}

// place is the call that puts an artifact in place: its name in staging is a
// number.
var place = regexp.MustCompile(`^rename \d+$`)

// lastMove returns the number of the call that puts the last artifact in place.
func lastMove(ops []string) int {
	for i := len(ops); i > 0; i-- {
		if place.MatchString(ops[i-1]) {
			return i
		}
	}
	return 0
}

func sweepRollback(s *sweeper, f fault, broken int) {
	t := s.t
	t.Helper()
	sc, before := s.fresh()
	none := &injector{}
	if e := failure(t, sc.run(failAt(none, broken))); e.Rollback != nil {
		t.Fatal(e)
	}
	sameTree(t, before, sc.root)
	failed, total := 0, none.calls-broken
	for _, n := range tries(t, 8, total) {
		sc, before := s.fresh()
		in := &injector{fault: f, n: broken + n}
		err := sc.run(failAt(in, broken))
		e := failure(t, err)
		if !in.fired {
			t.Fatalf("call %d of %d was not reached: %v", n, total, err)
		}
		if e.Rollback != nil {
			failed++
			foreignKept(t, sc.staying(before), sc.root)
		} else {
			sameTree(t, before, sc.root)
		}
		settled(t, sc, before, err)
		if t.Failed() {
			t.Fatalf("call %d, %q: %v", n, in.what, err)
		}
	}
	t.Logf("%d calls of rollback: %d faults reported", total, failed)
	if !sampled() && failed == 0 {
		t.Error("no fault was reported")
	}
}

// failAt makes call number broken fail after it did its work, and the rest as
// in says.
func failAt(in *injector, broken int) func(string, string, func() error) error {
	return func(op, path string, f func() error) error {
		err := in.hook(op, path, f)
		if in.calls == broken {
			return errors.New("the commit ends here")
		}
		return err
	}
}

// traceOf runs a commitFixture to its good end and returns the calls.
func traceOf(t *testing.T, s *sweeper) (ops []string, n int) {
	t.Helper()
	sc, before := s.fresh()
	must(t, sc.run(func(op, path string, f func() error) error {
		ops = append(ops, op+" "+path)
		return f()
	}))
	sc.done(before)
	return ops, len(ops)
}

// From call n on everything fails, the rollback too. Whatever is left: nothing
// foreign is touched, and it is never called clean when it is not.
func TestEverythingFailsFromCall(t *testing.T) {
	for _, c := range commitCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := &sweeper{t: t, base: scratch(t), make: c.make}
			_, total := traceOf(t, s)
			for _, n := range tries(t, 20, total) {
				sc, before := s.fresh()
				in := &injector{fault: fault{err: unix.EIO}, n: n, onward: true}
				err := sc.run(in.hook)
				foreignKept(t, sc.staying(before), sc.root)
				settled(t, sc, before, err)
				if t.Failed() {
					t.Fatalf("call %d, %q: %v", n, in.what, err)
				}
			}
		})
	}
}

// settled requires a root to be clean, one way or the other, once the faults are over and a
// person has requested the recovery.
func settled(t *testing.T, sc *commitFixture, before picture, err error) {
	t.Helper()
	out, recErr := sc.recover(Person)
	must(t, recErr)
	complete := err == nil
	if e := failureOrNil(t, err); e != nil && e.Rollback != nil {
		complete = len(out) == 1 && out[0].Result == Completed
	} else if err != nil && len(out) > 0 {
		t.Errorf("the rollback is said to be clean, and there was %v", out)
	}
	if complete {
		sc.done(before)
	} else {
		sameTree(t, before, sc.root)
	}
}

// The sweep with several workers: the order of calls varies, the result not.
func TestEveryCallFailsInParallel(t *testing.T) {
	s := &sweeper{t: t, base: scratch(t), make: manyCommit}
	sc, before := s.fresh()
	sc.spec.workers = 8
	for _, n := range tries(t, 20, 399) {
		in := &injector{fault: faults[0], n: n}
		err := sc.run(in.hook)
		if err == nil {
			completed(t, sc)
			sc.done(before)
			sc, before = s.fresh()
			sc.spec.workers = 8
			continue
		}
		checkSingleFault(t, sc, before, in, err)
		if t.Failed() {
			t.Fatalf("call %d, %q", n, in.what)
		}
	}
}

// Lies: calls that report success and did nothing. The check of the staged
// copy finds out.
func TestLies(t *testing.T) {
	for _, op := range []string{"copy", "clone"} {
		t.Run(op, func(t *testing.T) {
			sc := singleCommit(t, t.TempDir())
			before := take(t, sc.root)
			err := sc.run(func(o, path string, f func() error) error {
				if o == op {
					return nil
				}
				return f()
			})
			e := wantStep(t, err, StepCheck, "existing/empty/x")
			if e.Rollback != nil {
				t.Error(err)
			}
			sameTree(t, before, sc.root)
		})
	}
}
