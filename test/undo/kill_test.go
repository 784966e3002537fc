package undo

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

func newProject(t testing.TB) *harness.Project {
	t.Helper()
	return harness.New(t, files())
}

// ways are the ways back, and which of their calls are tried.
var ways = []struct {
	act  func() *act
	kill stride
}{
	{rollback, stride{1, 13}}, {whole, stride{2, 19}}, {byName, stride{3, 19}}, {part, stride{4, 13}},
}

// rehearse carries the act out in a world: it must do what it is to do.
func (w *world) rehearse(t testing.TB) {
	t.Helper()
	w.reset(t)
	w.run(t, nil, w.args...)
	state := harness.After
	if w.act.after == nil {
		state = harness.Before
	}
	if _, err := w.site.Check(state); err != nil {
		t.Fatal(err)
	}
	if w.stay != nil {
		w.snapshots = w.stay
	}
	if err := w.records(t, state); err != nil {
		t.Fatal(err)
	}
}

// TestKill kills each way back before its calls, and then recovers.
func TestKill(t *testing.T) {
	p := newProject(t)
	for _, way := range ways {
		t.Run(way.act().name, func(t *testing.T) { killEverywhere(t, p, way.act(), each(way.kill)) })
	}
	t.Run(bound().name, func(t *testing.T) { killEverywhere(t, p, bound(), each(stride{5, 41})) })
}

func killEverywhere(t *testing.T, p *harness.Project, a *act, s stride) {
	var sum tally
	sweep(t, p, a, s, func(t *testing.T, w *world, n int) bool {
		r := w.site.Project.Run(t, &sysfault.Plan{N: n, Kill: true, Record: true, Match: w.changing}, w.args...)
		if !r.Killed() {
			sum.add(fmt.Sprint("calls ", r.Fault.Calls))
			if err := w.ended(t, harness.After); err != nil || r.Status != 0 {
				t.Errorf("not killed: %v, %v", r, err)
			}
			return false
		}
		found, _ := w.site.State()
		sum.add("found " + found.String())
		again := w.next(t, n)
		state, err := w.site.State()
		err = errors.Join(err, w.ended(t, state))
		if again.Status != 0 || err != nil {
			t.Errorf("killed before %s\n%v\n%v", w.last(r), again, err)
			return true
		}
		sum.add("recovered " + state.String())
		if err := w.back(t, state, n); err != nil {
			t.Errorf("killed before %s\nthen %v", w.last(r), err)
		}
		return true
	})
	keys := []string{"recovered before", "recovered after"}
	if a.name != "whole" { // which is one rename
		keys = append(keys, "found other")
	}
	sum.want(t, keys...)
}

// TestKillBare kills the restore of a whole root when only the empty directory of it
// is beside the root: it says nothing of who made it.
func TestKillBare(t *testing.T) {
	p := newProject(t)
	w := newWorld(t, p, in(harness.MemoryDir(t)), whole())
	w.rehearse(t)
	for state, match := range map[harness.State]func() func(sysfault.Call) bool{
		harness.Before: func() func(sysfault.Call) bool { // right after it was made
			made := false
			return func(c sysfault.Call) bool {
				was := made
				made = made || bare(c) && c.Name == "mkdirat"
				return was && w.changing(c)
			}
		},
		harness.After: func() func(sysfault.Call) bool {
			return func(c sysfault.Call) bool { return bare(c) && c.Name == "unlinkat" }
		},
	} {
		w.reset(t)
		r := w.site.Project.Run(t, &sysfault.Plan{N: 1, Kill: true, Record: true, Match: match()}, w.args...)
		if again := w.site.Recover(t, nil); !r.Killed() || again.Status != 0 {
			t.Errorf("as %v, killed before %s: %v\n%v", state, w.last(r), r, again)
		}
		if err := w.ended(t, state); err != nil {
			t.Errorf("as %v, killed before %s: %v", state, w.last(r), err)
		}
	}
}

