package undo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// kinds is how many kinds of faults are tried at each call.
func kinds() int { return sample.Of(1, 1, 3) }

// TestErrors fails the calls of each undo operation, more often those that change anything than
// those that only look, which are most of all.
func TestErrors(t *testing.T) {
	for _, way := range sample.Pick(t, 2, ways) {
		t.Run(way().name+", changing", func(t *testing.T) {
			failEverywhere(t, way(), sample.Thin(t, 97, 17), harness.ChangingCalls, (*fixture).changing)
		})
		t.Run(way().name+", looking", func(t *testing.T) { failEverywhere(t, way(), sample.Thin(t, 233, 71), nil, (*fixture).looking) })
	}
}

// TestUnreadDirectory fails the calls at a directory that a commit has made, with each error of a
// disk. A rollback does all of its work or none, or names what it leaves: it takes a directory that
// it could not read for no other one.
func TestUnreadDirectory(t *testing.T) {
	for _, make := range sample.Pick(t, 1, []func() *command{rollback, replaced}) {
		a, errnos := make(), []syscall.Errno{syscall.EIO, syscall.EUCLEAN, syscall.EBADMSG}
		t.Run(a.name, func(t *testing.T) {
			var sum harness.Tally
			sweep(t, a, sample.Thin(t, 23, 3), func(t *testing.T, w *fixture, n int) bool {
				at := func(c sysfault.Call) bool { return c.Path == w.path("whole/deep") && c.Name != "close" }
				f := harness.Fault{Errno: errnos[n%len(errnos)]}
				r := w.site.Project.Run(t, &sysfault.Plan{N: n, Errno: f.Errno, Match: at, Record: true}, w.args...)
				if r.Fault.Fired == 0 {
					return false
				}
				if err := errors.Join(wellSaid(r), w.afterError(t, &sum, r, f)); err != nil {
					t.Errorf("%v: %s\n%v\n%v", f, w.site.Last(r), r, err)
				}
				return true
			})
			sum.Demand(t, "failed", "succeeded")
		})
	}
}

// TestLeaseDenied denies each lease by which an undo asks whether a displaced file is open for writing.
// What it cannot know it keeps and names, and does the rest.
func TestLeaseDenied(t *testing.T) {
	var sum harness.Tally
	sweep(t, changed(), sample.Thin(t, 5, 1), func(t *testing.T, w *fixture, n int) bool {
		f := harness.Fault{Errno: syscall.EACCES}
		at := func(c sysfault.Call) bool {
			return strings.Contains(c.Path, "/.spectrum06_exchange_") && strings.Contains(c.Path, "/old/")
		}
		r := w.site.Project.Run(t, &sysfault.Plan{N: n, Errno: f.Errno, Match: at, Only: []string{"fcntl"}}, w.args...)
		if r.Fault.Fired == 0 {
			return false
		}
		if strings.Contains(r.Stdout, `"kept":[{`) {
			sum.Add("kept")
		}
		if err := errors.Join(wellSaid(r), w.afterError(t, &sum, r, f)); err != nil {
			t.Errorf("%v\n%v", r, err)
		}
		return true
	})
	sum.Demand(t, "kept", "succeeded")
}

func TestLongErrors(t *testing.T) {
	sample.Need(t, sample.Long)
	TestErrors(t)
}

func failEverywhere(t *testing.T, a *command, s sample.Stride, only []string, match func(*fixture, sysfault.Call) bool) {
	t.Helper()
	var sum harness.Tally
	sweep(t, a, s, func(t *testing.T, w *fixture, n int) bool {
		for _, f := range harness.FaultsAt(n, kinds()) {
			if f.Errno == syscall.ELOOP { // it says of a name that it is a link, and a link among records is damage
				f.Errno = syscall.EIO
			}
			w.reset(t)
			var hits []sysfault.Call
			plan := &sysfault.Plan{
				N: n, Onward: f.Onward, Errno: f.Errno, Before: func(c sysfault.Call) { hits = append(hits, c) },
				Match: func(c sysfault.Call) bool { return match(w, c) }, Only: only,
			}
			r := w.site.Project.Run(t, plan, w.args...)
			if r.Fault.Fired == 0 {
				return false
			}
			if err := errors.Join(wellSaid(r), w.afterError(t, &sum, r, f)); err != nil {
				t.Errorf("%v: %s\n%v\n%v", f, w.site.Describe(hits[0]), r, err)
			}
		}
		return true
	})
	sum.Demand(t, "failed", "recovered before")
}

