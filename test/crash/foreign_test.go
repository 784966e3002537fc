package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// A stranger does something in the root after the commit was killed, and says
// at which path, "" if there was nothing to do.
type stranger struct {
	name string
	act  func(s *harness.Site) (string, error)
}

var strangers = []stranger{
	{"a file at a name that is free", func(s *harness.Site) (string, error) {
		for _, name := range s.Project.Targets() {
			if _, err := os.Lstat(filepath.Join(s.Root, name)); errors.Is(err, fs.ErrNotExist) {
				return plant(s, name)
			}
		}
		return "", nil
	}},
	{"a file instead of a target", func(s *harness.Site) (string, error) {
		return instead(s, func(string) (string, error) { return "mine", nil })
	}},
	{"a file with the target's own bytes", func(s *harness.Site) (string, error) {
		return instead(s, func(path string) (string, error) {
			text, err := os.ReadFile(path)
			return string(text), err
		})
	}},
	{"a file in a directory of the attempt", func(s *harness.Site) (string, error) {
		if _, err := os.Lstat(filepath.Join(s.Root, "new/sub")); err != nil {
			return "", nil
		}
		return plant(s, "new/sub/mine")
	}},
	{"a directory at a name that is free", func(s *harness.Site) (string, error) {
		err := os.Mkdir(filepath.Join(s.Root, "new"), 0o700)
		if errors.Is(err, fs.ErrExist) {
			return "", nil
		}
		return "new", err
	}},
	{"a target with other bytes", func(s *harness.Site) (string, error) {
		for _, name := range s.Project.Targets() {
			if _, err := os.Lstat(filepath.Join(s.Root, name)); err == nil {
				return name, os.WriteFile(filepath.Join(s.Root, name), []byte("edited"), 0o644)
			}
		}
		return "", nil
	}},
}

func plant(s *harness.Site, name string) (string, error) {
	path := filepath.Join(s.Root, name)
	if _, err := os.Lstat(filepath.Dir(path)); err != nil {
		return "", nil
	}
	return name, os.WriteFile(path, []byte("mine"), 0o600)
}

// instead removes the first target that is in place, and makes a file at once,
// which on ext4 is given the same inode number.
func instead(s *harness.Site, text func(path string) (string, error)) (string, error) {
	for _, name := range s.Project.Targets() {
		path := filepath.Join(s.Root, name)
		info, err := os.Lstat(path)
		if err != nil || info.IsDir() {
			continue
		}
		content, err := text(path)
		if err := errors.Join(err, os.Remove(path)); err != nil {
			return "", err
		}
		return name, os.WriteFile(path, []byte(content), info.Mode())
	}
	return "", nil
}

// TestStrangers has each stranger come after each kill. Some file systems give an inode number
// out again.
func TestStrangers(t *testing.T) {
	for _, x := range sample.Pick(t, 3, strangers) {
		t.Run(x.name, func(t *testing.T) {
			sum := sweep(t, sample.Thin(t, 89, 9), restoring(harness.Small()), func(t *testing.T, tr *trials, n int) bool {
				s := tr.site(t, n)
				r := tr.killed(t, s, n)
				if !r.Killed() {
					return false
				}
				tr.Add("killed")
				if err := tr.meet(t, s, x); err != nil {
					t.Errorf("%s, after a kill before %s\n%v", x.name, s.Last(r), err)
				}
				return true
			})
			sum.Demand(t, "met")
		})
	}
}

// meet has a stranger act, recovers, and checks that what it did is still so.
func (tr *trials) meet(t *testing.T, s *harness.Site, x stranger) error {
	t.Helper()
	seen := s.ReportSeen()
	inodes := targetInodes(s)
	name, err := x.act(s)
	if err != nil || name == "" {
		return err
	}
	tr.Add("met")
	tree, err := harness.Take(s.Root)
	if err != nil {
		return err
	}
	theirs := tree[name]
	if inodes[name] == theirs.Inode {
		tr.Add("same inode")
	}
	kept := func(when string, r harness.Reply) error {
		tree, err := harness.Take(s.Root)
		if err == nil && tree[name] != theirs {
			err = fmt.Errorf("%s: the stranger's %q was %+v, is %+v: %v", when, name, theirs, tree[name], r)
		}
		return err
	}
	r := s.Recover(t, nil)
	tr.Add(fmt.Sprint("exit ", r.Status))
	if err := kept("recover", r); err != nil {
		return err
	}
	switch r.Status {
	case 0:
		return withStranger(s, name, theirs, seen)
	case 3:
		err := s.Halted(t)
		released := s.Acknowledge(t)
		if released.Status != 0 {
			err = errors.Join(err, fmt.Errorf("acknowledged: %v", released))
		}
		if r := s.PreviewReply(t, nil); r.Status == 3 {
			err = errors.Join(err, fmt.Errorf("released, and still halted: %v", r))
		}
		return errors.Join(err, kept("acknowledge", released), foreignKept(s))
	default:
		return fmt.Errorf("recover: %v", r)
	}
}

