package staging

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
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

// sweeper makes fresh scenes in directories below one that is fast to sync.
type sweeper struct {
	t    *testing.T
	base string
	make func(t testing.TB, root string) *scene
	n    int
}

func (s *sweeper) fresh() (*scene, picture) {
	s.t.Helper()
	s.n++
	root := filepath.Join(s.base, fmt.Sprint("root", s.n))
	sc := s.make(s.t, root)
	return sc, take(s.t, root)
}

// One fault at call n: either it did not matter and everything is in place, or it
// was reported and everything is as it was before. The first kind of fault is tried
// at every call, the others at every seventh, each from another one on; in a long
// run all of them at every call.
func TestEveryCallFails(t *testing.T) {
	for _, c := range scenes {
		for i, f := range append(faults, others...) {
			if c.name == "many" && f != faults[0] && f != faults[2] {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, f), func(t *testing.T) {
				s := &sweeper{t: t, base: mountTmpfs(t, ""), make: c.make}
				if i == 0 {
					sweepOnce(s, f, 1, 1)
				} else {
					sweepOnce(s, f, 1+i%7, long(1, 7))
				}
			})
		}
	}
}

// The same on the file system that the tests run on, with one kind of fault.
func TestEveryCallFailsOnDisk(t *testing.T) {
	sweepOnce(&sweeper{t: t, base: t.TempDir(), make: singleScene}, faults[0], 2, long(1, 3))
}

// sweepOnce lets a call fail, the first one on and then each after so many others.
func sweepOnce(s *sweeper, f fault, first, stride int) {
	t := s.t
	sc, before := s.fresh()
	rolledBack, harmless := 0, 0
	for n := first; ; n += stride {
		in := &injector{fault: f, n: n}
		err := sc.run(in.hook)
		switch {
		case !in.fired:
			must(t, err)
			sc.done(before)
			t.Logf("%d calls: %d rolled back, %d did not matter", n-1, rolledBack, harmless)
			if rolledBack < 50/stride {
				t.Error("hardly any call failed")
			}
			return
		case err == nil:
			harmless++
			completed(t, sc)
			sc.done(before)
			sc, before = s.fresh()
		default:
			rolledBack++
			checkSingleFault(t, sc, before, in, err)
		}
		if t.Failed() {
			t.Fatalf("call %d, %q", n, in.what)
		}
	}
}

// completed wants what may be left of a restore that is complete to go.
func completed(t *testing.T, sc *scene) {
	t.Helper()
	out, err := sc.recover(Automatic)
	for _, o := range out {
		if o.Result != Completed && o.Result != Cleared {
			t.Error(o)
		}
	}
	must(t, err)
}