// wellSaid checks how a command ended: in time, without a panic, with a code and the
// status of it.
func wellSaid(r harness.Reply) error {
	switch {
	case r.Hung:
		return errors.New("it hangs")
	case strings.Contains(r.Stderr, "panic") || strings.Contains(r.Stderr, "goroutine "):
		return errors.New("it panics")
	case !slices.Contains([]int{0, 1, 3, 74}, r.Status):
		return fmt.Errorf("exit %d", r.Status)
	case r.Answer.Code == "" || r.Answer.OK != (r.Status == 0) || (r.Answer.Code == "MACHINE_FAULT") != (r.Status == 74):
		return fmt.Errorf("exit %d with %q", r.Status, r.Answer.Code)
	case r.Status != 0 && r.Stderr == "":
		return errors.New("it says nothing")
	}
	return nil
}

// isUnrecorded reports whether a command has done all of it, and could not record that: recover
// does.
func isUnrecorded(r harness.Reply) bool {
	return r.Status == 74 && strings.Contains(r.Stderr, "it was carried out, but its records could not be written")
}

// afterError checks the root after a command with a fault, and recovers.
func (w *fixture) afterError(t *testing.T, sum *harness.Tally, r harness.Reply, f harness.Fault) error {
	t.Helper()
	allowed := []harness.State{harness.Before}
	complete := strings.Contains(r.Stderr, "is complete")
	if f.Errno == syscall.EACCES && r.Status == 0 { // a lease that is denied says as little as one that another process prevents
		if err := w.removeKept(r); err != nil {
			return err
		}
	}
	untouchable := f.Errno == syscall.EACCES || slices.Contains([]syscall.Errno{syscall.EIO, syscall.EUCLEAN, syscall.EBADMSG}, f.Errno) && strings.Contains(r.Stdout, "the disk reports an error for it")
	switch {
	case untouchable && (r.Answer.Code == "ROLLBACK_INCOMPLETE" || r.Status == 0 && f.Errno == syscall.EACCES && (w.args[0] == "snapshot" || slices.Contains(w.args, "--emergency")) && strings.Contains(r.Stdout, `"left":[{`)):
		sum.Add("left") // what this user may not touch, or the disk not give back, stays, and is named; afterwards the same command does the rest
		if again := w.site.Recover(t, nil); again.Status != 0 {
			return fmt.Errorf("recover: %v", again)
		}
		if again := w.site.Project.Run(t, nil, w.args...); again.Status != 0 {
			return fmt.Errorf("once more: %v", again)
		}
		if _, err := w.site.Recovered(t, harness.After); err != nil {
			return fmt.Errorf("once more: %w", err)
		}
		w.site.Project.CheckAudit(t)
		if got := w.chain(t); !slices.Equal(got, w.chains[harness.After]) {
			return fmt.Errorf("once more: the savepoints are %q", got)
		}
		return errors.Join(w.keeps(t), w.lost(t))
	case r.Status == 0 || complete || isUnrecorded(r):
		sum.Add("succeeded")
		allowed = []harness.State{harness.After}
	case r.Status == 3 && !f.Onward && w.began(t): // else something in the way could not be read
		return errors.New("it is halted, though nothing failed in taking it back")
	case r.Status == 3:
		sum.Add("halted")
		allowed = append(allowed, harness.After)
		if err := w.site.Halted(t); err != nil {
			return fmt.Errorf("exit 3, and nothing halts the root: %w", err)
		}
	case r.Status == 74 && strings.Contains(r.Stderr, "could not be ended"): // nothing halts, and what stands is ended here
		sum.Add("failed")
		allowed = append(allowed, harness.After)
	default:
		sum.Add("failed")
	}
	if again := w.site.Recover(t, nil); again.Status != 0 {
		return fmt.Errorf("recover: %v", again)
	}
	state, err := w.site.State()
	sum.Add("recovered " + state.String())
	if err := errors.Join(err, w.ended(t, allowed...)); err != nil {
		return err
	}
	return w.back(t, state, 1)
}

