package action_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestEnterRejects: what is not an absolute path of a directory, has no key, or is
// in use, is not entered, and nothing is made there.
func TestEnterRejects(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	t.Chdir(dir)
	for _, path := range []string{"", ".", "file", dir + "/none", dir + "/file", dir + "/\x00"} {
		in, ended, err := action.Enter(t.Context(), path, action.Entry{Key: restoretest.JournalKey})
		if !errors.Is(err, action.ErrNoRoot) || in != nil || ended != nil {
			t.Errorf("%q: %v, %v, %v", path, in, ended, err)
		}
	}
	if in, _, err := action.Enter(t.Context(), dir, action.Entry{Key: restoretest.JournalKey[:staging.MinKey-1]}); err == nil || in != nil {
		t.Errorf("a short key: %v, %v", in, err)
	}
	first, _, err := action.Enter(t.Context(), dir, action.Entry{Key: restoretest.JournalKey})
	must(t, err)
	must(t, first.Hold(t.Context()))
	second, _, err := action.Enter(t.Context(), dir, action.Entry{Key: restoretest.JournalKey})
	if !errors.Is(err, pathsafe.ErrLocked) || second != nil {
		t.Errorf("a second one: %v, %v", second, err)
	}
	first.Leave()
	second.Leave() // which was never entered
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestRunNeedsItsRoot: an approval is not carried out in a root that was not
// entered, nor in another one; why is in the failure, and nothing is written.
func TestRunNeedsItsRoot(t *testing.T) {
	for name, root := range map[string]func(t *testing.T) (in *action.Root, why error){
		"none":        func(*testing.T) (*action.Root, error) { return nil, nil },
		"not entered": func(*testing.T) (*action.Root, error) { return action.NotEntered(io.ErrClosedPipe), io.ErrClosedPipe },
		"another": func(t *testing.T) (*action.Root, error) {
			in, _, err := action.Enter(t.Context(), t.TempDir(), action.Entry{Key: restoretest.JournalKey})
			must(t, err)
			return in, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "single")
			a, before := s.approve(), bundletest.Census(t, s.root)
			in, why := root(t)
			defer in.Leave()
			err := action.Commit(t.Context(), in, a, action.Watch{})
			if got := failureOf(t, err); got != (restore.Failure{Code: restore.InternalError, Phase: restore.Preflight}) {
				t.Errorf("%+v", got)
			}
			if why != nil && !errors.Is(err, why) {
				t.Errorf("%v does not say why", err)
			}
			if bundletest.Census(t, s.root) != before {
				t.Error("it left a trace")
			}
		})
	}
}

// TestRunWithClosedRoot: what was planned for cannot be looked at any more.
func TestRunWithClosedRoot(t *testing.T) {
	s := newScene(t, "single")
	a := s.approve()
	must(t, a.Restore().Close())
	err := s.commit(t.Context(), a, nil)
	if got := failureOf(t, err); got != (restore.Failure{Code: restore.InternalError, Phase: restore.Preflight}) {
		t.Errorf("%+v", got)
	}
}

// TestRunIsBlocked: an approval of a preview with conflicts is rejected before
// the root is looked at.
func TestRunIsBlocked(t *testing.T) {
	s := newScene(t, "single")
	must(t, os.WriteFile(s.at("top.txt"), []byte("theirs"), 0o644))
	a, before := s.approve(), bundletest.Census(t, s.root)
	err := action.Commit(t.Context(), nil, a, action.Watch{})
	if got := failureOf(t, err); got != (restore.Failure{Code: restore.TargetPathExists, Phase: restore.Execute, Path: "top.txt"}) {
		t.Errorf("%+v", got)
	}
	if bundletest.Census(t, s.root) != before {
		t.Error("it left a trace")
	}
}

// TestEnterForeign: a root that another user can rename is entered when its real path is
// named, or when a preview shows who can; else nothing is ended there, and nothing logged.
func TestEnterForeign(t *testing.T) {
	const gone = "11111111-1111-4111-8111-111111111111"
	s, l := newScene(t, "single"), newLedger(t)
	log := l.open()
	must(t, log.Append(audit.Event{Kind: audit.CommitBegin, Action: gone, Root: s.root}))
	must(t, log.Close())
	shared := t.TempDir()
	link := filepath.Join(shared, "link")
	must(t, os.Symlink(s.root, link))
	for _, test := range []struct {
		mode      os.FileMode
		foreign   []string
		previewed bool
		isEntered bool
	}{
		{mode: 0o777},
		{mode: 0o777, foreign: []string{link, "/", filepath.Dir(s.root), s.root + "/"}},
		{mode: 0o777, foreign: []string{"/", s.root}, isEntered: true},
		{mode: 0o777, previewed: true, isEntered: true},
		{mode: 0o777 | os.ModeSticky, isEntered: true},
		{mode: 0o755, isEntered: true},
		{mode: 0o755, foreign: []string{"/", s.root}, isEntered: true},
	} {
		must(t, os.Chmod(shared, test.mode))
		events, before := len(l.entries()), bundletest.Census(t, s.root)
		in, ended, err := action.Enter(t.Context(), link, action.Entry{Key: restoretest.JournalKey, Log: l.open(), Foreign: test.foreign, Previewed: test.previewed})
		if test.isEntered {
			must(t, err)
			in.Leave()
			continue
		}
		var foreign *action.ForeignError
		if !errors.As(err, &foreign) || in != nil || ended != nil {
			t.Fatalf("%+v: %v, %v, %v", test, in, ended, err)
		}
		if foreign.Path != link || foreign.Real != s.root || int(foreign.Owner) != os.Geteuid() || len(foreign.Loose) != 1 || foreign.Loose[0].Path != link {
			t.Errorf("%+v", foreign)
		}
		if len(l.entries()) != events || bundletest.Census(t, s.root) != before {
			t.Errorf("%+v: it left a trace", test)
		}
	}
	l.check("commit_begin", "rollback emergency")
}
