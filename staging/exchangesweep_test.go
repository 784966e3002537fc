package staging

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

func TestExchange(t *testing.T) {
	for _, c := range fairs {
		t.Run(c.name, func(t *testing.T) {
			g := &fairground{t: t, base: t.TempDir(), make: c.make}
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

// steps are how many calls the sweeps of a scene go on at a time; the long run looks
// at each.
var steps = map[string]int{"rollback": 2, "mixed": 5, "whole": 2, "many": 23}

// One fault at call n, for every n: either it did not matter and everything is
// done, or it was reported and everything is as it was before.
func TestExchangeEveryCallFails(t *testing.T) {
	for _, c := range fairs {
		for _, fault := range faults {
			t.Run(fmt.Sprintf("%s/%v", c.name, fault), func(t *testing.T) {
				g := &fairground{t: t, base: mountTmpfs(t, ""), make: c.make}
				back, harmless := 0, 0
				for n := 1; ; n += long(1, steps[c.name]) {
					f := g.fresh()
					in := &injector{fault: fault, n: n}
					err := f.run(in.hook)
					if !in.fired {
						must(t, err)
						break
					}
					if err == nil {
						harmless++
						completedFair(t, f)
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
				if back < long(30, 10) || harmless < 1 {
					t.Error("too few of one kind")
				}
			})
		}
	}
}

func completedFair(t *testing.T, f *fair) {
	t.Helper()
	if f.settle(Automatic) != Completed {
		t.Error("it was said to be complete")
	}
}

func (f *fair) failedWell(in *injector, err error) {
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
func TestExchangeEveryCallOfUndoFails(t *testing.T) {
	for _, c := range fairs {
		for _, fault := range faults {
			for _, last := range []string{"settle", "create .spectrum06_committed.new", "sync"} {
				if c.name == "many" && (fault != faults[0] || last != "settle") {
					continue
				}
				t.Run(fmt.Sprintf("%s/%v/%s", c.name, fault, last), func(t *testing.T) {
					g := &fairground{t: t, base: mountTmpfs(t, ""), make: c.make}
					sweepUndo(g, long(1, steps[c.name]), fault, last)
				})
			}
		}
	}
}

// breakAt lets the exchange fail at a call, and hands the calls after it to in.
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

func sweepUndo(g *fairground, step int, fault fault, last string) {
	t := g.t
	t.Helper()
	reported := 0
	for n := 1; ; n += step {
		f := g.fresh()
		f.e.Settled = func(context.Context, *pathsafe.Dir) error { return nil }
		in := &injector{fault: fault, n: n}
		err := f.run(breakAt(last, in))
		if err == nil {
			t.Fatal("it did not fail")
		}
		e := failure(t, err)
		switch {
		case e.Rollback == nil:
			f.is(f.before, "before")
			if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
				t.Error(out, err)
			}
		case in.fired:
			reported++
			f.settle(Person)
		default:
			t.Error(err)
		}
		if t.Failed() {
			t.Fatalf("call %d, %q: %v", n, in.what, err)
		}
		g.done(f)
		if !in.fired {
			break
		}
	}
	if reported == 0 {
		t.Errorf("%d faults reported", reported)
	}
}

// From call n on everything fails, the undo too.
func TestExchangeEverythingFailsFromCall(t *testing.T) {
	for _, c := range fairs {
		t.Run(c.name, func(t *testing.T) {
			g := &fairground{t: t, base: mountTmpfs(t, ""), make: c.make}
			ends := map[Result]int{}
			for n := 1; ; n += long(1, steps[c.name]) {
				f := g.fresh()
				in := &injector{fault: fault{err: unix.EIO}, n: n, onward: true}
				err := f.run(in.hook)
				if !in.fired {
					break
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

// Killed before call n, for every n, and the recovery killed before its call m.
func TestExchangeKilled(t *testing.T) {
	for _, c := range fairs {
		t.Run(c.name, func(t *testing.T) {
			g := &fairground{t: t, base: mountTmpfs(t, ""), make: c.make}
			ends, pairs := map[Result]int{}, 0
			stride := long(1, map[string]int{"rollback": 22, "mixed": 55, "whole": 10, "many": 299}[c.name])
			for n := 1; ; n += long(1, steps[c.name]/2) {
				f := g.killedAt(n)
				if f == nil {
					break
				}
				ends[f.settle(Automatic)]++
				g.done(f)
				for m := 1 + n%3*long(0, 1); n%stride < long(1, steps[c.name]/2); m += long(1, 3) {
					f := g.killedAt(n)
					ended := survived(func() { _, _ = f.recover(Automatic, killer(m)) })
					f.settle(Automatic)
					g.done(f)
					if t.Failed() {
						t.Fatalf("killed at %d, the recovery at %d", n, m)
					}
					if pairs++; ended {
						break
					}
				}
				if t.Failed() {
					t.Fatalf("killed at %d", n)
				}
			}
			t.Logf("%d before, %d after; %d pairs", ends[RolledBack], ends[Completed], pairs)
			if ends[RolledBack] < 20 || ends[Completed] < 1 || pairs < 10 {
				t.Error("too few of one kind")
			}
		})
	}
}

// killedAt makes a fair whose exchange was killed before call n; nil if it ended.
func (g *fairground) killedAt(n int) *fair {
	f := g.fresh()
	f.lazy = true
	if survived(func() { must(g.t, f.run(killer(n))) }) {
		f.is(f.after(), "asked for")
		return nil
	}
	return f
}