// removeKept removes the directory with displaced files that an answer names as kept, if there is one.
func (w *fixture) removeKept(r harness.Reply) error {
	dirs, err := filepath.Glob(w.path("spectrum-kept-*"))
	for _, dir := range dirs {
		if !strings.Contains(r.Stdout, `"at":"`+dir+"/") {
			return fmt.Errorf("%q is not named", dir)
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return err
}

// TestErrorsInRecover kills an undo operation and fails a call of the recovery. It may fail, but
// then nothing halts the root unless it is said to be halted, and the next recovery does all of
// it.
func TestErrorsInRecover(t *testing.T) {
	stride := sample.Of(401, 201, 5)
	for _, way := range sample.Pick(t, 2, ways) {
		t.Run(way().name, func(t *testing.T) {
			var sum harness.Tally
			first := sample.Random(t, stride)
			sweep(t, way(), first, func(t *testing.T, w *fixture, n int) bool { return w.failRecoveries(t, &sum, n) })
			sum.Demand(t, "failed", "recovered before")
			sum.DemandKinds(t, 3)
		})
	}
}

// failRecoveries fails calls of the recovery after a kill before call n. It is false if there is
// no such call.
func (w *fixture) failRecoveries(t *testing.T, sum *harness.Tally, n int) bool {
	t.Helper()
	stride := sample.Thin(t, 89, 79)
	for i := 0; ; i++ {
		f := harness.Fault{Errno: []syscall.Errno{syscall.EIO, syscall.EMFILE, syscall.ENOSPC}[i%3], Onward: i%2 == 1}
		w.reset(t)
		r := w.site.Project.Run(t, harness.Killing(n, w.changing), w.args...)
		if !r.Killed() {
			return false
		}
		var hits []sysfault.Call
		recovery := w.site.Recover(t, &sysfault.Plan{
			N: stride.At(i), Onward: f.Onward, Errno: f.Errno, Match: w.failing, Before: func(c sysfault.Call) { hits = append(hits, c) },
		})
		if recovery.Fault.Fired == 0 {
			return true
		}
		errs := []error{wellSaid(recovery)}
		switch recovery.Status {
		case 0:
			sum.Add("succeeded")
		case 3:
			sum.Add("halted")
			errs = append(errs, w.site.Halted(t))
		default:
			sum.Add("failed")
			if next := w.site.PreviewReply(t, nil); next.Status == 3 {
				errs = append(errs, fmt.Errorf("it has not said that the root is halted: %v", next))
			}
		}
		again := w.site.Recover(t, nil)
		if again.Status != 0 {
			errs = append(errs, fmt.Errorf("the next one: %v", again))
		}
		state, _ := w.site.State()
		sum.Add("recovered " + state.String())
		if err := errors.Join(append(errs, w.ended(t, harness.Before, harness.After))...); err != nil {
			t.Errorf("killed before %s\nrecovery with %v: %s\n%v\n%v", w.site.Last(r), f, w.site.Describe(hits[0]), recovery, err)
		}
	}
}

// began reports whether an undo operation has begun in this trial.
func (w *fixture) began(t testing.TB) bool {
	t.Helper()
	return slices.ContainsFunc(w.auditLog(t)[w.log:], func(e entry) bool { return e.Kind == "rollback_begin" })
}

// moves matches what moves or removes the files that an undo operation is about, but not its
// journal.
func (w *fixture) moves(c sysfault.Call) bool {
	if c.Name != "renameat2" && c.Name != "unlinkat" {
		return false
	}
	return harness.Inside(c.Path, w.above()) && !strings.HasPrefix(filepath.Base(c.Path), ".spectrum06_")
}

// TestHalt makes every move fail from a point on, while journals and the
// state directory can still be written: a root that is not as before is halted then,
// and stays so until recover has done the work.
func TestHalt(t *testing.T) {
	for _, way := range sample.Pick(t, 2, ways) {
		t.Run(way().name, func(t *testing.T) {
			var sum harness.Tally
			sweep(t, way(), sample.Thin(t, 11, 5), func(t *testing.T, w *fixture, n int) bool {
				r := w.site.Project.Run(t, &sysfault.Plan{N: n, Onward: true, Errno: syscall.EIO, Match: w.moves}, w.args...)
				if r.Fault.Fired == 0 {
					return false
				}
				if err := errors.Join(wellSaid(r), w.stays(t, &sum, r), w.afterError(t, &sum, r, harness.Fault{Onward: true})); err != nil {
					t.Errorf("failed from move %d on: %v\n%v", n, r, err)
				}
				return true
			})
			sum.Demand(t, "recovered before")
			if way().name != "whole" { // which has one move
				sum.Demand(t, "halted for good")
			}
			if n := sum.Count("halt not written down"); n > 0 {
				t.Errorf("%d halts were not written down", n)
			}
		})
	}
}

// stays checks that no command touches a halted root, that each reports which tree is in place,
// and that what it reports of each name is true.
func (w *fixture) stays(t *testing.T, sum *harness.Tally, r harness.Reply) error {
	t.Helper()
	if r.Status != 3 {
		return nil
	}
	sum.Add("halted for good")
	found := w.picture(t)
	again := w.args
	if w.command.name == "emergency" { // which ends what halts the root first
		again = []string{"snapshot", "restore", "--json", w.target}
	}
	for _, args := range [][]string{
		again, {"snapshot", "take", w.site.Root}, {"snapshot", "prune", "--keep-last", "1", w.site.Root},
		{"snapshot", "restore", w.newest(t)}, {"rollback", w.commit},
	} {
		again := w.site.Project.Run(t, nil, args...)
		if args[len(args)-1] == w.commit && w.isUndone(t) { // the chain of savepoints went back before it was halted
			continue
		}
		if again.Status != 3 || !strings.Contains(again.Stderr, "\nhint: the root is ") {
			return fmt.Errorf("in a halted root: %v", again)
		}
	}
	if err := w.isWhereItSays(t); err != nil {
		return err
	}
	if diff := harness.Diff(found, w.picture(t)); diff != "" {
		return fmt.Errorf("a halted root was changed:\n%s", diff)
	}
	return nil
}

// newest is the id of the newest snapshot.
func (w *fixture) newest(t *testing.T) string {
	t.Helper()
	all := w.list(t)
	return all[len(all)-1].ID
}

// isUndone reports whether the commit has no savepoint that stands.
func (w *fixture) isUndone(t *testing.T) bool {
	t.Helper()
	return !slices.Contains(w.chain(t), w.savepoint)
}

// isWhereItSays checks what a halt says of each name against the trees of before and after.
func (w *fixture) isWhereItSays(t *testing.T) error {
	t.Helper()
	r := w.site.Project.Run(t, nil, "snapshot", "take", "--json", w.site.Root)
	var said struct {
		Details struct {
			Attempts []struct {
				Stands struct {
					Names []struct {
						Path, Stands  string
						Before, After *string
					}
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(r.Stdout), &said); err != nil || len(said.Details.Attempts) != 1 {
		return fmt.Errorf("%w: %v", err, r)
	}
	stands := said.Details.Attempts[0].Stands
	if len(stands.Names) == 0 {
		return errors.New("it names nothing")
	}
	for _, n := range stands.Names {
		want, isThere := w.site.Before[n.Path]
		if isThere && want.Inode == 0 { // on an overlay an empty directory is removed, and made again
			continue
		}
		if _, err := os.Lstat(w.path(n.Path)); n.Stands == "neither" && err == nil { // no other process changed the root
			return fmt.Errorf("%q: something is there", n.Path)
		}
		if n.Before == nil != !isThere {
			return fmt.Errorf("%q: what was there before is at %v", n.Path, n.Before)
		}
		if n.Before == nil {
			continue
		}
		var is syscall.Stat_t
		err := syscall.Lstat(*n.Before, &is)
		if err != nil || is.Ino != want.Inode && want.Inode != 0 || n.Stands == "before" != (*n.Before == w.path(n.Path)) {
			return fmt.Errorf("%q: it was %v, and at %q is inode %d, %w", n.Path, want, *n.Before, is.Ino, err)
		}
	}
	return nil
}
