package snapshot

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// bad has the disk fail a call at a name.
func (l *fixture) bad(op, name string, errno unix.Errno) {
	l.store.sysHook.Call = func(o, path string, f func() error) error {
		if o == op && (path == name || strings.HasSuffix(path, "/"+name)) {
			return errno
		}
		return f()
	}
}

// TestBroken: what cannot be read from the disk is named with the error, whichever call fails,
// and all the rest is kept. The snapshot is a partial one, also when it was read from the store,
// and an emergency rollback does not use it. A rollback goes on without a name that it was asked
// for; before anything else a missing name is an error.
func TestBroken(t *testing.T) {
	for _, c := range []struct {
		op, name, broken string
		size             int
		errno            unix.Errno
	}{
		{"read", "f", "d/f", 100, unix.EIO},
		{"read", "f", "d/f", 3*chunk + 5, unix.EIO},
		{"open", "f", "d/f", 100, unix.EUCLEAN},
		{"open directory", "d", "d", 100, unix.EIO},
		{"list", "d", "d", 100, unix.EBADMSG},
		{"stat", "f", "d/f", 100, unix.EIO},
		{"read link", "link", "d/link", 100, unix.EIO},
	} {
		t.Run(c.op, func(t *testing.T) {
			l := newFixture(t)
			mkdir(t, l.path("d"))
			writeFile(t, l.path("d/f"), strings.Repeat("x", c.size))
			writeFile(t, l.path("e"), "content")
			must(t, unix.Symlink("f", l.path("d/link")))
			l.bad(c.op, c.name, c.errno)
			taken := l.take()
			if c.op == "read" {
				scoped := l.request("d/f")
				if _, err := l.store.Take(context.Background(), scoped); !errors.Is(err, c.errno) {
					t.Errorf("of a name that was asked for: %v", err)
				}
				scoped.Kind, scoped.Live = PreAction, true
				snap, err := l.store.Take(context.Background(), scoped)
				must(t, err)
				at, err := pathsafe.Parse("d/f")
				must(t, err)
				if e, err := snap.At(at); err != nil || e.Type != Broken || !e.Asked {
					t.Errorf("before a rollback: %+v, %v", e, err)
				}
			}
			l.store.sysHook.Call = nil
			read, err := l.store.Find(taken.ID())
			must(t, err)
			for _, s := range []*Snapshot{taken, read} {
				var broken []string
				for e := range s.Entries() {
					if !e.Type.Kept() {
						broken = append(broken, e.Path+": "+e.Unkept())
					}
				}
				h := s.Header()
				want := c.broken + ": the disk reports an error for it: " + c.errno.Error()
				if len(broken) != 1 || broken[0] != want || h.Unread != 1 || !h.Whole || h.ForEmergency() {
					t.Errorf("broken %q, %+v", broken, h)
				}
			}
			l.write(read, "e")
			if again := l.take(); again.Header().Unread != 0 { // the disk does again
				t.Errorf("%+v", again.Header())
			}
		})
	}
}

// TestBrokenStore: an error of the disk of the store is none of a file.
func TestBrokenStore(t *testing.T) {
	for _, size := range []int{100, 3*chunk + 5} {
		l := newFixture(t)
		writeFile(t, l.path("f"), strings.Repeat("x", size))
		l.store.sysHook.Call = func(op, _ string, f func() error) error {
			if op == "write" {
				return unix.EIO
			}
			return f()
		}
		if _, err := l.store.Take(context.Background(), l.request()); !errors.Is(err, unix.EIO) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}
