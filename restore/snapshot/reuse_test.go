package snapshot

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// TestBecomes: a snapshot before a restore reads the objects of what the restore displaces, and
// brings them again where they are damaged; the other files stay in the root.
func TestBecomes(t *testing.T) {
	l := newFixture(t)
	l.store.sysHook.everywhere = true
	l.fill(6)
	must(t, os.Link(l.path("f0004"), l.path("linked")))
	age()
	target := l.take()
	writeFile(t, l.path("f0001"), "displaced")
	must(t, os.Chmod(l.path("f0002"), 0o600))
	writeFile(t, l.path("later"), "later")
	age()
	l.take()
	var mu sync.Mutex // files are looked at in parallel
	read := map[string]bool{}
	l.store.sysHook.Call = func(op, path string, f func() error) error {
		if op == "read object" {
			mu.Lock()
			read[filepath.Base(path)] = true
			mu.Unlock()
		}
		return f()
	}
	req := l.request()
	req.Kind, req.Becomes = PreAction, target
	snap, err := l.store.Take(context.Background(), req)
	must(t, err)
	l.store.sysHook.Call = nil
	for _, e := range snap.entries {
		if want := !slices.Contains([]string{"f0000", "f0003", "f0005"}, e.Path); e.Type == File && read[e.Digest.name()] != want {
			t.Errorf("object of %q read: %v", e.Path, !want)
		}
	}
}
