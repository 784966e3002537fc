package snapshot

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// denied makes a call at a name fail.
func (l *fixture) denied(op, name string) {
	l.store.sysHook.Call = func(o, path string, f func() error) error {
		if o == op && (path == name || strings.HasSuffix(path, "root/"+name)) {
			return unix.EACCES
		}
		return f()
	}
}

// TestUnread: what may not be read is named, whichever call says so, and all the rest is kept.
// The snapshot is a partial one, also when it was read from the store. Where it is the very name
// of a scope it is an error.
func TestUnread(t *testing.T) {
	for _, c := range []struct{ op, name, unread string }{
		{"open", "f", "d/f"}, {"open directory", "d", "d"}, {"list", "d", "d"}, {"stat", "f", "d/f"}, {"read link", "link", "d/link"},
	} {
		t.Run(c.op, func(t *testing.T) {
			l := newFixture(t)
			mkdir(t, l.path("d"))
			writeFile(t, l.path("d/f"), "content")
			writeFile(t, l.path("e"), "content")
			must(t, unix.Symlink("f", l.path("d/link")))
			l.denied(c.op, c.name)
			taken := l.take()
			scoped := l.request("d")
			_, err := l.store.Take(context.Background(), scoped)
			l.store.sysHook.Call = nil
			if (err == nil) != (c.unread != "d") {
				t.Errorf("of %q alone: %v", "d", err)
			}
			read, err := l.store.Find(taken.ID())
			must(t, err)
			for _, s := range []*Snapshot{taken, read} {
				var unread []string
				for e := range s.Entries() {
					if e.Type == Unread {
						unread = append(unread, e.Path)
					}
				}
				h := s.Header()
				if !slices.Equal(unread, []string{c.unread}) || h.Unread != 1 || !h.Whole || h.ForEmergency() {
					t.Errorf("unread %q, %+v", unread, h)
				}
			}
			to, err := l.store.Target(context.Background(), l.root, "")
			if err != nil || to.Snapshot != nil {
				t.Errorf("an emergency goes back to %v, %v", to.Snapshot, err)
			}
			l.write(read, "e")
		})
	}
}

// TestDeep: a directory with a path in it that is too long is named, and not looked into.
func TestDeep(t *testing.T) {
	l := newFixture(t)
	writeFile(t, l.path("e"), "content")
	at, err := unix.Open(l.root, unix.O_PATH, 0)
	must(t, err)
	length, want := 0, ""
	for i := range 30 {
		name := fmt.Sprintf("%0200d", i)
		if want == "" && length+len(name) > pathsafe.MaxPath {
			want = fmt.Sprintf("%0200d", i-1)
		}
		length += len(name) + 1
		must(t, unix.Mkdirat(at, name, 0o755))
		next, err := unix.Openat(at, name, unix.O_PATH, 0)
		must(t, err)
		must(t, unix.Close(at))
		at = next
	}
	must(t, unix.Close(at))
	taken := l.take()
	var odd []Entry
	for e := range taken.Entries() {
		if !e.Type.Kept() {
			odd = append(odd, e)
		}
	}
	if len(odd) != 1 || odd[0].Type != Deep || !strings.HasSuffix(odd[0].Path, want) || !taken.header.ForEmergency() {
		t.Errorf("%+v", odd)
	}
	if _, err := l.store.Find(taken.ID()); err != nil {
		t.Error(err)
	}
}

// TestPrunePartial: partial snapshots are counted apart, and the newest of them stays where no
// other is one of the whole root.
func TestPrunePartial(t *testing.T) {
	l := newFixture(t)
	writeFile(t, l.path("f"), "content")
	partial := func() *Snapshot {
		l.denied("open", "f")
		defer func() { l.store.sysHook.Call = nil }()
		writeFile(t, l.path("f"), "content") // so that it is read again
		return l.take()
	}
	gone := func(p Policy) []string {
		done, err := l.store.Prune(context.Background(), p, nil)
		must(t, err)
		var ids []string
		for _, h := range done.Gone {
			ids = append(ids, h.ID)
		}
		return ids
	}
	first, second := partial(), partial()
	l.take("f") // the newest of the root
	if got := gone(Policy{KeepWithin: 1}); !slices.Equal(got, []string{first.ID()}) {
		t.Errorf("%q went, want %s", got, first.ID())
	}
	whole, third := l.take(), partial()
	l.take("f")
	if got := gone(Policy{KeepLast: 1}); slices.Contains(got, whole.ID()) || slices.Contains(got, third.ID()) || !slices.Contains(got, second.ID()) {
		t.Errorf("%q went", got)
	}
}
