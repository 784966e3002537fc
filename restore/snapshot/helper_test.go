package snapshot

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/tree"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// tb is of a test and of a rapid one.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func must(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openDir(t tb, path string) *pathsafe.Dir {
	t.Helper()
	d, err := pathsafe.OpenRoot(path)
	must(t, err)
	return d
}

func mkdir(t tb, path string) string {
	t.Helper()
	must(t, os.Mkdir(path, 0o755))
	return path
}

func writeFile(t tb, path, content string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte(content), 0o644))
}

// hostKey is the key of the host of all tests.
var hostKey = sync.OnceValues(bundle.GenerateKey)

// smallParts has a few entries make several parts.
var smallParts = division{inline: 2, least: 1, every: 3, most: 4}

// A fixture is a store and a root.
type fixture struct {
	t      tb
	dir    string
	root   string
	store  *Store
	handle *pathsafe.Dir
	made   int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	l := makeFixture(t, t.TempDir())
	t.Cleanup(l.close)
	return l
}

func makeFixture(t tb, dir string) *fixture {
	t.Helper()
	l := &fixture{t: t, dir: dir, root: mkdir(t, filepath.Join(dir, "root"))}
	mkdir(t, filepath.Join(dir, "state"))
	mkdir(t, filepath.Join(dir, "state", "store"))
	l.handle = openDir(t, l.root)
	l.open()
	return l
}

func (l *fixture) path(name string) string { return filepath.Join(l.root, name) }

func (l *fixture) storePath(name ...string) string {
	return filepath.Join(append([]string{l.dir, "state", "store"}, name...)...)
}

func (l *fixture) open() {
	l.t.Helper()
	var err error
	l.store, err = Open(l.storePath())
	must(l.t, err)
	l.store.division = smallParts
}

func (l *fixture) close() {
	l.store.Close()
	l.handle.Close()
}

func (l *fixture) request(scope ...string) Request {
	req := Request{Root: l.root, Dir: l.handle, Kind: Manual, Reason: "a test", Key: hostKey}
	for _, name := range scope {
		p, err := pathsafe.Parse(name)
		must(l.t, err)
		req.Scope = append(req.Scope, p)
	}
	return req
}

func (l *fixture) take(scope ...string) *Snapshot {
	l.t.Helper()
	snap, err := l.store.Take(context.Background(), l.request(scope...))
	must(l.t, err)
	return snap
}

// write writes a part of a snapshot elsewhere and returns where.
func (l *fixture) write(snap *Snapshot, path string) string {
	l.t.Helper()
	l.made++
	out := filepath.Join(l.dir, fmt.Sprint("out", l.made))
	must(l.t, l.store.Write(context.Background(), snap, parse(l.t, path), openDir(l.t, l.dir), filepath.Base(out)))
	return out
}

func parse(t tb, path string) (p pathsafe.Path) {
	t.Helper()
	if path != "" {
		var err error
		p, err = pathsafe.Parse(path)
		must(t, err)
	}
	return p
}

// sound requires all snapshots of the store to verify.
func (l *fixture) sound() []*Snapshot {
	l.t.Helper()
	headers, err := l.store.List("")
	must(l.t, err)
	var all []*Snapshot
	for _, h := range headers {
		snap, err := l.store.Find(h.ID)
		must(l.t, err)
		damaged, err := l.store.Verify(context.Background(), snap)
		must(l.t, err)
		if len(damaged) > 0 {
			l.t.Fatalf("snapshot %s: %v", h.ID, damaged)
		}
		all = append(all, snap)
	}
	return all
}

// look describes a tree with nothing of the product's own code.
func look(t tb, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	first := map[uint64]string{}
	must(t, tree.Walk(top, func(path string, n *tree.Node, err error) error {
		must(t, err)
		all[path] = describe(t, filepath.Join(top, path), path, n, first)
		return nil
	}))
	return all
}

func describe(t tb, path, rel string, n *tree.Node, first map[uint64]string) string {
	t.Helper()
	parts := []string{fmt.Sprintf("mode=%o owner=%d:%d mtime=%d.%09d", n.Mode, n.Uid, n.Gid, n.Mtim.Sec, n.Mtim.Nsec)}
	content, err := n.Content()
	must(t, err)
	switch n.Kind() {
	case unix.S_IFREG:
		parts = append(parts, fmt.Sprintf("size=%d sha=%x", len(content), sha256.Sum256([]byte(content))))
	case unix.S_IFLNK:
		parts = append(parts, fmt.Sprintf("target=%q", content))
	}
	if n.Nlink > 1 && !n.IsDir() {
		if first[n.Ino] == "" {
			first[n.Ino] = rel
		}
		parts = append(parts, "is="+first[n.Ino])
	}
	return strings.Join(append(parts, attributes(t, path)...), " ")
}

func attributes(t tb, path string) (all []string) {
	t.Helper()
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(path, buf)
	must(t, err)
	for name := range strings.SplitSeq(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		value := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(path, name, value)
		must(t, err)
		all = append(all, fmt.Sprintf("%s=%q", name, value[:n]))
	}
	slices.Sort(all)
	return all
}

func same(t tb, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("not what was taken (-want +got):\n%s", diff)
	}
}

// age makes everything in the store's past: a change from now on shows.
func age() { time.Sleep(fineTick + 20*time.Millisecond) }
