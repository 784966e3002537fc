package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// object is the path of the object of a file of a snapshot.
func (l *fixture) object(snap *Snapshot, path string) string {
	l.t.Helper()
	e, err := snap.At(parse(l.t, path))
	must(l.t, err)
	return l.storePath(e.Digest.path())
}

// anew rewrites an object, which is read-only.
func anew(path, content string) error {
	return errors.Join(os.Remove(path), os.WriteFile(path, []byte(content), objectPerm))
}

// TestRepair: what still stands in the root, at its name or at another, is brought again,
// whatever has become of the object; nothing else is believed, and what is nowhere stays
// named.
func TestRepair(t *testing.T) {
	ctx := context.Background()
	damages := map[string]func(path string) error{
		"missing":     os.Remove,
		"empty":       func(path string) error { return anew(path, "") },
		"cut":         func(path string) error { return anew(path, "sm") },
		"changed":     func(path string) error { return anew(path, "wrong") },
		"a directory": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"no shard":    func(path string) error { return os.RemoveAll(filepath.Dir(path)) },
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			l := newFixture(t)
			l.store.division = usualDivision // no part is in the shard of a content that goes
			mkdir(t, l.path("d"))
			for _, path := range []string{"same", "d/moved", "gone", "changed", "small"} {
				writeFile(t, l.path(path), strings.Repeat(path+" ", 100_000))
			}
			writeFile(t, l.path("small"), "small")
			snap := l.take()
			was := look(t, l.root)
			for _, path := range []string{"same", "d/moved", "small"} {
				must(t, damage(l.object(snap, path)))
			}
			must(t, os.Rename(l.path("d/moved"), l.path("elsewhere")))
			damaged, err := l.store.Verify(ctx, snap)
			must(t, err)
			able, err := l.store.Repairable(ctx, snap, l.handle, damaged)
			if err != nil || len(able) != 3 {
				t.Fatalf("repairable are %v, %v", able, err)
			}
			l.emptyIncoming()
			repaired, left, err := l.store.Repair(ctx, snap, l.handle)
			if err != nil || len(repaired) != 3 || len(left) > 0 {
				t.Fatalf("%v, %v, %v", repaired, left, err)
			}
			same(t, was, look(t, l.write(snap, "")))
			l.sound()
			l.emptyIncoming()

			for _, path := range []string{"gone", "changed"} {
				must(t, damage(l.object(snap, path)))
			}
			must(t, os.Remove(l.path("gone")))
			writeFile(t, l.path("changed"), strings.Repeat("CHANGED ", 100_000)) // of the same size
			if repaired, left, err = l.store.Repair(ctx, snap, l.handle); err != nil || len(repaired) > 0 || len(left) != 2 {
				t.Errorf("%v, %v, %v", repaired, left, err)
			}
			l.emptyIncoming()
		})
	}
}

// TestFaultsOfRepair: wherever it fails or is killed, no object that was sound is lost, and
// the next one ends it.
func TestFaultsOfRepair(t *testing.T) {
	l := newFixture(t)
	l.populate()
	writeFile(t, l.path("lost"), "lost")
	writeFile(t, l.path("cut"), "cut")
	l.reopen()
	snap := l.take()
	eachFault(t, func(t *testing.T, f *fault) {
		must(t, os.Remove(l.object(snap, "lost")))
		must(t, anew(l.object(snap, "cut"), "c"))
		l.store.sysHook.Call = f.hook
		_, _, err := l.store.Repair(context.Background(), snap, l.handle)
		l.reopen()
		if err == nil && f.calls < f.n {
			l.sound()
		}
		if _, left, err := l.store.Repair(context.Background(), snap, l.handle); err != nil || len(left) > 0 {
			t.Fatalf("call %d: %v, %v", f.n, left, err)
		}
		l.sound()
		l.emptyIncoming()
	})
}

// TestInspect: every kind of damage is found, in contents as far as they are read.
func TestInspect(t *testing.T) {
	ctx := context.Background()
	l := newFixture(t)
	writeFile(t, l.path("f"), "first")
	first := l.take()
	manifest := l.manifest()
	writeFile(t, l.path("f"), "other")
	second := l.take()
	count := func(want int, unread, contents int64) {
		t.Helper()
		in, err := l.store.Inspect(ctx, l.root, Budget{1 << 20, contents})
		if err != nil || len(in.Found) != want || in.Unread != unread {
			t.Errorf("%v, %d bytes not read, %v; want %d and %d", in.Found, in.Unread, err, want, unread)
		}
	}
	count(0, 0, 1<<20)
	count(0, 10, 0)
	must(t, anew(l.object(first, "f"), "FIRST"))
	count(1, 0, 1<<20)
	must(t, os.Remove(l.object(second, "f")))
	count(2, 0, 1<<20)
	count(1, 5, 0)
	must(t, anew(manifest, "{"))
	count(2, 0, 1<<20)
	in, err := l.store.Inspect(ctx, l.root, Budget{})
	if err != nil || len(in.Found) != 1 || in.Unread == 0 {
		t.Errorf("%v, %d bytes not read, %v", in.Found, in.Unread, err)
	}
}
