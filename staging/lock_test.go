package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// lockThere reports whether there is a lock in a root.
func lockThere(t testing.TB, root string) bool {
	t.Helper()
	_, err := os.Lstat(filepath.Join(root, LockName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	return err == nil
}

// journalThere reports whether a record of a journal is in a root.
func journalThere(t testing.TB, root string) bool {
	t.Helper()
	for _, pattern := range []string{stagePrefix, resetPrefix} {
		for _, record := range journalNames {
			found, err := filepath.Glob(filepath.Join(root, pattern+"????????-*", record))
			must(t, err)
			if len(found) > 0 {
				return true
			}
		}
	}
	return false
}

// TestLockOutlivesJournal: at every call of a commit, of a reset, and of the recovery of
// either when it was killed there, the lock is there if the journal is. In the end it is gone.
func TestLockOutlivesJournal(t *testing.T) {
	watched := func(root string, inner hook) (hook, *atomic.Int64) {
		var seen atomic.Int64 // a recovery checks several files at a time
		return func(op, path string, do func() error) error {
			if journalThere(t, root) {
				seen.Add(1)
				if !lockThere(t, root) {
					t.Errorf("before %s %q there is a journal and no lock", op, path)
				}
			}
			if inner != nil {
				return inner(op, path, do)
			}
			return do()
		}, &seen
	}
	over := func(root string, seen *atomic.Int64) {
		t.Helper()
		if lockThere(t, root) || seen.Load() == 0 {
			t.Errorf("the lock is left: %v; %d calls beside a journal", lockThere(t, root), seen.Load())
		}
	}
	sc := chainCommit(t, filepath.Join(scratch(t), "root"))
	whole, seen := watched(sc.root, nil)
	calls := 0
	must(t, sc.run(func(op, path string, do func() error) error { calls++; return whole(op, path, do) }))
	over(sc.root, seen)
	for _, n := range tries(t, 12, calls) {
		sc := chainCommit(t, filepath.Join(scratch(t), "root"))
		w, seen := watched(sc.root, killer(n))
		if survived(func() { _ = sc.run(w) }) {
			t.Fatalf("call %d was not reached", n)
		}
		again, _ := watched(sc.root, nil)
		l, err := enter(t.Context(), sc.dir, testKey, hookedBy(again))
		must(t, err)
		_, err = l.recover(t.Context(), Automatic)
		must(t, err)
		l.Close()
		seen.Add(1)
		over(sc.root, seen)
	}
	f := mixedReset(t, filepath.Join(t.TempDir(), "x"))
	w, seen := watched(f.root(), nil)
	must(t, f.run(w))
	over(f.root(), seen)
}

// TestLockStaysWithJournal: where an attempt could not be undone, the lock stays for the
// recovery, unlocked; and it goes with the journal.
func TestLockStaysWithJournal(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	err := sc.run(func(op, path string, do func() error) error {
		if op == "rename" && path == "zero" {
			must(t, os.WriteFile(sc.at("zero"), nil, 0o600))
		}
		return do()
	})
	if e := failure(t, err); e.Rollback == nil {
		t.Fatal(e)
	}
	if !lockThere(t, sc.root) {
		t.Error("the lock is gone, and the journal is left")
	}
	must(t, os.Remove(sc.at("zero")))
	sc.mustRecover()
	sameTree(t, before, sc.root)
	if lockThere(t, sc.root) {
		t.Error("the lock is left")
	}
}

// TestLockNeedsNoSpace: a recovery on a full disk, with the lock of the killed commit or after
// that was removed.
func TestLockNeedsNoSpace(t *testing.T) {
	for _, removed := range []bool{false, true} {
		sc, before := abandoned(t, allMoved)
		if removed {
			_ = os.Remove(sc.at(LockName))
		}
		full := func(op, _ string, do func() error) error {
			if op == "create" {
				return unix.ENOSPC
			}
			return do()
		}
		l, err := enter(t.Context(), sc.dir, testKey, hookedBy(full))
		must(t, err)
		out, err := l.recover(t.Context(), Automatic)
		l.Close()
		if err != nil || len(out) != 1 || out[0].Result != RolledBack {
			t.Errorf("removed %v: %v, %v", removed, out, err)
		}
		sameTree(t, before, sc.root)
	}
}

// TestLockOfKilled: the lock file that a killed process has left is unlocked. The next session
// takes it, at once, and removes it; one that must not write leaves it.
func TestLockOfKilled(t *testing.T) {
	root := t.TempDir()
	must(t, os.WriteFile(filepath.Join(root, LockName), nil, 0o600))
	for _, stays := range []bool{true, false} {
		l, err := enter(t.Context(), openRoot(t, root), testKey, &sysHook{})
		must(t, err)
		if stays {
			l.Leave()
		}
		if _, err := enter(t.Context(), openRoot(t, root), testKey, &sysHook{}); !errors.Is(err, pathsafe.ErrLocked) {
			t.Errorf("two have it: %v", err)
		}
		l.Close()
		if lockThere(t, root) != stays {
			t.Errorf("there: %v, want %v", !stays, stays)
		}
	}
}

// TestLockChangesNothing: a session that has held the lock and done nothing leaves the root
// with its time. One that never needed it does not make it.
func TestLockChangesNothing(t *testing.T) {
	root := t.TempDir()
	was := time.Unix(1_000_000_000, 123_456_789)
	must(t, os.Chtimes(root, was, was))
	before := kind(t, root)
	l, err := enter(t.Context(), openRoot(t, root), testKey, &sysHook{})
	must(t, err)
	_, err = l.recover(t.Context(), Automatic)
	must(t, err)
	l.Close()
	if now := kind(t, root); now != before {
		t.Errorf("was %s, is %s", before, now)
	}
	l, err = enter(t.Context(), openRoot(t, root), testKey, &sysHook{})
	must(t, err)
	must(t, l.Hold(t.Context()))
	at := func() time.Time {
		st, err := os.Stat(root)
		must(t, err)
		return st.ModTime()
	}
	if !lockThere(t, root) || !at().Equal(was) {
		t.Errorf("held: %v, time %v", lockThere(t, root), at())
	}
	l.Close()
	if lockThere(t, root) || !at().Equal(was) {
		t.Errorf("left: %v, time %v", lockThere(t, root), at())
	}
}

// TestLockReplaced: what another process puts at the name of a lock that is held is not
// removed, and who has waited for the lock that was moved away waits for the new one.
func TestLockReplaced(t *testing.T) {
	root := t.TempDir()
	l, err := enter(t.Context(), openRoot(t, root), testKey, &sysHook{})
	must(t, err)
	must(t, l.Hold(t.Context()))
	path := filepath.Join(root, LockName)
	must(t, os.Rename(path, path+".moved"))
	must(t, os.WriteFile(path, []byte("theirs"), 0o600))
	l.Close()
	if text, err := os.ReadFile(path); err != nil || string(text) != "theirs" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestLaterAttemptIsKept: an attempt that has begun after the root was looked at is not run over, nor
// taken for one of this session.
func TestLaterAttemptIsKept(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	l, err := enter(t.Context(), sc.dir, testKey, &sysHook{})
	must(t, err)
	defer l.Close()
	_, err = l.recover(t.Context(), Automatic)
	must(t, err)
	must(t, l.Overtaken())
	plant(t, sc.root, stagePrefix+"11111111-2222-4333-8444-555555555555") // is not an attempt
	must(t, l.Overtaken())
	other := singleCommit(t, sc.root)
	w := killer(60)
	if survived(func() { _ = other.run(w) }) {
		t.Fatal("not killed")
	}
	if err := l.Overtaken(); !errors.Is(err, ErrOvertaken) {
		t.Errorf("%v", err)
	}
	if err := l.commit(t.Context(), sc.spec); !errors.Is(err, ErrOvertaken) {
		t.Errorf("%v", err)
	}
	_, err = l.recover(t.Context(), Automatic)
	must(t, err)
	must(t, l.commit(t.Context(), sc.spec))
}

// TestLockWhereNothingIsWritten: a root that this user may not write to, or that is mounted
// read-only, is entered without a lock.
func TestLockWhereNothingIsWritten(t *testing.T) {
	dir := mountTmpfs(t, "")
	root := openRoot(t, dir)
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	l, err := enter(t.Context(), root, testKey, &sysHook{})
	must(t, err)
	must(t, l.Hold(t.Context()))
	l.Close()
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, ""))
	// While the lock is held the root can still be made read-only: it is not open for writing.
	l, err = enter(t.Context(), root, testKey, &sysHook{})
	must(t, err)
	must(t, l.Hold(t.Context()))
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	must(t, unix.Mount("", dir, "", unix.MS_REMOUNT, ""))
	l.Close()
	if lockThere(t, dir) {
		t.Error("the lock is left")
	}
}

// TestLockForWriting: a file system that locks only what is open for writing.
func TestLockForWriting(t *testing.T) {
	first := true
	like := func(op, _ string, do func() error) error {
		if op == "lock" && first {
			first = false
			return unix.EBADF
		}
		return do()
	}
	root := t.TempDir()
	l, err := lock(t.Context(), openRoot(t, root), testKey, &locking{s: hookedBy(like)})
	must(t, err)
	must(t, l.Hold(t.Context()))
	if flags, err := unix.FcntlInt(l.lock.f.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_ACCMODE != unix.O_RDWR {
		t.Errorf("%o, %v", flags, err)
	}
	l.Close()
}

// TestLockAccess: only users who may make names in the root may open its lock.
func TestLockAccess(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give files away")
	}
	for _, c := range []struct {
		owner int
		mode  os.FileMode
		list  string
		want  string
	}{
		{0, 0o755, "", "0600"},
		{1000, 0o775, "", "0660"},
		{1000, 0o777, "", "0666"},
		{1000, 0o757, "", "0606"},
		{1000, 0o776, "", "0660"}, // without x nothing can be made
		{
			1000, 0o700, "u::rwx u:7:rwx u:8:r-x g::--- g:9:rwx g:11:r-x m::rwx o::---",
			"u::rw- u:7:rw- u:8:--- g::--- g:9:rw- g:11:--- m::rw- o::---",
		},
		{1000, 0o777, "u::rwx u:7:rwx g::rwx m::r-x o::rwx", "u::rw- u:7:--- g::--- m::rw- o::rw-"},
	} {
		for _, inherits := range []bool{false, true} {
			dir := t.TempDir()
			must(t, os.Chmod(dir, c.mode))
			must(t, os.Chown(dir, c.owner, c.owner))
			if c.list != "" {
				harness.SetList(t, dir, harness.AccessList, c.list)
			}
			if inherits {
				harness.SetList(t, dir, harness.DefaultList, "u::rwx u:12:rwx g::rwx m::rwx o::rwx")
			}
			l, err := enter(t.Context(), openRoot(t, dir), testKey, &sysHook{})
			must(t, err)
			must(t, l.Hold(t.Context()))
			if got := harness.List(t, filepath.Join(dir, LockName)); got != c.want {
				t.Errorf("%o %q, inherits %v: %s, want %s", c.mode, c.list, inherits, got, c.want)
			}
			l.Close()
		}
	}
}

// TestLockOfMember: a member of the group of a root, who is not its owner, makes the lock: the
// owner and the other members can take it.
func TestLockOfMember(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to be another user")
	}
	dir := t.TempDir()
	harness.LetOthersIn(t, dir)
	must(t, os.Chown(dir, 1000, 1001))
	must(t, os.Chmod(dir, 0o775))
	harness.SetList(t, dir, harness.AccessList, fmt.Sprintf("u::rwx u:%d:rwx g::rwx m::rwx o::r-x", harness.Nobody))
	harness.WithoutRights(t, func() {
		l, err := enter(t.Context(), openRoot(t, dir), testKey, &sysHook{})
		must(t, err)
		must(t, l.Hold(t.Context()))
		defer l.Close()
		want := "u::rw- u:1000:rw- g::--- g:1001:rw- m::rw- o::---"
		if got := harness.List(t, filepath.Join(dir, LockName)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