func checkSingleFault(t *testing.T, sc *scene, before picture, in *injector, err error) {
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
	for _, c := range scenes {
		for _, f := range faults {
			if c.name == "many" && f != faults[0] {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, f), func(t *testing.T) {
				s := &sweeper{t: t, base: mountTmpfs(t, ""), make: c.make}
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
	failed, stride := 0, long(1, 2)
	if broken > 300 {
		stride = long(1, 11)
	}
	for n := broken + 1; ; n += stride {
		sc, before := s.fresh()
		in := &injector{fault: f, n: n}
		err := sc.run(failAt(in, broken))
		if err == nil {
			t.Fatal("the commit did not fail")
		}
		e := failure(t, err)
		if !in.fired {
			sameTree(t, before, sc.root)
			t.Logf("%d calls of rollback: %d faults reported", n-broken-1, failed)
			if e.Rollback != nil || failed == 0 {
				t.Errorf("%v, %d faults reported", err, failed)
			}
			return
		}
		if e.Rollback != nil {
			failed++
			foreignKept(t, before, sc.root)
		} else {
			sameTree(t, before, sc.root)
		}
		settled(t, sc, before, err)
		if t.Failed() {
			t.Fatalf("call %d, %q: %v", n, in.what, err)
		}
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

// traceOf runs a scene to its good end and returns the calls.
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
	for _, c := range scenes {
		t.Run(c.name, func(t *testing.T) {
			s := &sweeper{t: t, base: mountTmpfs(t, ""), make: c.make}
			_, total := traceOf(t, s)
			stride := long(1, 1+total/150)
			for n := 1; n <= total; n += stride {
				sc, before := s.fresh()
				in := &injector{fault: fault{err: unix.EIO}, n: n, onward: true}
				err := sc.run(in.hook)
				foreignKept(t, before, sc.root)
				settled(t, sc, before, err)
				if t.Failed() {
					t.Fatalf("call %d, %q: %v", n, in.what, err)
				}
			}
		})
	}
}

// settled wants a root to be clean, one way or the other, once the faults are
// over and a person has asked for it.
func settled(t *testing.T, sc *scene, before picture, err error) {
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
	s := &sweeper{t: t, base: mountTmpfs(t, ""), make: manyScene}
	sc, before := s.fresh()
	sc.spec.Workers = 8
	for n := 1; n < 400; n += 3 {
		in := &injector{fault: faults[0], n: n}
		err := sc.run(in.hook)
		if err == nil {
			completed(t, sc)
			sc.done(before)
			sc, before = s.fresh()
			sc.spec.Workers = 8
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
			sc := singleScene(t, t.TempDir())
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

// Every sync, move and removal of a journal record, in order; and those of the
// rollback when the last artifact cannot be placed, where a rename moves
// something aside. What differs only in its number is shown once.
func TestEverySync(t *testing.T) {
	for _, c := range scenes {
		for _, fails := range []bool{false, true} {
			name := c.name
			if fails {
				name += " rollback"
			}
			if got := syncTrace(t, c.make(t, t.TempDir()), fails); got != everySync[name] {
				t.Errorf("%s:\n%s", name, got)
			}
		}
	}
}

func syncTrace(t *testing.T, sc *scene, fails bool) string {
	t.Helper()
	placed := 0
	var got []string
	err := sc.run(func(op, path string, f func() error) error {
		line := op + " " + path
		if strings.HasPrefix(op, "sync") || op == "rename" || op == "unlink" && ofJournal(path) {
			line = numbers.ReplaceAllString(uuids.ReplaceAllString(strings.ReplaceAll(line, sc.root, "ROOT"), "UUID"), "N")
			if len(got) == 0 || got[len(got)-1] != line {
				got = append(got, line)
			}
		}
		if place.MatchString(op + " " + path) {
			placed++
		}
		if fails && placed == len(sc.spec.Artifacts) {
			placed, got = -1, nil
			return unix.EIO
		}
		return f()
	})
	if (err != nil) != fails {
		t.Error(err)
	}
	return strings.Join(got, "\n")
}

var (
	uuids   = regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
	numbers = regexp.MustCompile(`\b(r?\d\d|\d+)\b`)
)

var everySync = map[string]string{
	"single": `sync .spectrum06_intent.new
rename .spectrum06_intent.new
sync .spectrum06_staging_UUID
sync ROOT
sync a.txt
sync x
sync new
sync f1
sync f2
sync g
sync via
sync zero
sync existing/empty
sync fresh/deep
sync .spectrum06_artifacts
sync existing
sync fresh
sync inlink
sync .spectrum06_staging_UUID
sync .spectrum06_prepared.new
rename .spectrum06_prepared.new
sync .spectrum06_staging_UUID
rename a.txt
rename x
rename new
rename fresh
rename via
rename zero
sync existing/empty
sync existing
sync inlink
sync .spectrum06_staging_UUID
sync existing/empty
sync existing
sync inlink
sync ROOT
sync N
sync .spectrum06_artifacts
sync .spectrum06_committed.new
rename .spectrum06_committed.new
sync .spectrum06_staging_UUID
rename N
sync .spectrum06_artifacts
sync ROOT
unlink .spectrum06_prepared
sync .spectrum06_staging_UUID
unlink .spectrum06_intent
unlink .spectrum06_committed
sync ROOT`,
	"single rollback": `rename .spectrum06_committed
sync .spectrum06_staging_UUID
rename RESTORE_MANIFEST.json
rename a.txt
rename x
rename new
rename f1
rename f2
rename g
rename via
rename zero
sync existing/empty
sync existing
sync inlink
sync ROOT
unlink .spectrum06_prepared
unlink .spectrum06_rolling_back
unlink .spectrum06_intent
sync ROOT`,
	"chain": `sync .spectrum06_manifest
sync .spectrum06_intent.new
rename .spectrum06_intent.new
sync .spectrum06_staging_UUID
sync ROOT
rename .spectrum06_manifest
sync .spectrum06_staging_UUID
sync ROOT
sync c
sync a
sync b
sync a
sync run1/out
sync .spectrum06_artifacts
sync run1
sync run2
sync .spectrum06_staging_UUID
sync .spectrum06_prepared.new
rename .spectrum06_prepared.new
sync .spectrum06_staging_UUID
rename run1
rename run2
sync .spectrum06_staging_UUID
sync ROOT
sync N
sync .spectrum06_artifacts
sync .spectrum06_committed.new
rename .spectrum06_committed.new
sync .spectrum06_staging_UUID
rename N
sync .spectrum06_artifacts
sync run1
sync run2
sync ROOT
rename .spectrum06_chain_UUID.json
sync ROOT
unlink .spectrum06_prepared
sync .spectrum06_staging_UUID
unlink .spectrum06_intent
unlink .spectrum06_committed
sync ROOT`,
	"chain rollback": `rename .spectrum06_committed
sync .spectrum06_staging_UUID
rename RESTORE_MANIFEST.json
rename RESTORE_REPORT.json
rename RESTORE_MANIFEST.json
rename c
rename a
rename b
rename a
rename .spectrum06_chain_UUID.json
sync ROOT
unlink .spectrum06_prepared
unlink .spectrum06_rolling_back
unlink .spectrum06_intent
sync ROOT`,
	"many": `sync .spectrum06_intent.new
rename .spectrum06_intent.new
sync .spectrum06_staging_UUID
sync ROOT
sync file system ROOT
sync .spectrum06_prepared.new
rename .spectrum06_prepared.new
sync .spectrum06_staging_UUID
rename N
sync .spectrum06_staging_UUID
sync ROOT
sync file system ROOT
sync .spectrum06_committed.new
rename .spectrum06_committed.new
sync .spectrum06_staging_UUID
rename N
sync .spectrum06_artifacts
sync file system ROOT
sync ROOT
unlink .spectrum06_prepared
sync .spectrum06_staging_UUID
unlink .spectrum06_intent
unlink .spectrum06_committed
sync ROOT`,
	"many rollback": `rename .spectrum06_committed
sync .spectrum06_staging_UUID
rename REPORT.json
rename f
sync file system ROOT
sync ROOT
unlink .spectrum06_prepared
unlink .spectrum06_rolling_back
unlink .spectrum06_intent
sync ROOT`,
}
