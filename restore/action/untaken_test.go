package action_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// TestUntaken: of the manifests that do not verify, those count as never taken that the log does not
// have. A fault of the machine is not damage, and what verifies is a snapshot, whatever the log has.
func TestUntaken(t *testing.T) {
	damage := &snapshot.DamageError{Path: "roots/x/1-forged", Err: errors.New("forged")}
	find := func(id string) (*snapshot.Snapshot, error) {
		switch id {
		case "forged", "damaged":
			return nil, damage
		case "unread":
			return nil, fs.ErrPermission
		}
		return &snapshot.Snapshot{}, nil
	}
	entries := []audit.Entry{{Event: audit.Event{Snapshot: "taken"}}, {}, {Event: audit.Event{Snapshot: "damaged"}}}
	read := func(err error) func(func(audit.Entry) error) (audit.Head, error) {
		return func(visit func(audit.Entry) error) (audit.Head, error) {
			for _, e := range entries {
				if err := visit(e); err != nil {
					return audit.Head{}, err
				}
			}
			return audit.Head{}, err
		}
	}
	if known, err := action.LoggedSnapshots(read(fs.ErrPermission)); err == nil || known != nil {
		t.Errorf("a log that cannot be read has %v, %v", known, err)
	}
	known, err := action.LoggedSnapshots(read(nil))
	if err != nil {
		t.Fatal(err)
	}
	var all []snapshot.Header
	for _, id := range []string{"taken", "damaged", "forged", "unread", "unlogged"} {
		all = append(all, snapshot.Header{ID: id})
	}
	rest, forged := known.NeverTaken(all, find)
	var ids []string
	for _, h := range rest {
		ids = append(ids, h.ID)
	}
	if !slices.Equal(ids, []string{"taken", "damaged", "unread", "unlogged"}) || len(forged) != 1 || forged[0] != damage {
		t.Errorf("left are %q, and %v were never taken", ids, forged)
	}
	for path, want := range map[string]bool{
		"roots/x/1-forged": true, "roots/x/1-taken": false, "roots/x/1-damaged": false, "objects/ab/1-forged": false, "roots/x": false, "roots": false,
	} {
		if known.IsUntaken(path) != want {
			t.Errorf("%q: want %t", path, want)
		}
	}
	if (action.Logged{}).IsUntaken("roots/x/1-forged") {
		t.Error("a log without entries has proven that a snapshot was never taken")
	}
}

// TestUnreadLatest: with no readable savepoint the newest damaged one decides, and without that the
// newest commit that stands by the log.
func TestUnreadLatest(t *testing.T) {
	commit := func(id string, state audit.State, undoneBy string) *audit.Action {
		return &audit.Action{ID: id, State: state, UndoneBy: undoneBy}
	}
	actions := func() []*audit.Action {
		return []*audit.Action{
			commit("first", audit.Done, ""), commit("second", audit.Done, ""), commit("undone", audit.Done, "back"), commit("failed", audit.Failed, ""),
			{ID: "back", State: audit.Done, Rollback: audit.Session},
		}
	}
	older := &savepoint.DamageError{RunDir: "a", Sequence: 1}
	newer := &savepoint.DamageError{RunDir: "b", Sequence: 2}
	retired := &savepoint.DamageError{RunDir: "c", Sequence: 3, Retired: true}
	never := func() []*audit.Action {
		t.Error("the log was read, though a savepoint decides")
		return nil
	}
	unread, lost := action.UnreadLatest("", &savepoint.Survey{Damaged: []*savepoint.DamageError{newer, older, retired}}, nil, never)
	if unread != newer || lost != "" {
		t.Errorf("of damaged savepoints: %v, %q", unread, lost)
	}
	unread, lost = action.UnreadLatest("", &savepoint.Survey{Damaged: []*savepoint.DamageError{retired}}, nil, actions)
	if unread != nil || lost != "second" {
		t.Errorf("without savepoints: %v, %q", unread, lost)
	}
	unread, lost = action.UnreadLatest("/elsewhere", &savepoint.Survey{Damaged: []*savepoint.DamageError{newer}}, nil, func() []*audit.Action { return nil })
	if unread != nil || lost != "" {
		t.Errorf("of another root: %v, %q", unread, lost)
	}
}
