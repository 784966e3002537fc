package staging

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// lowerReset is a root in the lower layer of an overlay, of which files go and are replaced, and
// directories go file by file.
func lowerReset(t testing.TB, above string) *resetFixture {
	t.Helper()
	below := harness.MountedVolume(t, harness.Tmpfs).Path
	plant(t, below, "lower/root/keep", "lower/root/a/file", "lower/root/a/REPORT", "lower/root/b/tree/x", "lower/root/b/tree/y/z", "lower/root/b/stays", "lower/root/c/f", "lower/beside", "up/", "work/")
	must(t, os.Chmod(filepath.Join(below, "lower/root/b/tree"), 0o751))
	must(t, os.MkdirAll(above, 0o755))
	must(t, unix.Mount("overlay", above, "overlay", 0, "lowerdir="+below+"/lower,upperdir="+below+"/up,workdir="+below+"/work"))
	t.Cleanup(func() { _ = unix.Unmount(above, unix.MNT_DETACH) })
	f := newResetFixture(t, above)
	f.swap("a/file", true)
	f.swap("a/new", true)
	f.swap("a/REPORT", true).Last = true
	f.swap("b/tree/y/z", false)
	f.swap("b/tree/y", false).Empty = true
	f.swap("b/tree/x", false)
	f.swap("b/tree", false).Empty = true
	f.swap("c/f", false)
	f.swap("c", true).Empty = true // a file for a directory
	l, err := enter(t.Context(), openRoot(t, f.root()), testKey, &sysHook{})
	must(t, err)
	must(t, l.Hold(t.Context()))
	must(t, l.CopyUp(f.e.Swaps))
	l.Close()
	return f
}

// TestOverlayKilled: a reset in the lower layer of an overlay is killed before each of its
// calls, or one of them fails; all of it is done or nothing. A directory that comes back is made
// again, with all that is in it.
func TestOverlayKilled(t *testing.T) {
	fresh := func() (*resetFixture, sight) {
		f := lowerReset(t, filepath.Join(t.TempDir(), "x"))
		f.lazy = true
		return f, f.contents()
	}
	f, before := fresh()
	calls := 0
	must(t, f.run(func(op, path string, do func() error) error { calls++; return do() }))
	after := f.contents()
	if before.diff(after) == "" {
		t.Fatal("nothing was done")
	}
	ends := map[string]int{}
	for _, n := range tries(t, 12, calls) {
		f, before := fresh()
		if survived(func() { _ = f.run(killer(n)) }) {
			t.Fatalf("call %d was not reached", n)
		}
		out, err := f.recover(Automatic, nil)
		must(t, err)
		now := f.contents()
		switch {
		case before.diff(now) == "":
			ends["before"]++
		case after.diff(now) == "":
			ends["after"]++
		default:
			t.Fatalf("killed before call %d, %v: is not as before:\n%s\nnor as after:\n%s", n, out, before.diff(now), after.diff(now))
		}
	}
	for _, n := range tries(t, 12, calls) {
		f, before := fresh()
		err := f.run((&injector{fault: faults[0], n: n}).hook)
		if err == nil {
			ends["harmless"]++
			continue
		}
		if e := failure(t, err); e.Rollback != nil {
			t.Fatalf("call %d: %v", n, e)
		}
		ends["undone"]++
		if d := before.diff(f.contents()); d != "" {
			t.Fatalf("call %d failed: %v\n%s", n, err, d)
		}
	}
	t.Logf("%d calls: %v", calls, ends)
}

// contents is what is in the root, without inodes: on an overlay a directory comes back as
// another one.
func (f *resetFixture) contents() sight {
	f.t.Helper()
	p := f.see(f.above)
	for path, what := range p {
		what.ino = 0
		_, what.text, _ = strings.Cut(what.text, `"`) // without the time, which what is made anew has not
		p[path] = what
	}
	return p
}
