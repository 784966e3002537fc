package harness

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// RollbackFailed is the code of a root that is halted.
const RollbackFailed = "RESTORE_ROLLBACK_FAILED"

// A State is what a root is compared with a commit.
type State int

// Other is neither Before nor After: the commit was not all or nothing.
const (
	Other State = iota
	Before
	After
)

func (s State) String() string { return [...]string{"other", "before", "after"}[s] }

// State returns what the root is, and for Other, what is wrong (O1, O3). An unlocked lock file
// may be left where it could not be removed.
func (s *Site) State() (State, error) {
	tree, err := Take(s.Root)
	if err == nil {
		err = s.Unlocked()
	}
	if err != nil {
		return Other, err
	}
	for name := range tree {
		if strings.HasPrefix(name, Lock) { // also one that was not locked yet
			delete(tree, name)
		}
	}
	before := Diff(s.Before, tree)
	if before == "" {
		return Before, nil
	}
	after := Diff(s.After, tree)
	if after == "" {
		return After, nil
	}
	return Other, fmt.Errorf("%q is not as before:\n%s\nand not as after:\n%s", s.Root, before, after)
}

// Allowed is what the root may be after recovery from the end of a commit; seen reports whether
// there was a report at that point (O2).
func Allowed(commit Reply, seen bool) []State {
	switch {
	case commit.Status == 0 || seen:
		return []State{After}
	case commit.Answer.Code == RollbackFailed:
		return []State{Before, After}
	case commit.Answer.Code != "":
		return []State{Before}
	default:
		return []State{Before, After}
	}
}

// Check returns the state of the root and an error unless it is allowed.
func (s *Site) Check(allowed ...State) (State, error) {
	state, err := s.State()
	if err != nil {
		return state, err
	}
	for _, a := range allowed {
		if state == a {
			return state, nil
		}
	}
	return state, fmt.Errorf("%q is as %v, but must be one of %v", s.Root, state, allowed)
}

// Recovered checks the root after a recovery: the tree, that a second recover
// changes nothing, not even times, that no lock is left, and that by the audit
// log everything has ended (O1 to O5).
func (s *Site) Recovered(t testing.TB, allowed ...State) (State, error) {
	t.Helper()
	state, err := s.Check(allowed...)
	if err != nil {
		return state, err
	}
	first, err := s.exact()
	if err != nil {
		return state, err
	}
	if r := s.Recover(t, nil); r.Status != 0 {
		return state, fmt.Errorf("the second recover: %v", r)
	}
	second, err := s.exact()
	if err == nil && first != second {
		err = fmt.Errorf("the second recover changed something: %s, then %s", first, second)
	}
	if _, left := os.Lstat(filepath.Join(s.Root, Lock)); left == nil {
		err = errors.Join(err, errors.New("the lock is left"))
	}
	return state, errors.Join(err, s.Ended())
}

// exact is the whole tree with the times of the root, as text.
func (s *Site) exact() (string, error) {
	tree, err := Take(s.Root)
	if err != nil {
		return "", err
	}
	stamp, err := Stamp(s.Root)
	return fmt.Sprint(stamp, tree), err
}

// Unlocked reports whether no process holds the lock of the root, whether its file exists or not.
func (s *Site) Unlocked() error {
	lock, err := os.Open(filepath.Join(s.Root, Lock))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("the lock of %q: %w", s.Root, err)
	}
	return nil
}

// Halted reports whether the root is halted: a preview ends with status 3 (O7).
func (s *Site) Halted(t testing.TB) error {
	t.Helper()
	r := s.PreviewReply(t, nil)
	if r.Status != 3 {
		return fmt.Errorf("the root should be halted, but: %v", r)
	}
	if !strings.Contains(r.Stderr, "\nhint: the root is ") && !strings.Contains(r.Stderr, "\nhint: the names that it has changed are not known") {
		return fmt.Errorf("it does not say which tree stands: %v", r)
	}
	return nil
}

// Refused checks that a command that ended before EXECUTE left no trace; stamp
// is that of the root before it (O6).
func (s *Site) Refused(stamp string) error {
	now, err := Stamp(s.Root)
	if err == nil && now != stamp {
		err = fmt.Errorf("a refusal moved the times of %q: %s, then %s", s.Root, stamp, now)
	}
	_, wrong := s.Check(Before)
	return errors.Join(err, wrong)
}
