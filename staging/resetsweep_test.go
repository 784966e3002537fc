package staging

import (
	"errors"
	"fmt"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

func TestReset(t *testing.T) {
	for _, c := range resetCases {
		t.Run(c.name, func(t *testing.T) {
			g := &resetFixtures{t: t, base: t.TempDir(), make: c.make}
			f := g.fresh()
			open := descriptors(t)
			must(t, f.run(nil))
			f.is(f.after(), "asked for")
			if now := descriptors(t); now > open { // fewer when those of killed ones are collected
				t.Errorf("%d descriptors, were %d", now, open)
			}
			if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
				t.Error(out, err)
			}
		})
	}
}

// calls runs a resetFixture with a hook that fails nothing, and returns how many calls it has.
func (g *resetFixtures) calls(run func(f *resetFixture, none *injector)) int {
	g.t.Helper()
	f, none := g.fresh(), &injector{}
	run(f, none)
	g.done(f)
	return none.calls
}

// callsOfRun are those of a reset that succeeds.
func (g *resetFixtures) callsOfRun() int {
	g.t.Helper()
	return g.calls(func(f *resetFixture, none *injector) {
		must(g.t, f.run(none.hook))
		f.is(f.after(), "asked for")
	})
}

// One fault at call n, for every n: either it did not matter and everything is
// done, or it was reported and everything is as it was before.
func TestResetEveryCallFails(t *testing.T) {
	for _, c := range resetCases {
		for _, fault := range faults {
			t.Run(fmt.Sprintf("%s/%v", c.name, fault), func(t *testing.T) {
				t.Parallel()
				g := &resetFixtures{t: t, base: mountTmpfs(t, ""), make: c.make}
				back, harmless, total := 0, 0, g.callsOfRun()
				for _, n := range tries(t, 12, total) {
					f := g.fresh()
					in := &injector{fault: fault, n: n}
					err := f.run(in.hook)
					if !in.fired {
						t.Fatalf("call %d of %d was not reached: %v", n, total, err)
					}
					if err == nil {
						harmless++
						completedReset(t, f)
					} else {
						back++
						f.failedWell(in, err)
					}
					if t.Failed() {
						t.Fatalf("call %d, %q: %v", n, in.what, err)
					}
					g.done(f)
				}
				t.Logf("%d rolled back, %d did not matter", back, harmless)
				if !sampled() && (back < 30 || harmless < 1) {
					t.Error("too few of one kind")
				}
			})
		}
	}
}

func completedReset(t *testing.T, f *resetFixture) {
	t.Helper()
	if f.settle(Automatic) != Completed {
		t.Error("it was said to be complete")
	}
}

func (f *resetFixture) failedWell(in *injector, err error) {
	f.t.Helper()
	e := failure(f.t, err)
	if e.Rollback != nil || !errors.Is(err, in.fault.err) {
		f.t.Errorf("rolled back badly, or the cause is lost: %v", err)
	}
	f.is(f.before, "before")
	if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
		f.t.Error(out, err)
	}
}

// A second fault at call n of the undo: everything is as before, or the undo
// says that it failed, the root is halted, and a person's recovery ends it.
func TestResetEveryCallOfUndoFails(t *testing.T) {
	for _, c := range resetCases {
		for _, fault := range faults {
			for _, last := range []string{"settle", "create .spectrum06_committed.new", "sync"} {
				if c.name == "many" && (fault != faults[0] || last != "settle") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%s", c.name, fault, last), func(t *testing.T) {
					t.Parallel()
					sweepUndo(&resetFixtures{t: t, base: mountTmpfs(t, ""), make: c.make}, fault, last)
				})
			}
		}
	}
}

// breakAt lets the reset fail at a call, and hands the calls after it to in.
// "sync" is the one after the record COMMITTED has got its name.
func breakAt(last string, in *injector) hook {
	broken, renamed := false, false
	return func(op, path string, do func() error) error {
		if broken {
			return in.hook(op, path, do)
		}
		err := do()
		if op == "settle" && last == "settle" || op+" "+path == last || renamed && last == "sync" {
			broken = true
			return errors.New("it ends here")
		}
		renamed = renamed || op == "rename" && path == committedName+newSuffix
		return err
	}
}

func sweepUndo(g *resetFixtures, fault fault, last string) {
	t := g.t
	t.Helper()
	run := func(f *resetFixture, in *injector) *Error {
		f.e.settled = func() error { return nil }
		return failure(t, f.run(breakAt(last, in)))
	}
	total := g.calls(func(f *resetFixture, none *injector) {
		if e := run(f, none); e.Rollback != nil {
			t.Error(e)
		}
		f.is(f.before, "before")
	})
	reported := 0
	for _, n := range tries(t, 5, total) {
		f := g.fresh()
		in := &injector{fault: fault, n: n}
		e := run(f, in)
		if !in.fired {
			t.Fatalf("call %d of %d was not reached: %v", n, total, e)
		}
		switch {
		case e.Rollback == nil:
			f.is(f.before, "before")
			if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
				t.Error(out, err)
			}
		default:
			reported++
			f.settle(Person)
		}
		if t.Failed() {
			t.Fatalf("call %d, %q: %v", n, in.what, e)
		}
		g.done(f)
	}
	if !sampled() && reported == 0 {
		t.Errorf("%d faults reported", reported)
	}
}

