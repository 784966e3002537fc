package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/sample"
)

var errFault = errors.New("fault of the test")

// A fault makes calls through the hook fail. It leaves out the syncs: what they
// are for, TestOrder sees.
type fault struct {
	mu    sync.Mutex
	n     int  // the call that fails, from 1
	kill  bool // nothing is done any more after it
	after bool // it is done all the same
	calls int
	log   []string
}

func (f *fault) hook(op, path string, call func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	f.log = append(f.log, op+" "+path)
	if f.calls < f.n || f.n == 0 || f.calls > f.n && !f.kill {
		if strings.HasPrefix(op, "sync") {
			return nil
		}
		return call()
	}
	if f.calls == f.n && f.after {
		_ = call()
	}
	return fmt.Errorf("%s %q: %w", op, path, errFault)
}

// eachFault calls try with a fault at the calls that are tried, until one is not reached.
func eachFault(t *testing.T, try func(t *testing.T, f *fault)) {
	for _, mode := range []*fault{{}, {kill: true}, {kill: true, after: true}} {
		t.Run(fmt.Sprintf("kill=%v,after=%v", mode.kill, mode.after), func(t *testing.T) {
			tried := sample.Every(t, 6)
			for i := 0; ; i++ {
				n := tried.At(i)
				f := &fault{n: n, kill: mode.kill, after: mode.after}
				try(t, f)
				if f.calls < n {
					if n < 20 {
						t.Fatalf("only %d calls", n)
					}
					return
				}
			}
		})
	}
}

// An error that reports a changed file at a name in the root does not apply to an object in the
// store: an object that could not be written is not kept.
func TestStaleStore(t *testing.T) {
	for _, size := range []int{100, chunk + 100} {
		l := newFixture(t)
		for n := 1; ; n++ {
			writeFile(t, l.path("file"), strings.Repeat(fmt.Sprint(n), size))
			var mu sync.Mutex
			calls := 0
			l.store.sysHook.Call = func(op, path string, call func() error) error {
				if strings.HasPrefix(op, "sync") {
					return nil
				}
				mu.Lock()
				defer mu.Unlock()
				if strings.HasPrefix(op, "write") {
					if calls++; calls == n {
						return fmt.Errorf("%s %q: %w", op, path, unix.ESTALE)
					}
				}
				return call()
			}
			snap, err := l.store.Take(context.Background(), l.request())
			l.reopen()
			l.sound()
			if err == nil {
				same(t, look(t, l.root), look(t, l.write(snap, "")))
			}
			if t.Failed() {
				t.Fatalf("size %d, write %d", size, n)
			}
			if calls < n {
				must(t, err)
				break
			}
		}
	}
}

// Wherever Take fails or is killed, every snapshot that is listed is whole, and
// the next one works.
func TestFaultsOfTake(t *testing.T) {
	l := newFixture(t)
	l.populate()
	l.reopen()
	round := 0
	eachFault(t, func(t *testing.T, f *fault) {
		round++
		writeFile(t, l.path("file"), fmt.Sprint("round ", round%5))
		before, err := l.store.List("")
		must(t, err)
		l.store.sysHook.Call = f.hook
		snap, err := l.store.Take(context.Background(), l.request())
		l.reopen()
		all := l.sound()
		switch {
		case err == nil && len(all) != len(before)+1:
			t.Fatalf("call %d: taken, but not listed", f.n)
		case err == nil:
			same(t, look(t, l.root), look(t, l.write(snap, "")))
		case !errors.Is(err, errFault):
			t.Fatalf("call %d: %v", f.n, err)
		case len(all) > len(before)+1:
			t.Fatalf("call %d: %d snapshots of one take", f.n, len(all)-len(before))
		}
		if len(all) > 4 {
			_, err := l.store.Prune(context.Background(), Policy{KeepLast: 1}, nil)
			must(t, err)
		}
	})
	l.take()
	l.emptyIncoming()
}

