package quarantine_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spectrumfs/spectrum/restore/quarantine"
)

// changes are one change of each kind of candidate a, which is held by a status.
var changes = map[string]func(*testing.T, *quarantine.Store) error{
	"hold": func(t *testing.T, s *quarantine.Store) error {
		return s.Hold(t.Context(), candidate("a"), findings("approval_vague sure")[0])
	},
	"judge": func(t *testing.T, s *quarantine.Store) error {
		_, _, err := s.Update(t.Context(), candidate("a"), findings("cross_agent_identity b"))
		return err
	},
	"release": func(t *testing.T, s *quarantine.Store) error {
		_, err := s.Release(t.Context(), candidate("a").Source, "ok")
		return err
	},
}

// eachChange runs do for each kind of change, with a store that calls log.
func eachChange(t *testing.T, do func(t *testing.T, path string, change func(quarantine.Log) error)) {
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			path := private(t)
			judge(t, open(t, path, nil), candidate("a"), findings("artifact_status x"), "artifact_status x")
			do(t, path, func(log quarantine.Log) error { return change(t, open(t, path, log)) })
		})
	}
}

// TestLoggedFirst: a change is logged before there is anything of it, and what was
// before is removed after it.
func TestLoggedFirst(t *testing.T) {
	eachChange(t, func(t *testing.T, path string, change func(quarantine.Log) error) {
		before, logged := read(t, only(t, path)), 0
		must(t, change(func(c quarantine.Change) error {
			logged++
			if string(read(t, only(t, path))) != string(before) || c.Candidate.Source != candidate("a").Source || c.Candidate.RestoreRoot != "/root" {
				t.Errorf("%+v is logged too late", c)
			}
			return nil
		}))
		if filepath.Base(only(t, path)) != candidate("a").Source+".2.json" || logged == 0 {
			t.Errorf("%s, %d logged", only(t, path), logged)
		}
	})
}

// TestCannotBeLogged: what cannot be logged is not done, also when only a part of
// it could be.
func TestCannotBeLogged(t *testing.T) {
	eachChange(t, func(t *testing.T, path string, change func(quarantine.Log) error) {
		full := errors.New("disk full")
		for n := range 3 {
			before := read(t, only(t, path))
			err := change(func(quarantine.Change) error {
				if n--; n < 0 {
					return full
				}
				return nil
			})
			if err == nil {
				return // there were not as many changes
			}
			if !errors.Is(err, full) || string(read(t, only(t, path))) != string(before) {
				t.Errorf("%v", err)
			}
		}
	})
}

// TestKilledBetween: one that ended after it had logged a change, and before it made
// it, leaves the lock and the record; the change is made, and logged, the next time.
func TestKilledBetween(t *testing.T) {
	eachChange(t, func(t *testing.T, path string, change func(quarantine.Log) error) {
		ended := make(chan bool)
		go func() {
			defer close(ended)
			_ = change(func(quarantine.Change) error { runtime.Goexit(); return nil })
		}()
		<-ended
		judge(t, open(t, path, nil), candidate("a"), findings("artifact_status x"), "artifact_status x")
		logged := 0
		must(t, change(func(quarantine.Change) error { logged++; return nil }))
		if logged == 0 {
			t.Error("the change is not logged again")
		}
	})
}

// TestKilledAfter: older versions that were not removed are ignored, and go with the next change.
func TestKilledAfter(t *testing.T) {
	eachChange(t, func(t *testing.T, path string, change func(quarantine.Log) error) {
		older, raw := only(t, path), read(t, only(t, path))
		must(t, change(unlogged))
		now := read(t, only(t, path))
		newer := only(t, path)
		must(t, os.WriteFile(older, raw, 0o600))
		s := open(t, path, nil)
		r, err := s.Show(t.Context(), candidate("a").Source)
		must(t, err)
		if all, err := s.List(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("%d records, %v", len(all), err)
		}
		held, err := s.Held(t.Context(), candidate("a"), findings("artifact_status x", "cross_agent_identity b"))
		must(t, err)
		if string(read(t, newer)) != string(now) || len(held) == 0 || len(r.Marks) == 0 {
			t.Errorf("held by %v, marks %v", held, r.Marks)
		}
		must(t, s.Hold(t.Context(), candidate("a"), findings("approval_vague again")[0]))
		if filepath.Base(only(t, path)) != candidate("a").Source+".3.json" {
			t.Errorf("%s is left", only(t, path))
		}
	})
}

// TestVersionsAreNumbers: versions are counted, and not compared as text.
func TestVersionsAreNumbers(t *testing.T) {
	path, c := private(t), candidate("a")
	s := open(t, path, nil)
	var ninth []byte
	for n := 1; n < 10; n += 2 {
		must(t, s.Hold(t.Context(), c, findings("approval_vague sure")[0]))
		ninth = read(t, only(t, path))
		_, err := s.Release(t.Context(), c.Source, "ok")
		must(t, err)
	}
	must(t, os.WriteFile(filepath.Join(path, c.Source+".9.json"), ninth, 0o600))
	judge(t, s, c, nil)
	must(t, s.Hold(t.Context(), c, findings("approval_vague sure")[0]))
	if filepath.Base(only(t, path)) != c.Source+".11.json" {
		t.Errorf("%s is left", only(t, path))
	}
}

// unlogged logs nothing.
func unlogged(quarantine.Change) error { return nil }

// TestRival: a version that a process without the lock has made meanwhile stays, and the change
// is an error.
func TestRival(t *testing.T) {
	eachChange(t, func(t *testing.T, path string, change func(quarantine.Log) error) {
		rival := filepath.Join(path, candidate("a").Source+".2.json")
		if change(func(quarantine.Change) error { return os.WriteFile(rival, []byte("rival"), 0o600) }) == nil {
			t.Error("no error")
		}
		if string(read(t, rival)) != "rival" {
			t.Error("it was replaced")
		}
	})
}