func targetInodes(s *harness.Site) map[string]uint64 {
	inodes := map[string]uint64{}
	for _, name := range s.Project.Targets() {
		if info, err := os.Lstat(filepath.Join(s.Root, name)); err == nil {
			inodes[name] = info.Sys().(*syscall.Stat_t).Ino
		}
	}
	return inodes
}

// withStranger checks that a root is before or after, but for what a stranger
// has put there.
func withStranger(s *harness.Site, name string, theirs harness.Thing, seen bool) error {
	tree, err := harness.Take(s.Root)
	if err != nil {
		return err
	}
	with := func(tree harness.Tree) harness.Tree {
		tree = maps.Clone(tree)
		tree[name] = theirs
		return tree
	}
	before, after := harness.Diff(with(s.Before), tree), harness.Diff(with(s.After), tree)
	if after == "" || before == "" && !seen {
		return nil
	}
	return fmt.Errorf("recovered (a report was seen: %v), but not before:\n%s\nand not after:\n%s", seen, before, after)
}

// foreignKept checks that all that was there before is there as it was.
func foreignKept(s *harness.Site) error {
	tree, err := harness.Take(s.Root)
	if err != nil {
		return err
	}
	for name := range tree {
		if _, ok := s.Before[name]; !ok {
			delete(tree, name)
		}
	}
	if d := harness.Diff(s.Before, tree); d != "" {
		return fmt.Errorf("foreign things changed:\n%s", d)
	}
	return nil
}

// TestStrangersKillTwice also kills the recovery that finds the stranger, before
// each of its calls: what it had in its hands then must not be lost.
func TestStrangersKillTwice(t *testing.T) {
	sum := onGrounds(t, sample.Thin(t, 31, 4), restoring(harness.Small()), func(t *testing.T, tr *trials, own sample.Stride) {
		for _, m := range []moment{moments[3], moments[5]} {
			for _, x := range []stranger{strangers[1], strangers[3], strangers[5]} {
				harness.Sweep(t, own, func(t *testing.T, n int) bool {
					s := tr.site(t, m.name, x.name, n)
					killedAt(t, s, m)
					name, err := x.act(s)
					harness.Must(t, err)
					tree := harness.MustTake(t, s.Root)
					if name == "" {
						return false
					}
					r := s.Recover(t, harness.Killing(n, s.Beneath(harness.Changing)))
					if !r.Killed() {
						return false
					}
					tr.Add("killed twice")
					again := s.Recover(t, nil)
					tr.Add(fmt.Sprint("exit ", again.Status))
					now := harness.MustTake(t, s.Root)
					if now[name] != tree[name] {
						t.Errorf("killed when %s, then %s, recovery killed before %s\n%v\nthe stranger's %q was %+v, is %+v",
							m.name, x.name, s.Last(r), again, name, tree[name], now[name])
					}
					if err := foreignKept(s); err != nil || again.Status != 3 && again.Status != 0 {
						t.Errorf("%s, then %s, recovery killed before %s: %v, %v", m.name, x.name, s.Last(r), again, err)
					}
					return true
				})
			}
		}
	})
	sum.Demand(t, "killed twice", "exit 3")
}

// TestForeignState recovers with another state directory: the journal is not
// ours then, and nothing is touched.
func TestForeignState(t *testing.T) {
	sum := sweep(t, sample.Every(t, 29), restoring(harness.Small()), func(t *testing.T, tr *trials, n int) bool {
		other := *tr.Project
		other.State = tr.at("other", n)
		harness.Must(t, os.Mkdir(other.State, 0o700))
		s := tr.site(t, n)
		r := s.Commit(t, harness.Killing(n, s.Beneath(harness.Changing)))
		if !r.Killed() {
			return false
		}
		if noRecord(t, s) {
			tr.Add("no record")
			return true
		}
		tree := harness.MustTake(t, s.Root)
		theirs := *s
		theirs.Project = &other
		for what, answer := range map[string]harness.Reply{"recover": theirs.Recover(t, nil), "preview": theirs.PreviewReply(t, nil)} {
			tr.Add(fmt.Sprint(what, " exit ", answer.Status))
			if answer.Status != 3 {
				t.Errorf("killed before %s: %v", s.Last(r), answer)
			}
		}
		now := harness.MustTake(t, s.Root)
		if d := harness.Diff(tree, now); d != "" {
			t.Errorf("killed before %s: a foreign state directory touched the root:\n%s", s.Last(r), d)
		}
		return true
	})
	sum.Demand(t, "recover exit 3", "preview exit 3")
}

// noRecord reports whether there is no record of the attempt: then its owner cannot be
// determined.
func noRecord(t *testing.T, s *harness.Site) bool {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(s.Root, ".spectrum06_staging_*/.spectrum06_*"))
	harness.Must(t, err)
	for _, path := range records {
		if !strings.Contains(path, harness.ForeignStaging) && !strings.HasSuffix(path, ".new") {
			return false
		}
	}
	return true
}
