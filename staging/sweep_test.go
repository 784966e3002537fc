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

// One fault at call n, for every n: either it did not matter and everything is
// in place, or it was reported and everything is as it was before.
func TestEveryCallFails(t *testing.T) {
	for _, c := range scenes {
		for _, f := range faults {
			if c.name == "many" && f == faults[1] {
				continue // another error takes no other way
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, f), func(t *testing.T) {
				sweepOnce(&sweeper{t: t, base: mountTmpfs(t, ""), make: c.make}, f)
			})
		}
	}
}

// The same on the file system that the tests run on, with one kind of fault.
func TestEveryCallFailsOnDisk(t *testing.T) {
	sweepOnce(&sweeper{t: t, base: t.TempDir(), make: singleScene}, faults[0])
}

func sweepOnce(s *sweeper, f fault) {
	t := s.t
	sc, before := s.fresh()
	rolledBack, harmless := 0, 0
	for n := 1; ; n++ {
		in := &injector{fault: f, n: n}
		err := sc.run(in.hook)
		switch {
		case !in.fired:
			must(t, err)
			sc.done(before)
			t.Logf("%d calls: %d rolled back, %d did not matter", n-1, rolledBack, harmless)
			if rolledBack < 50 {
				t.Error("hardly any call failed")
			}
			return
		case err == nil:
			harmless++
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
				ops, total := traceOf(t, s)
				sweepRollback(s, f, total)
				sweepRollback(s, f, lastMove(ops))
			})
		}
	}
}

// lastMove returns the number of the call that puts the last artifact in place.
func lastMove(ops []string) int {
	for i := len(ops); i > 0; i-- {
		if strings.HasPrefix(ops[i-1], "link ") || strings.HasPrefix(ops[i-1], "rename ") {
			return i
		}
	}
	return 0
}

func sweepRollback(s *sweeper, f fault, broken int) {
	t := s.t
	t.Helper()
	failed, stride := 0, 1
	if broken > 300 {
		stride = long(1, 5)
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
				e := failure(t, sc.run(in.hook))
				if e.Rollback == nil {
					sameTree(t, before, sc.root)
				}
				foreignKept(t, before, sc.root)
				if t.Failed() {
					t.Fatalf("call %d, %q: %v", n, in.what, e)
				}
			}
		})
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

// Rule: nothing leaves staging before it is durable, artifacts come after the
// last check, and each directory is synced after its last change.
func TestOrderOfSyncs(t *testing.T) {
	for _, c := range scenes {
		t.Run(c.name, func(t *testing.T) {
			ops, _ := traceOf(t, &sweeper{t: t, base: t.TempDir(), make: c.make})
			ops = slimTrace(ops)
			want := map[string]string{
				"single": "lock sync mkdirs files sync renames sync checks artifacts links sync remove sync",
				"chain":  "lock manifest sync mkdirs files sync renames sync checks artifacts links sync remove sync",
				"many":   "lock sync mkdirs files sync renames sync checks artifacts links sync remove sync",
			}[c.name]
			if got := strings.Join(ops, " "); got != want {
				t.Errorf("the order is\n%s, want\n%s", got, want)
			}
		})
	}
}

// The syncs, moves and links of the two small scenes, one by one; and those
// of the rollback when the last link fails, where a rename moves something aside.
func TestEverySync(t *testing.T) {
	for _, c := range scenes[:2] {
		for _, fails := range []bool{false, true} {
			sc := c.make(t, t.TempDir())
			links := 0
			var got []string
			err := sc.run(func(op, path string, f func() error) error {
				if strings.HasPrefix(op, "sync") || op == "rename" || op == "link" {
					got = append(got, op+" "+path)
				}
				if op == "link" {
					links++
				}
				if fails && op == "link" && links == len(sc.spec.Artifacts) {
					got = nil
					return unix.EIO
				}
				return f()
			})
			if (err != nil) != fails {
				t.Error(err)
			}
			trace := strings.ReplaceAll(strings.Join(got, "\n"), sc.root, "ROOT")
			trace = regexp.MustCompile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").ReplaceAllString(trace, "UUID")
			name := c.name
			if fails {
				name += " rollback"
			}
			if trace != everySync[name] {
				t.Errorf("%s:\n%s", name, trace)
			}
		}
	}
}

var everySync = map[string]string{
	"single": `rename .spectrum06_probe
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
sync existing
sync fresh
sync inlink
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
sync ROOT
sync unnamed file
sync unnamed file
link RESTORE_MANIFEST.json
link RESTORE_REPORT.json
sync ROOT
sync ROOT`,
	"single rollback": `rename RESTORE_MANIFEST.json
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
sync ROOT`,
	"chain rollback": `rename RESTORE_MANIFEST.json
rename RESTORE_REPORT.json
rename RESTORE_MANIFEST.json
rename c
rename a
rename b
rename a
sync ROOT`,
	"chain": `sync .spectrum06_chain_UUID.json
rename .spectrum06_probe
sync ROOT
sync c
sync a
sync b
sync a
sync run1/out
sync run1
sync run2
sync .spectrum06_staging_UUID
rename run1
rename run2
sync ROOT
sync unnamed file
sync unnamed file
sync unnamed file
sync unnamed file
link RESTORE_MANIFEST.json
link RESTORE_REPORT.json
link RESTORE_MANIFEST.json
link RESTORE_REPORT.json
sync run1
sync run2
sync ROOT
sync ROOT`,
}

// slimTrace names the phases of a trace. Inside "files" and "artifacts" syncs
// of single files belong to them.
func slimTrace(ops []string) []string {
	var phases []string
	add := func(s string) {
		if len(phases) == 0 || phases[len(phases)-1] != s {
			phases = append(phases, s)
		}
	}
	for _, op := range ops {
		phase := phaseOf(op, phases)
		if phase != "" {
			add(phase)
		}
	}
	return phases
}

func phaseOf(op string, phases []string) string {
	last := ""
	if len(phases) > 0 {
		last = phases[len(phases)-1]
	}
	verb, name, _ := strings.Cut(op, " ")
	switch {
	case verb == "lock":
		return "lock"
	case strings.HasPrefix(op, "create .spectrum06_chain_"):
		return "manifest"
	case last == "manifest" && strings.Contains(op, ".spectrum06_chain_"):
		return ""
	case strings.HasPrefix(op, "create unnamed"), op == "make directory "+holdName:
		return "artifacts"
	case strings.HasPrefix(op, "make directory") && !strings.Contains(op, "spectrum06"):
		return "mkdirs"
	case strings.HasPrefix(op, "copy "), verb == "create" && last != "artifacts":
		return "files"
	case (last == "files" || last == "artifacts") && verb == "sync" && !strings.HasPrefix(name, "system") &&
		!strings.Contains(name, "/") && !strings.Contains(name, ".spectrum06_staging"):
		return "" // of a single file
	case verb == "sync":
		return "sync"
	case verb == "rename" && strings.Contains(op, "probe"):
		return ""
	case verb == "rename" && (last == "artifacts" || last == "links"), verb == "link":
		return "links"
	case verb == "rename":
		return "renames"
	case verb == "check" && last == "sync":
		return "checks"
	case verb == "remove" && !strings.Contains(op, "probe"), verb == "unlink":
		return "remove"
	}
	return ""
}
