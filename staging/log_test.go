package staging

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// witness is a log that remembers what it heard, and may fail.
type witness struct {
	heard            []string
	began, completed func(attempt string) error
	released         func(attempt string) error
}

func (w *witness) Began(attempt, kind string) error { return w.hear("began", attempt, kind, w.began) }

func (w *witness) Completed(attempt, kind string) error {
	return w.hear("completed", attempt, kind, w.completed)
}

func (w *witness) Released(attempt, kind string, left error) error {
	if left == nil {
		return errors.New("nothing is left")
	}
	return w.hear("released", attempt, kind, w.released)
}

func (w *witness) hear(what, attempt, kind string, then func(string) error) error {
	if kind != KindCommit {
		what += " " + kind
	}
	w.heard = append(w.heard, what)
	if then == nil {
		return nil
	}
	return then(attempt)
}

func (w *witness) check(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(w.heard, want) {
		t.Errorf("the log heard %q, want %q", w.heard, want)
	}
}

// session runs do in a session with a log.
func (s *commitFixture) session(w *witness, do func(*session) error) error {
	s.t.Helper()
	l, err := enter(context.Background(), s.dir, testKey, hookedBy(s.lazily))
	must(s.t, err)
	defer l.Close()
	l.log = w
	return do(l)
}

func (s *commitFixture) runLogged(w *witness) error {
	return s.session(w, func(l *session) error { return l.commit(context.Background(), s.spec) })
}

func (s *commitFixture) recoverLogged(w *witness) error {
	return s.session(w, func(l *session) error {
		_, err := l.recover(context.Background(), Automatic)
		return err
	})
}

// TestLogIsFirstAndLast: an attempt is known before anything of it is there, and
// known to be complete while its journal still is.
func TestLogIsFirstAndLast(t *testing.T) {
	for _, c := range commitCases {
		t.Run(c.name, func(t *testing.T) {
			s := c.make(t, t.TempDir())
			before := take(t, s.root)
			w := &witness{
				began: func(string) error {
					sameTree(t, before, s.root)
					return nil
				},
				completed: func(attempt string) error {
					for name := range s.content {
						if _, err := os.Stat(filepath.Join(s.root, name)); err != nil {
							t.Error(err)
						}
					}
					_, err := os.Stat(filepath.Join(s.root, stagePrefix+attempt, committedName))
					return err
				},
			}
			must(t, s.runLogged(w))
			s.done(before)
			w.check(t, "began", "completed")
		})
	}
}

// TestLogRejects: what the log cannot take is not begun.
func TestLogRejects(t *testing.T) {
	s := singleCommit(t, t.TempDir())
	before, full := take(t, s.root), errors.New("the log is full")
	w := &witness{began: func(string) error { return full }}
	if err := s.runLogged(w); !errors.Is(err, full) || failure(t, err).Step != StepBegin {
		t.Errorf("%v", err)
	}
	sameTree(t, before, s.root)
	w.check(t, "began")
}

// TestLogMissesTheEnd: the restore is complete, its journal stays, and the next
// session tells the log before it removes that.
func TestLogMissesTheEnd(t *testing.T) {
	s := chainCommit(t, t.TempDir())
	before, full := take(t, s.root), errors.New("the log is full")
	w := &witness{completed: func(string) error { return full }}
	var left error
	s.spec.leftover = func(_ string, err error) { left = err }
	must(t, s.runLogged(w))
	if !errors.Is(left, full) {
		t.Errorf("left over: %v", left)
	}
	var halt *HaltError
	if err := s.recoverLogged(w); !errors.As(err, &halt) || !errors.Is(err, full) {
		t.Errorf("recovered without the log: %v", err)
	}
	w.completed = nil
	must(t, s.recoverLogged(w))
	s.done(before)
	w.check(t, "began", "completed", "completed", "completed")
	must(t, s.recoverLogged(w))
	w.check(t, "began", "completed", "completed", "completed")
}

// TestLogOfARelease: the log knows of a release while the journal is still as it
// was, and without the log there is none.
func TestLogOfARelease(t *testing.T) {
	s := singleCommit(t, t.TempDir())
	const id = "11111111-1111-4111-8111-111111111111"
	stage := filepath.Join(s.root, stagePrefix+id)
	must(t, os.Mkdir(stage, 0o700))
	must(t, os.WriteFile(filepath.Join(stage, intentName), []byte("an unverified one"), 0o600))
	before, full := take(t, s.root), errors.New("the log is full")
	release := func(w *witness) error {
		return s.session(w, func(l *session) error {
			_, err := l.recover(context.Background(), Acknowledged)
			return err
		})
	}
	w := &witness{released: func(string) error { return full }}
	if err := release(w); !errors.Is(err, full) {
		t.Errorf("released without the log: %v", err)
	}
	sameTree(t, before, s.root)
	w.released = func(attempt string) error {
		sameTree(t, before, s.root)
		if attempt != id {
			t.Errorf("attempt %q", attempt)
		}
		return nil
	}
	must(t, release(w))
	w.check(t, "released", "released")
	if left := take(t, s.root); diff(left, before, true) != "" || len(left) != len(before)-2 {
		t.Errorf("left: %v", left)
	}
}

// TestLogOfARollback: a failed commit is never complete.
func TestLogOfARollback(t *testing.T) {
	s := singleCommit(t, t.TempDir())
	before := take(t, s.root)
	must(t, os.WriteFile(s.sources["zero"], []byte("other"), 0o600))
	w := &witness{}
	if err := s.runLogged(w); err == nil {
		t.Fatal("committed")
	}
	sameTree(t, before, s.root)
	must(t, s.recoverLogged(w))
	w.check(t, "began")
}
