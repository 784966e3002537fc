package action_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
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
