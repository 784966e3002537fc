package action_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"golang.org/x/sys/unix"
)

// settled enters and leaves the root.
func (w *fixture) settled() action.Settled {
	w.t.Helper()
	in := w.enter()
	w.t.Cleanup(func() { _ = in.state.Close() })
	defer in.Leave()
	settled, err := in.Settled(w.logger)
	must(w.t, err)
	if settled.Root() != w.root {
		w.t.Errorf("settled %q", settled.Root())
	}
	return settled
}

// TestUnsettled: a root that was entered without an end of what is unfinished there is not settled.
func TestUnsettled(t *testing.T) {
	w := newFixture(t)
	state := w.state()
	defer state.Close()
	key, err := state.JournalKey()
	must(t, err)
	for name, entry := range map[string]action.Entry{"dry run": {DryRun: true}, "preview": {Previewed: true}} {
		entry.Key, entry.Bars, entry.Savepoints = key, state, w.savepoints()
		in, _, err := action.Enter(context.Background(), w.root, entry)
		must(t, err)
		if _, err := in.Settled(w.logger); err == nil {
			t.Errorf("%s: settled", name)
		}
		in.Leave()
	}
}

// TestAcceptLoss: the log excuses exactly the records of which the loss was accepted.
func TestAcceptLoss(t *testing.T) {
	w := newFixture(t)
	lost := []string{strings.Repeat("a", 64), strings.Repeat("b", 64)}
	checked := w.settled().Checked(true, lost)
	must(t, checked.AcceptLoss("the loss stays", "the disk broke"))
	entry := w.lastEntry()
	if !slices.Equal(entry.Lost, lost) || !slices.Equal(checked.Lost(), lost) || entry.Root != w.root || entry.Reason != `the loss stays; "the disk broke"` || entry.Action == "" {
		t.Errorf("%+v", entry)
	}
	var ledger audit.Ledger
	must(t, ledger.Add(entry))
	if !ledger.Accepts(lost[0]) || !ledger.Accepts(lost[1]) || ledger.Accepts(strings.Repeat("c", 64)) {
		t.Error("the ledger accepts another loss")
	}
	if err := w.settled().Checked(false, nil).AcceptLoss("nothing is lost", ""); err == nil {
		t.Error("the loss of nothing was accepted")
	}
}

// TestEndBar: the halt of a root without damage ends as it is; with damage only with a statement, which the
// log has. Without the ID of the rollback the log has that of the last refusal.
func TestEndBar(t *testing.T) {
	const id = "11111111-1111-4111-8111-111111111111"
	lost := []string{strings.Repeat("a", 64)}
	for name, test := range map[string]struct {
		id        string
		isDamaged bool
		lost      []string
		statement string
		reason    string // of the operator
		logged    string // "" where the halt stays
	}{
		"undamaged":              {id, false, nil, "", "", "recover found nothing unfinished and nothing damaged"},
		"undamaged, with reason": {id, false, nil, "", "looked", `recover found nothing unfinished and nothing damaged; "looked"`},
		"damaged":                {id, true, nil, "", "looked", ""},
		"lost":                   {id, false, lost, "", "looked", ""},
		"damaged, stated":        {id, true, nil, "it stays", "looked", `"it stays"; "looked"`},
		"an unread mark":         {"", false, nil, "", "", "recover found nothing unfinished and nothing damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			settled := w.settled()
			state := w.state()
			defer state.Close()
			f := action.Refusal{Root: w.root, Kind: audit.Session, Why: unix.EIO}
			if unrecorded := f.Record(w.logger, state); len(unrecorded) > 0 {
				t.Fatal(unrecorded)
			}
			refused := w.lastEntry()
			err := settled.Checked(test.isDamaged, test.lost).EndBar(test.id, test.statement, test.reason)
			is, _ := state.Barred(w.root)
			last := w.lastEntry()
			if test.logged == "" {
				if !errors.Is(err, action.ErrUnstated) || !is || last.Sequence != refused.Sequence {
					t.Errorf("%v, halted: %t, logged %+v", err, is, last.Event)
				}
				return
			}
			must(t, err)
			want := test.id
			if want == "" {
				want = refused.Action
			}
			if is || last.Kind != audit.Released || last.Action != want || audit.RootOf(last.Root) != w.root || last.Reason != test.logged {
				t.Errorf("halted: %t, logged %+v", is, last.Event)
			}
		})
	}
}

// TestEndBarStays: the end of a halt is not logged while its mark cannot be removed.
func TestEndBarStays(t *testing.T) {
	w := newFixture(t)
	checked := w.settled().Checked(false, nil)
	state := w.state()
	defer state.Close()
	must(t, state.Bar(w.root, firstLeft, "session", "a test"))
	mark := w.markOf()
	must(t, os.Remove(mark))
	must(t, os.Mkdir(mark, 0o700))
	before, _ := w.log()
	var barred *action.BarredError
	if err := checked.CanEndBar(); !errors.As(err, &barred) || barred.Root != w.root {
		t.Errorf("it can end: %v", err)
	}
	err := checked.EndBar(firstLeft, "", "")
	if after, _ := w.log(); !errors.As(err, &barred) || len(after) != len(before) {
		t.Errorf("ended: %v, logged %q", err, after)
	}
}