// From call n on everything fails, the undo too.
func TestResetEverythingFailsFromCall(t *testing.T) {
	for _, c := range resetCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &resetFixtures{t: t, base: mountTmpfs(t, ""), make: c.make}
			ends, total := map[Result]int{}, g.callsOfRun()
			for _, n := range tries(t, 15, total) {
				f := g.fresh()
				in := &injector{fault: fault{err: unix.EIO}, n: n, onward: true}
				err := f.run(in.hook)
				if !in.fired {
					t.Fatalf("call %d of %d was not reached: %v", n, total, err)
				}
				end := f.settle(Person)
				if err == nil && end != Completed {
					t.Error("it was said to be complete")
				}
				ends[end]++
				if t.Failed() {
					t.Fatalf("call %d, %q: %v", n, in.what, err)
				}
				g.done(f)
			}
			t.Log(ends)
		})
	}
}

// Killed before call n, for every n, and the recovery killed before its call m. In
// the sweep some of the commits have every recovery killed, in the long run all.
func TestResetKilled(t *testing.T) {
	for _, c := range resetCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &resetFixtures{t: t, base: mountTmpfs(t, ""), make: c.make}
			total := g.callsOfRun()
			ends, pairs := map[Result]int{}, 0
			for _, n := range tries(t, 15, total) {
				f := g.killedAt(n)
				ends[f.settle(Automatic)]++
				if t.Failed() {
					t.Fatalf("killed at %d", n)
				}
				g.done(f)
			}
			for _, n := range pairedCalls(t, c.name, total) {
				pairs += g.killRecoveries(n)
			}
			t.Logf("%d before, %d after; %d pairs", ends[RolledBack], ends[Completed], pairs)
			if !sampled() && (ends[RolledBack] < 20 || ends[Completed] < 1 || pairs < 10) {
				t.Error("too few of one kind")
			}
		})
	}
}

// pairedCalls returns before which calls a reset is killed whose recovery is
// killed too.
func pairedCalls(t *testing.T, resetFixture string, total int) (calls []int) {
	if sampled() {
		return tries(t, 3, total)
	}
	step := map[string]int{"rollback": 1, "plain": 2, "mixed": 2, "many": 11}[resetFixture]
	stride := map[string]int{"rollback": 22, "plain": 55, "mixed": 55, "many": 299}[resetFixture]
	for n := 1; n <= total; n++ {
		if sample.Now() == sample.Long || n%stride < step && (n-1)%step == 0 {
			calls = append(calls, n)
		}
	}
	return calls
}

// killRecoveries kills the recovery of a reset that was killed before call n, and
// returns how many recoveries it has killed.
func (g *resetFixtures) killRecoveries(n int) int {
	g.t.Helper()
	f, none := g.killedAt(n), &injector{}
	_, err := f.recover(Automatic, none.hook)
	must(g.t, err)
	g.done(f)
	pairs := tries(g.t, 5, none.calls)
	for _, m := range pairs {
		f := g.killedAt(n)
		if survived(func() { _, _ = f.recover(Automatic, killer(m)) }) {
			g.t.Errorf("call %d of %d was not reached", m, none.calls)
		}
		f.settle(Automatic)
		g.done(f)
		if g.t.Failed() {
			g.t.Fatalf("killed at %d, the recovery at %d", n, m)
		}
	}
	return len(pairs)
}

// A reset is killed while it removes its directories in staging, and the recovery, which
// makes those again that are missing, before each of its calls.
func TestResetKilledAtItsEnd(t *testing.T) {
	for _, c := range resetCases[:2] {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &resetFixtures{t: t, base: mountTmpfs(t, ""), make: c.make}
			total := g.callsOfRun()
			for n := total - 12; n <= total; n++ {
				f, none := g.killedAt(n), &injector{}
				_, err := f.recover(Automatic, none.hook)
				must(t, err)
				g.done(f)
				for m := 1; m <= none.calls && !t.Failed(); m++ {
					f := g.killedAt(n)
					_ = survived(func() { _, _ = f.recover(Automatic, killer(m)) })
					f.settle(Automatic)
					g.done(f)
				}
				if t.Failed() {
					t.Fatalf("killed at %d of %d", n, total)
				}
			}
		})
	}
}

// killedAt makes a resetFixture whose reset was killed before call n.
func (g *resetFixtures) killedAt(n int) *resetFixture {
	g.t.Helper()
	f := g.fresh()
	f.lazy = true
	if survived(func() { must(g.t, f.run(killer(n))) }) {
		g.t.Fatalf("call %d was not reached", n)
	}
	return f
}
