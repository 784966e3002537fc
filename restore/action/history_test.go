package action_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/harness"
)

// ledger is an audit log of a test's own.
type ledger struct {
	t    testing.TB
	path string
}

func newLedger(t testing.TB) *ledger {
	return &ledger{t, filepath.Join(t.TempDir(), "audit.log")}
}

func (l *ledger) open() *audit.Log {
	l.t.Helper()
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(l.t, err)
	return audit.New(f)
}

// entries reads the log, which has to be good.
func (l *ledger) entries() []audit.Entry {
	l.t.Helper()
	log := l.open()
	defer log.Close()
	var entries []audit.Entry
	_, err := log.Read(func(e audit.Entry) error {
		entries = append(entries, e)
		return nil
	})
	must(l.t, err)
	return entries
}

// check requires these events, as "kind rollback", all of one action each begins.
func (l *ledger) check(want ...string) {
	l.t.Helper()
	var got []string
	for _, e := range l.entries() {
		got = append(got, strings.TrimSpace(fmt.Sprint(e.Kind, " ", e.Rollback)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Error(diff)
	}
}

// enter enters the scene's root with the log.
func (s *scene) enter(l *ledger, mode staging.Mode) (*action.Root, error) {
	in, _, err := action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Log: l.open(), Mode: mode, Acknowledge: looked})
	return in, err
}

// run commits with the log, and the fault of do at the beginning of a phase.
func (s *scene) run(l *ledger, phase string, do func()) error {
	s.t.Helper()
	a := s.approve()
	in, err := s.enter(l, staging.Automatic)
	must(s.t, err)
	defer in.Leave()
	return action.Commit(context.Background(), in, a, action.Watch{Progress: func(now string, bytes int64) {
		if now == phase && bytes == 0 && do != nil {
			do()
			do = nil
		}
	}})
}

func TestHistoryOfASuccess(t *testing.T) {
	s, l := newScene(t, "chain"), newLedger(t)
	seen := 0
	must(t, s.run(l, stagePhase, func() { seen = len(l.entries()) }))
	if seen != 1 {
		t.Errorf("%d events when the first file was staged", seen)
	}
	l.check("commit_begin", "commit_end")
	begin, end := l.entries()[0], l.entries()[1]
	if begin.Action != end.Action || begin.Root != s.root || end.Root != s.root || len(begin.Preview) != 64 || len(end.Open) > 0 {
		t.Errorf("%+v\n%+v", begin, end)
	}
}

// TestHistoryOfAFailure: a rollback is logged with its type and its reason.
func TestHistoryOfAFailure(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	rivals := rival("top.txt")
	err := s.run(l, stagePhase, func() { must(t, os.WriteFile(s.source("top.txt"), []byte("TOP\n"), 0o644)) })
	if failureOf(t, err).Code != restore.StagingHashMismatch {
		t.Fatal(err)
	}
	l.check("commit_begin", "rollback micro")
	if reason := l.entries()[1].Reason; !strings.Contains(reason, string(restore.StagingHashMismatch)) {
		t.Errorf("reason %q", reason)
	}

	// one that fails leaves the action open, and is logged once more only when
	// a person has acted
	must(t, os.WriteFile(s.source("top.txt"), []byte("top\n"), 0o644))
	err = s.run(l, finalizePhase, func() { rivals(s) })
	if failureOf(t, err).Code != restore.RollbackFailed {
		t.Fatal(err)
	}
	if _, err := s.enter(l, staging.Automatic); !errors.Is(err, staging.ErrHalted) {
		t.Fatal(err)
	}
	l.check("commit_begin", "rollback micro", "commit_begin", "halt")
	in, err := s.enter(l, staging.Acknowledged)
	must(t, err)
	in.Leave()
	l.check("commit_begin", "rollback micro", "commit_begin", "halt", "release")
	if last := l.entries()[4]; len(last.Open) > 0 || !strings.HasPrefix(last.Reason, `"I have looked"; left: `) {
		t.Errorf("%+v", last)
	}
}

// TestNothingWithoutLog: what cannot be logged is not begun.
func TestNothingWithoutLog(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	a, before := s.approve(), s.census()
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	in, _, err := action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Log: audit.New(f)})
	must(t, err)
	must(t, f.Close())
	if got := failureOf(t, action.Commit(context.Background(), in, a, action.Watch{})); got.Code != restore.InternalError || got.Phase != restore.Execute {
		t.Errorf("%+v", got)
	}
	in.Leave()
	if after := s.census(); after != before {
		t.Errorf("something was written: %s", after)
	}
}

// TestUnloggedEnd: what is complete and could not be logged stays, with its
// journal, and is logged by the next one to enter.
func TestUnloggedEnd(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	a := s.approve()
	in, _, err := action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Log: audit.New(f)})
	must(t, err)
	var left []string
	must(t, action.Commit(context.Background(), in, a, action.Watch{
		Progress: func(phase string, _ int64) {
			if phase == publishPhase {
				_ = f.Close()
			}
		},
		Leftover: func(name string, err error) { left = append(left, fmt.Sprint(name, err)) },
	}))
	in.Leave()
	if len(left) != 1 || !strings.Contains(left[0], "audit log") {
		t.Errorf("left over: %q", left)
	}
	l.check("commit_begin")
	again, err := s.enter(l, staging.Automatic)
	must(t, err)
	again.Leave()
	l.check("commit_begin", "commit_end")
}

