package action_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// logger opens the audit log.
func (w *fixture) logger() (*audit.Log, error) {
	state := w.state()
	defer state.Close()
	f, err := state.AuditLog()
	if err != nil {
		return nil, err
	}
	return audit.New(f), nil
}

// lastEntry is the newest entry of the audit log.
func (w *fixture) lastEntry() (last audit.Entry) {
	w.t.Helper()
	log, err := w.logger()
	must(w.t, err)
	defer log.Close()
	_, err = log.Read(func(e audit.Entry) error { last = e; return nil })
	must(w.t, err)
	return last
}

// TestRefusalIsRecorded: a rollback that could not begin outside of an entered root is logged, and halts
// the root unless it was a mistake. The mark and the log have the same ID.
func TestRefusalIsRecorded(t *testing.T) {
	for name, test := range map[string]struct {
		refusal action.Refusal
		halts   bool
	}{
		"the disk fails":         {action.Refusal{Kind: audit.Session, Commits: []string{"11111111-1111-4111-8111-111111111111"}, Why: unix.EIO}, true},
		"an emergency":           {action.Refusal{Kind: audit.Emergency, Why: unix.EIO}, true},
		"another command":        {action.Refusal{Kind: audit.Session, Why: &staging.BusyError{}}, false},
		"it was never taken":     {action.Refusal{Kind: audit.Session, Why: &snapshot.DamageError{Err: unix.EIO}, Untaken: true}, false},
		"the snapshot is broken": {action.Refusal{Kind: audit.Session, Why: &snapshot.DamageError{Err: unix.EIO}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			state := w.state()
			defer state.Close()
			test.refusal.Root = w.root
			if unrecorded := test.refusal.Record(w.logger, state); len(unrecorded) > 0 {
				t.Fatal(unrecorded)
			}
			e := w.lastEntry()
			if e.Kind != audit.RollbackRefused || audit.RootOf(e.Root) != w.root || e.Rollback != test.refusal.Kind ||
				!slices.Equal(e.Actions, test.refusal.Commits) || e.Reason != test.refusal.Why.Error() {
				t.Errorf("logged %+v", e.Event)
			}
			mark, is := state.BarOf(w.root)
			if is != test.halts || test.refusal.Halts() != test.halts {
				t.Fatalf("halted: %t, want %t", is, test.halts)
			}
			if is && (mark.ID != e.Action || mark.Kind != string(e.Rollback) || mark.Reason != e.Reason) {
				t.Errorf("the mark is %+v, the entry %+v", mark, e.Event)
			}
		})
	}
}

// TestRefusalUnlogged: a refusal that cannot be logged halts all the same, and both errors are returned.
func TestRefusalUnlogged(t *testing.T) {
	w := newFixture(t)
	state := w.state()
	defer state.Close()
	f := action.Refusal{Root: w.root, Kind: audit.Session, Why: unix.EIO}
	shut := func() (*audit.Log, error) { return nil, unix.ENOSPC }
	unrecorded := f.Record(shut, state)
	if is, _ := state.Barred(w.root); !is || len(unrecorded) != 1 || !errors.Is(unrecorded[0], unix.ENOSPC) || !strings.HasPrefix(unrecorded[0].Error(), "that it could not begin could not be logged: ") {
		t.Errorf("halted: %t, %v", is, unrecorded)
	}
	if unrecorded := f.Record(shut, shutBars{}); len(unrecorded) != 2 || !errors.Is(unrecorded[1], unix.EROFS) {
		t.Errorf("%v", unrecorded)
	}
}

// TestRefusalsOf: the refusal of a rollback whose record cannot be read is of the root that the record is
// of. A manifest that the log does not have halts nothing. If a fault of the machine hides the record, the
// log has the root, if it is one only.
func TestRefusalsOf(t *testing.T) {
	rootOf := func(key string) string {
		return map[string]string{"k1": "/one", "k2": "/two"}[key]
	}
	read := func(visit func(audit.Entry) error) (audit.Head, error) {
		for _, e := range []audit.Event{
			{Root: "/one", Action: "aaaa1", Snapshot: "taken"}, {Root: "/two", Action: "aaaa2"}, {Action: "bbbb1"}, {Root: "/two", Action: "cccc1"},
		} {
			if err := visit(audit.Entry{Event: e}); err != nil {
				return audit.Head{}, err
			}
		}
		return audit.Head{}, nil
	}
	of := func(root string, untaken bool, commits ...string) string { return fmt.Sprint(root, untaken, commits) }
	for name, test := range map[string]struct {
		id   string
		why  error
		want []string
	}{
		"a savepoint":            {"aaaa1", &action.UnreadError{Commit: "aaaa1", Err: &savepoint.DamageError{RunDir: "savepoints/k1/aaaa1", Err: unix.EBADMSG}}, []string{of("/one", false, "aaaa1")}},
		"a snapshot":             {"take", &snapshot.DamageError{Path: "roots/k1/1-taken", Err: unix.EBADMSG}, []string{of("/one", false)}},
		"no snapshot":            {"forg", &snapshot.DamageError{Path: "roots/k1/1-forged", Err: unix.EBADMSG}, []string{of("/one", true)}},
		"contents":               {"take", &snapshot.DamageError{Path: "objects/ab/abcd", Err: errors.New("it differs")}, nil},
		"the disk":               {"aaaa1", unix.EIO, []string{of("/one", false)}},
		"the disk, a snapshot":   {"take", unix.EIO, []string{of("/one", false)}},
		"the disk, two roots":    {"aaaa", unix.EIO, nil},
		"the disk, all roots":    {action.Latest, unix.EIO, nil},
		"the disk, no root":      {"bbbb1", unix.EIO, nil},
		"the disk, too short":    {"ccc", unix.EIO, nil},
		"an unknown commit":      {"aaaa1", errors.New("there is no such commit"), nil},
		"the record, by the log": {"cccc", &snapshot.DamageError{Path: "roots/k3/1-forged", Err: unix.EIO}, []string{of("/two", false)}},
	} {
		var found []string
		for _, f := range action.RefusalsOf(test.id, test.why, rootOf, read) {
			found = append(found, of(f.Root, f.Untaken, f.Commits...))
			if f.Kind != audit.Session || f.Why != test.why {
				t.Errorf("%s: %+v", name, f)
			}
		}
		if !slices.Equal(found, test.want) {
			t.Errorf("%s: %q, want %q", name, found, test.want)
		}
	}
}
