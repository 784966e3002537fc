package action_test

import (
	"context"
	"errors"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// shutBars cannot mark a root, and may be in the way of a mark's end.
type shutBars struct {
	action.Bars
	inTheWay error
}

func (shutBars) Bar(string, string, string, string) error { return unix.EROFS }
func (b shutBars) Unbarrable(string) error                { return b.inTheWay }

// TestEmergencyRelease: before an emergency rollback releases the attempts that halt a root, the root is
// halted for other commands. Only these attempts are released, and nothing without a snapshot to go back
// to. A dry run halts nothing.
func TestEmergencyRelease(t *testing.T) {
	w := newFixture(t)
	w.write("a", "alpha")
	state := w.state()
	defer state.Close()
	snapshots := w.snapshots()
	defer snapshots.Close()
	release := action.EmergencyRelease{Root: w.root, Attempts: []*staging.HaltError{{Attempt: firstLeft, Err: unix.EIO}}, Why: errors.New("it is halted")}
	if is, err := release.IsPossible(context.Background(), snapshots); is || err != nil {
		t.Errorf("without a snapshot: %t, %v", is, err)
	}
	w.take()
	if is, err := release.IsPossible(context.Background(), snapshots); !is || err != nil {
		t.Errorf("with a snapshot: %t, %v", is, err)
	}
	entry, err := release.Entry(state, action.Entry{DryRun: true, Reason: "why"})
	if is, _ := state.Barred(w.root); err != nil || is || !entry.Releases || entry.Acknowledge != nil || entry.Mode != staging.Acknowledged || entry.Reason != "why" {
		t.Errorf("dry run: %+v, %v, halted: %t", entry, err, is)
	}
	entry, err = release.Entry(state, action.Entry{})
	must(t, err)
	if mark, is := state.BarOf(w.root); !is || mark.Kind != "emergency" || mark.Reason != "the root was halted when it began: it is halted" {
		t.Errorf("halted: %t, %+v", is, mark)
	}
	if said, err := entry.Acknowledge(firstLeft, unix.EIO); said != action.ReleasedForEmergency || err != nil || entry.Releases {
		t.Errorf("%q, %v", said, err)
	}
	if said, err := entry.Acknowledge(secondLeft, unix.EIO); said != "" || !errors.Is(err, unix.EIO) {
		t.Errorf("another attempt is released: %q, %v", said, err)
	}
}

// TestEmergencyReleaseUnmarked: a root that cannot be marked is not entered, unless what is in the way of
// the mark halts it too.
func TestEmergencyReleaseUnmarked(t *testing.T) {
	release := action.EmergencyRelease{Root: "/root", Why: errors.New("it is halted")}
	if _, err := release.Entry(shutBars{}, action.Entry{}); !errors.Is(err, unix.EROFS) {
		t.Errorf("not marked: %v", err)
	}
	if entry, err := release.Entry(shutBars{inTheWay: unix.ENOTDIR}, action.Entry{}); err != nil || entry.Acknowledge == nil {
		t.Errorf("something is in the way: %v", err)
	}
}