// TestHistoryOfAKill: what was killed is ended by the next one to enter, found
// or not; what is open in another root is not its to end.
func TestHistoryOfAKill(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	log := l.open()
	const gone, other = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
	must(t, log.Append(audit.Event{Kind: audit.CommitBegin, Action: gone, Root: s.root}))
	must(t, log.Append(audit.Event{Kind: audit.CommitBegin, Action: other, Root: s.root + "2"}))
	must(t, log.Close())
	in, err := s.enter(l, staging.Automatic)
	must(t, err)
	in.Leave()
	l.check("commit_begin", "commit_begin", "rollback emergency")
	last := l.entries()[2]
	if diff := cmp.Diff(map[string]string{other: s.root + "2"}, last.Open); diff != "" || last.Action != gone {
		t.Errorf("%+v: %s", last, diff)
	}
}

// TestHistoryOfAMovedRoot: an end that was logged because another directory
// stands where the root was is followed by the true one.
func TestHistoryOfAMovedRoot(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	moved := s.root + ".moved"
	must(t, s.run(l, publishPhase, func() {
		must(t, os.Rename(s.root, moved))
		must(t, os.Mkdir(s.root, 0o700))
		in, err := s.enter(l, staging.Automatic)
		must(t, err)
		in.Leave()
		l.check("commit_begin", "rollback emergency")
	}))
	l.check("commit_begin", "rollback emergency", "commit_end")
	if all := l.entries(); len(all[len(all)-1].Open) > 0 {
		t.Errorf("%+v", all)
	}
}

// TestHistoryOfTheUnknown: what is undone or left of an attempt that this log
// has never heard of is logged too; that it halts the root is logged once.
func TestHistoryOfTheUnknown(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	const id = "11111111-1111-4111-8111-111111111111"
	stage := filepath.Join(s.root, ".spectrum06_staging_"+id)
	must(t, os.Mkdir(stage, 0o700))
	must(t, os.WriteFile(filepath.Join(stage, ".spectrum06_intent"), []byte("of another key"), 0o600))
	for range 3 {
		if _, err := s.enter(l, staging.Automatic); err == nil {
			t.Fatal("entered")
		}
	}
	l.check("halt")
	in, err := s.enter(l, staging.Acknowledged)
	must(t, err)
	in.Leave()
	l.check("halt", "release")
	for _, e := range l.entries() {
		if e.Action != id || e.Reason == "" {
			t.Errorf("%+v", e)
		}
	}
}

// TestHistoryOfAnEmptyStaging: an attempt of which only the empty staging
// directory was left has ended as the log says.
func TestHistoryOfAnEmptyStaging(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	must(t, s.run(l, stagePhase, nil))
	stage := filepath.Join(s.root, ".spectrum06_staging_"+l.entries()[0].Action)
	must(t, os.Mkdir(stage, 0o700))
	in, err := s.enter(l, staging.Automatic)
	must(t, err)
	in.Leave()
	if _, err := os.Lstat(stage); err == nil {
		t.Error("it was not cleared away")
	}
	l.check("commit_begin", "commit_end")
}

// TestReleaseIsLoggedFirst: without the log nothing is released, so that what is left is never
// mistaken for rolled back.
func TestReleaseIsLoggedFirst(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	const id = "11111111-1111-4111-8111-111111111111"
	stage := filepath.Join(s.root, ".spectrum06_staging_"+id)
	must(t, os.Mkdir(stage, 0o700))
	must(t, os.WriteFile(filepath.Join(stage, ".spectrum06_intent"), []byte("of another key"), 0o600))
	before := s.census()
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	must(t, f.Close())
	if _, _, err := action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Log: audit.New(f), Mode: staging.Acknowledged, Acknowledge: looked}); err == nil {
		t.Error("released without a log")
	}
	if after := s.census(); after != before {
		t.Errorf("before %s, after %s", before, after)
	}
}

// TestLogIsClosed: with the root, and when the root is not entered.
func TestLogIsClosed(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	before := harness.OpenFiles(t, os.Getpid())
	in, err := s.enter(l, staging.Automatic)
	must(t, err)
	must(t, in.Hold(t.Context()))
	if _, err := s.enter(l, staging.Automatic); err == nil {
		t.Error("entered twice")
	}
	in.Leave()
	if after := harness.OpenFiles(t, os.Getpid()); !slices.Equal(before, after) {
		t.Errorf("open: %q, before %q", after, before)
	}
}

// TestUnloggedRollback: a rollback that cannot be logged is done all the same,
// its failure says so, and the next one to enter logs it.
func TestUnloggedRollback(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	must(t, err)
	a, before := s.approve(), entriesIn(t, s.root)
	in, _, err := action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Log: audit.New(f)})
	must(t, err)
	err = action.Commit(context.Background(), in, a, action.Watch{Progress: func(phase string, _ int64) {
		if phase == stagePhase {
			_ = os.WriteFile(s.source("top.txt"), []byte("TOP\n"), 0o644)
			_ = f.Close()
		}
	}})
	in.Leave()
	if failureOf(t, err).Code != restore.StagingHashMismatch || !strings.Contains(err.Error(), "audit log") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(paths(before), paths(entriesIn(t, s.root))); diff != "" {
		t.Error(diff)
	}
	l.check("commit_begin")
	again, err := s.enter(l, staging.Automatic)
	must(t, err)
	again.Leave()
	l.check("commit_begin", "rollback emergency")
}

func paths(tree map[string]entry) []string { return slices.Sorted(maps.Keys(tree)) }