// bare matches what is done to the directory of the exchange of a whole root.
func bare(c sysfault.Call) bool {
	return strings.HasPrefix(filepath.Base(c.Path), ".spectrum06_exchange_")
}

// next is the first command after a kill: recover, or in every third trial a
// preview, which recovers too.
func (w *world) next(t testing.TB, n int) harness.Reply {
	t.Helper()
	if n%3 == 0 {
		if r := w.site.PreviewReply(t, nil); r.Status != 1 { // there are conflicts, or none
			return r
		}
	}
	return w.site.Recover(t, nil)
}

// ended checks a root after a recovery, and all that is recorded of it.
func (w *world) ended(t testing.TB, allowed ...harness.State) error {
	t.Helper()
	state, err := w.site.Recovered(t, allowed...)
	if err != nil {
		return err
	}
	return w.records(t, state)
}

// back carries the act out where it was not, and in some trials then takes it back.
func (w *world) back(t testing.TB, state harness.State, n int) error {
	t.Helper()
	if state == harness.Before {
		if r := w.site.Project.Run(t, nil, w.args...); r.Status != 0 {
			return fmt.Errorf("once more: %v", r)
		}
		if _, err := w.site.Check(harness.After); err != nil {
			return fmt.Errorf("once more: %w", err)
		}
		if err := w.records(t, harness.After); err != nil {
			return fmt.Errorf("once more: %w", err)
		}
	}
	if n%4 != 0 {
		return nil
	}
	all := w.list(t)
	for _, s := range all {
		if r := w.site.Project.Run(t, nil, "snapshot", "verify", s.ID); r.Status != 0 {
			return fmt.Errorf("%v", r)
		}
	}
	if r := w.site.Project.Run(t, nil, "snapshot", "restore", "--json", all[len(all)-1].ID); r.Status != 0 {
		return fmt.Errorf("and back: %v", r)
	}
	if diff := harness.Diff(anew(w.site.Before), w.picture(t)); diff != "" {
		return fmt.Errorf("and back: it is not as before:\n%s", diff)
	}
	return nil
}

// TestKillTwice kills some ways back, and the recovery of each before its calls.
func TestKillTwice(t *testing.T) {
	p := newProject(t)
	for i, way := range ways {
		first, second := stride{i * 7, 67}, stride{1 + i, 11}
		if long() {
			first, second = stride{1, 5}, stride{1, 1}
		}
		t.Run(way.act().name, func(t *testing.T) { killTwice(t, p, way.act(), first, second) })
	}
}

func killTwice(t *testing.T, p *harness.Project, a *act, first, second stride) {
	var sum tally
	first.first += first.every // nothing is written in the very beginning
	sweep(t, p, a, first, func(t *testing.T, w *world, n int) bool {
		for i := 0; ; i++ {
			w.reset(t)
			r := w.site.Project.Run(t, &sysfault.Plan{N: n, Kill: true, Record: true, Match: w.changing}, w.args...)
			if !r.Killed() {
				return false
			}
			recovery := w.site.Recover(t, &sysfault.Plan{N: second.at(i), Kill: true, Record: true, Match: w.changing})
			found, _ := w.site.State()
			end := w.site.Recover(t, nil)
			err := w.ended(t, harness.Before, harness.After)
			if err != nil || end.Status != 0 {
				t.Errorf("killed before %s\nrecovery killed before %s\n%v\n%v", w.last(r), w.last(recovery), end, err)
				return true
			}
			if !recovery.Killed() {
				return true
			}
			state, _ := w.site.State()
			sum.add("pairs")
			sum.add("found " + found.String())
			sum.add("recovered " + state.String())
		}
	})
	sum.want(t, "pairs", "recovered before")
}

func TestLongKill(t *testing.T) {
	needLong(t)
	TestKill(t)
}

func TestLongKillTwice(t *testing.T) {
	needLong(t)
	TestKillTwice(t)
}
