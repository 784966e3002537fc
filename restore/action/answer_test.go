package action_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/restoretest"
)

// usedUp are the previews that were used.
type usedUp map[string]bool

func (u usedUp) Used(id string) (bool, error) { return u[id], nil }

// TestAnswer: the order in which an answer to a preview is judged. That the preview was used comes first; a
// slip of form holds nothing, and a vague answer holds the candidate, which then cannot be approved.
func TestAnswer(t *testing.T) {
	s := newScene(t, "single")
	origin := preview.Origin{RunDirs: s.runDirs(), RestoreRoot: s.root}
	r := restoretest.Plan(t, restore.Candidate{Runs: restoretest.OpenRuns(t, s.Root, s.runDirs()...)}, s.root)
	p, err := preview.New(t.Context(), r, preview.Request{Origin: origin})
	must(t, err)
	raw, err := p.Keep()
	must(t, err)
	record, err := preview.ParseRecord(raw, p.ID())
	must(t, err)
	place := t.TempDir()
	must(t, os.Chmod(place, 0o700))
	open := func() (*quarantine.Store, error) {
		return quarantine.Open(place, func(quarantine.Change) error { return nil })
	}
	isHeld := func() bool {
		t.Helper()
		store, err := open()
		must(t, err)
		defer store.Close()
		var held *quarantine.HeldError
		err = action.CheckQuarantine(t.Context(), store, origin, p)
		return errors.As(err, &held)
	}
	unfinished := audit.Entry{Event: audit.Event{Kind: audit.CommitBegin, Action: firstLeft, Root: s.root, Preview: p.ID()}, Time: time.Unix(1, 0), Open: map[string]string{firstLeft: s.root}}
	ended := audit.Entry{Event: audit.Event{Kind: audit.CommitEnd, Action: firstLeft, Root: s.root}, Time: time.Unix(2, 0)}
	answer := func(text string, used bool, entries ...audit.Entry) *action.Answer {
		return &action.Answer{Record: record, Text: text, Used: usedUp{p.ID(): used}, Quarantine: open, Log: func(visit func(audit.Entry) error) (head audit.Head, err error) {
			for _, e := range entries {
				head.Open = e.Open
				err = errors.Join(err, visit(e))
			}
			return head, err
		}}
	}
	var slip *action.SlipError
	var vague *action.VagueError
	for name, test := range map[string]struct {
		answer *action.Answer
		is     func(error) bool
	}{
		"fits":                {answer(" "+p.Recommended()+"\n", false), func(err error) bool { return err == nil }},
		"form":                {answer("\""+p.Recommended()+"\"", false), func(err error) bool { return errors.As(err, &slip) }},
		"used":                {answer(p.Recommended(), true, unfinished, ended), func(err error) bool { return errors.Is(err, preview.ErrUsed) }},
		"used, vague":         {answer("sure", true, unfinished, ended), func(err error) bool { return errors.Is(err, preview.ErrUsed) }},
		"in use":              {answer(p.Recommended(), true, unfinished), func(err error) bool { return err == nil }},
		"in use, vague":       {answer("sure", true, unfinished), func(err error) bool { return errors.Is(err, preview.ErrUsed) && !errors.As(err, &vague) }},
		"in use, with a form": {answer("\""+p.Recommended()+"\"", true, unfinished), func(err error) bool { return errors.Is(err, preview.ErrUsed) }},
	} {
		said, err := test.answer.Statement(t.Context())
		if !test.is(err) || (said == nil) != (err != nil) || isHeld() {
			t.Errorf("%s: %v, %v, held: %t", name, said, err, isHeld())
		}
	}
	approving := answer(p.Recommended(), false)
	said, err := approving.Statement(t.Context())
	must(t, err)
	if approval, err := approving.Approve(t.Context(), said, p, origin); err != nil || !approval.Whole() {
		t.Errorf("approved: %v", err)
	}
	if _, err := answer("sure", false).Statement(t.Context()); !errors.As(err, &vague) || !isHeld() {
		t.Errorf("vague: %v, held: %t", err, isHeld())
	}
	var held *quarantine.HeldError
	if approval, err := approving.Approve(t.Context(), said, p, origin); !errors.As(err, &held) || approval != nil {
		t.Errorf("a held candidate is approved: %v", err)
	}
	shut := answer("sure", false)
	shut.Quarantine = func() (*quarantine.Store, error) { return nil, os.ErrPermission }
	if _, err := shut.Statement(t.Context()); !errors.Is(err, os.ErrPermission) || !errors.Is(err, preview.ErrVague) {
		t.Errorf("no quarantine: %v", err)
	}
}