// Wherever Prune fails or is killed, no snapshot lacks an object.
func TestFaultsOfPrune(t *testing.T) {
	top := t.TempDir()
	round := 0
	eachFault(t, func(t *testing.T, f *fault) {
		round++
		l := makeFixture(t, mkdir(t, filepath.Join(top, fmt.Sprint(round)))) // a new one has few directories of objects
		defer l.close()
		l.fill(5)
		l.reopen()
		for i := range 3 {
			writeFile(t, l.path("file"), fmt.Sprint("round ", i))
			l.take()
		}
		l.store.sysHook.Call = f.hook
		_, err := l.store.Prune(context.Background(), Policy{KeepLast: 1}, nil)
		if err != nil && !errors.Is(err, errFault) {
			t.Fatalf("call %d: %v", f.n, err)
		}
		l.reopen()
		all := l.sound()
		same(t, look(t, l.root), look(t, l.write(all[len(all)-1], "")))
		unread := !f.kill && len(all) == 2 // the newest could not be read, so the one before it is that of an emergency
		if err == nil && len(all) != 1 && !unread {
			t.Fatalf("call %d: %d snapshots are left", f.n, len(all))
		}
		_, err = l.store.Prune(context.Background(), Policy{KeepLast: 1}, nil)
		must(t, err)
		left := l.sound()
		if len(left) != 1 {
			t.Fatalf("call %d: %d snapshots are left by the next one", f.n, len(left))
		}
		needed := map[string]bool{}
		for _, e := range left[0].entries {
			needed[e.Digest.name()] = e.Type == File
		}
		for _, p := range left[0].parts {
			needed[p.digest.name()] = true
		}
		for name := range l.objects() {
			if !needed[name] {
				t.Fatalf("call %d: object %s is left", f.n, name)
			}
		}
	})
}

func (l *fixture) reopen() {
	l.store.Close()
	l.open()
	l.store.sysHook.Call = (&fault{}).hook // no syncs
}

func (l *fixture) emptyIncoming() {
	l.t.Helper()
	left, err := os.ReadDir(l.storePath(incomingName))
	must(l.t, err)
	if len(left) > 0 {
		l.t.Fatalf("left in incoming: %v", left)
	}
}

func (l *fixture) populate() {
	l.t.Helper()
	mkdir(l.t, l.path("dir"))
	mkdir(l.t, l.path("dir/empty"))
	writeFile(l.t, l.path("dir/one"), "one")
	writeFile(l.t, l.path("dir/two"), strings.Repeat("two", chunk/3+1))
	must(l.t, os.Link(l.path("dir/one"), l.path("hard")))
	must(l.t, os.Symlink("dir/one", l.path("link")))
	writeFile(l.t, l.path("file"), "0")
}

// before requires a call, and before the first of them the last of others.
func (f *fault) before(t *testing.T, first, then string) {
	t.Helper()
	is := func(prefix string) func(string) bool {
		return func(s string) bool { return strings.HasPrefix(s, prefix) }
	}
	slices.Reverse(f.log)
	last := len(f.log) - 1 - slices.IndexFunc(f.log, is(first))
	slices.Reverse(f.log)
	next := slices.IndexFunc(f.log, is(then))
	if next < 0 || last == len(f.log) || last > next {
		t.Errorf("the last %q is call %d, the first %q call %d of %q", first, last, then, next, f.log)
	}
}

// Objects, those of parts too, are durable before they get their names, those before there is a
// manifest, and that before it gets its own.
func TestOrder(t *testing.T) {
	for _, files := range []int{few / 4, few + 4} { // and the parts of the manifest
		l := newFixture(t)
		for i := range files {
			writeFile(t, l.path(fmt.Sprint(i)), fmt.Sprint(i))
		}
		f := &fault{}
		l.store.sysHook.Call = f.hook
		l.take()
		l.store.sysHook.Call = nil
		var renames, syncs []int
		for i, call := range f.log {
			if strings.HasPrefix(call, "rename") {
				renames = append(renames, i)
			}
			if strings.HasPrefix(call, "sync") && !strings.HasSuffix(call, "/root") { // the sync of the root is for its own sake
				syncs = append(syncs, i)
			}
		}
		between := func(a, b int) bool {
			return slices.ContainsFunc(syncs, func(i int) bool { return a < i && i < b })
		}
		last := len(renames) - 1
		f.before(t, "write", "sync manifest")
		parts := len(l.sound()[0].parts)
		for _, i := range renames[:last] {
			object := strings.TrimPrefix(f.log[i], "rename ")
			if files < few && !slices.Contains(f.log[:renames[0]], "sync "+object) {
				t.Errorf("%d files: %q has its name before it is durable: %q", files, object, f.log)
			}
		}
		if parts == 0 || len(renames) != files+parts+1 || !between(0, renames[0]) || !between(renames[last-1], renames[last]) || !between(renames[last], len(f.log)) {
			t.Errorf("%d files: renames %v, syncs %v: %q", files, renames, syncs, f.log)
		}
	}
}
