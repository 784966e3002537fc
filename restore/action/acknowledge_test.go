package action_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

const (
	firstLeft  = "11111111-1111-4111-8111-111111111111"
	secondLeft = "22222222-2222-4222-8222-222222222222"
)

// leave puts journals into the root that cannot be verified.
func (s *scene) leave(attempts ...string) {
	s.t.Helper()
	for _, attempt := range attempts {
		stage := filepath.Join(s.root, ".spectrum06_staging_"+attempt)
		must(s.t, os.Mkdir(stage, 0o700))
		must(s.t, os.WriteFile(filepath.Join(stage, ".spectrum06_intent"), []byte("no journal"), 0o600))
	}
}

// haltsIn are the attempts that an error names.
func haltsIn(err error) (ids []string) {
	for _, h := range action.HaltsOf(err) {
		ids = append(ids, h.Attempt)
	}
	return ids
}

// TestAllHalts: every attempt that cannot be ended is named, and logged once.
func TestAllHalts(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	s.leave(secondLeft, firstLeft)
	for range 2 {
		_, err := s.enter(l, staging.Person)
		if got := haltsIn(fmt.Errorf("wrapped: %w", err)); len(got) != 2 || got[0] != firstLeft || got[1] != secondLeft {
			t.Errorf("%q of %v", got, err)
		}
	}
	l.check("halt", "halt")
	if got := haltsIn(errors.New("another")); got != nil {
		t.Errorf("%q", got)
	}
}

// TestOnlyWhatIsNamed: an attempt that was not acknowledged is not released, and the
// acknowledgement of the other one is logged with what is left.
func TestOnlyWhatIsNamed(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	s.leave(firstLeft, secondLeft)
	unknown := errors.New("not this one")
	said := strings.Repeat("\u00e9\n", 10_000)
	enter := func(acknowledge func(string, error) (string, error)) ([]staging.Outcome, error) {
		in, ended, err := action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Log: l.open(), Mode: staging.Acknowledged, Acknowledge: acknowledge})
		in.Leave()
		return ended, err
	}
	if ended, err := enter(nil); len(ended) != 0 || len(haltsIn(err)) != 2 {
		t.Errorf("none: %v, %v", ended, err)
	}
	l.check("halt", "halt")
	ended, err := enter(func(attempt string, left error) (string, error) {
		if attempt != secondLeft || left == nil {
			return "", unknown
		}
		return said, nil
	})
	if !errors.Is(err, unknown) || len(ended) != 1 || ended[0].Attempt != secondLeft || ended[0].Result != staging.Released {
		t.Errorf("one: %v, %v", ended, err)
	}
	l.check("halt", "halt", "release")
	reason := l.entries()[2].Reason
	if !strings.HasPrefix(reason, `"`+"\u00e9"+`\n`) || !strings.Contains(reason, `"; left: `) || strings.ContainsRune(reason, '\n') {
		t.Errorf("%.40q ... %d bytes", reason, len(reason))
	}
	if got := haltsIn(err); len(got) != 1 || got[0] != firstLeft {
		t.Errorf("left: %q", got)
	}
}

// unreadable are halts that cannot be looked up.
type unreadable struct{ halts }

func (unreadable) Halted(string) (bool, error) { return true, unix.EIO }

// TestFaultHaltsNothing: an attempt that only a fault of the machine keeps from its end halts
// nothing, and is not logged as a halt.
func TestFaultHaltsNothing(t *testing.T) {
	s, l := newScene(t, "single"), newLedger(t)
	s.leave(firstLeft, secondLeft)
	in, _, err := action.Enter(context.Background(), s.root, action.Entry{Key: restoretest.JournalKey, Log: l.open(), Halts: unreadable{}})
	in.Leave()
	var unfinished *action.UnfinishedError
	if got := haltsIn(err); len(got) != 0 || !errors.As(err, &unfinished) || !errors.Is(err, unix.EIO) || len(action.UnfinishedOf(err)) != 2 {
		t.Errorf("%q of %v", got, err)
	}
	l.check()
}
