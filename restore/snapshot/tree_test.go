package snapshot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var someNames = []string{
	"a", "a.b", "a-b", "b", "ä", "日本", "\xff\xfe", "100%", "%41", "back\\slash", "new\nline", `q"uote`, " ", "...", "-rf",
	"é", "e\u0301", "\x01", strings.Repeat("n", 255),
}

// A grower changes a tree at random.
type grower struct {
	t    tb
	rng  *rand.Rand
	root string
}

func (g *grower) pick(all []string) string { return all[g.rng.IntN(len(all))] }

// paths returns everything below the root of the kinds that are wanted.
func (g *grower) paths(wanted func(os.FileMode) bool) (all []string) {
	must(g.t, filepath.WalkDir(g.root, func(path string, e os.DirEntry, err error) error {
		must(g.t, err)
		if path != g.root && wanted(e.Type()) {
			all = append(all, path)
		}
		return nil
	}))
	return all
}

func any_(os.FileMode) bool { return true }

func regular(m os.FileMode) bool { return m.IsRegular() }

func (g *grower) dir() string {
	return g.pick(append(g.paths(os.FileMode.IsDir), g.root))
}

func (g *grower) step() {
	path := filepath.Join(g.dir(), g.pick(someNames))
	if len(path) > 3000 {
		return
	}
	switch g.rng.IntN(12) {
	case 0, 1:
		_ = os.Mkdir(path, 0o755)
	case 2, 3, 4:
		g.file(path)
	case 5:
		_ = os.Symlink(g.pick([]string{"a", "nowhere", "../../../etc/passwd", "/", "\xff", ".", "x\\y%41"}), path)
	case 6:
		_ = unix.Mkfifo(path, 0o640)
	case 7:
		if all := g.paths(func(m os.FileMode) bool { return !m.IsDir() }); len(all) > 0 {
			_ = os.Link(g.pick(all), path)
		}
	case 8:
		if all := g.paths(any_); len(all) > 0 {
			must(g.t, os.RemoveAll(g.pick(all)))
		}
	case 9:
		if all := g.paths(any_); len(all) > 0 {
			_ = os.Rename(g.pick(all), path)
		}
	case 10:
		g.edit()
	default:
		g.metadata()
	}
}

func (g *grower) content() []byte {
	sizes := []int{0, 1, 5, 4095, 4096, 4097, 70_000, chunk - 1, chunk, chunk + 1, 3*chunk + 7}
	data := make([]byte, sizes[min(g.rng.IntN(2*len(sizes)), len(sizes)-1)%(1+g.rng.IntN(len(sizes)))])
	for i := range data {
		data[i] = byte(i * (1 + g.rng.IntN(2)))
	}
	return data
}

func (g *grower) file(path string) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil { // the name is taken
		return
	}
	defer f.Close()
	if g.rng.IntN(4) > 0 {
		_, err = f.Write(g.content())
		must(g.t, err)
		return
	}
	if g.rng.IntN(2) == 0 {
		_, err = f.WriteAt([]byte("data"), int64(g.rng.IntN(40_000)))
		must(g.t, err)
	}
	must(g.t, f.Truncate(int64(g.rng.IntN(3*chunk))))
}

func (g *grower) edit() {
	all := g.paths(regular)
	if len(all) == 0 {
		return
	}
	path := g.pick(all)
	info, err := os.Stat(path)
	must(g.t, err)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(g.t, err)
	defer f.Close()
	_, err = f.WriteAt([]byte{byte(g.rng.Int())}, g.rng.Int64N(info.Size()+1))
	must(g.t, err)
	if g.rng.IntN(2) == 0 { // hide it
		must(g.t, os.Chtimes(path, time.Time{}, info.ModTime()))
	}
}

func (g *grower) metadata() {
	all := append(g.paths(any_), g.root)
	path := g.pick(all)
	info, err := os.Lstat(path)
	must(g.t, err)
	link := info.Mode()&os.ModeSymlink != 0
	switch g.rng.IntN(4) {
	case 0:
		if !link {
			must(g.t, unix.Chmod(path, uint32([]int{0, 0o400, 0o777, 0o4755, 0o2755, 0o1777, 0o6000}[g.rng.IntN(7)])))
		}
	case 1:
		ts := unix.Timespec{Sec: int64([]int{-1, -5_000_000, 0, 1, 1 << 33}[g.rng.IntN(5)]), Nsec: int64(g.rng.IntN(1e9))}
		must(g.t, unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW))
	case 2:
		must(g.t, os.Lchown(path, g.rng.IntN(3)*1000, g.rng.IntN(3)*1000))
	default:
		name := g.pick([]string{"trusted.a", "trusted.\xff%", "user.b", "user.ü"})
		err := unix.Lsetxattr(path, name, []byte(g.pick([]string{"", "x", "\x00\xff", strings.Repeat("v", 600)})), 0)
		if err != nil && !strings.HasPrefix(name, "user.") {
			must(g.t, err)
		}
	}
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: owners and all modes")
	}
}

// Whatever a tree is, and whatever becomes of it: each snapshot writes it again
// as it was, also after others are gone.
func TestTrees(t *testing.T) {
	needRoot(t)
	harness.Checks(t, sample.Of(12, 100, 100))
	base := t.TempDir()
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		l := makeFixture(rt, mkdir(rt, filepath.Join(base, fmt.Sprint(n))))
		defer os.RemoveAll(l.dir)
		defer l.close()
		g := &grower{rt, rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0)), l.root}
		var taken []*Snapshot
		var were []map[string]string
		for range rapid.IntRange(1, 4).Draw(rt, "snapshots") {
			for range rapid.IntRange(0, 25).Draw(rt, "steps") {
				g.step()
			}
			were = append(were, look(rt, l.root))
			taken = append(taken, l.take())
		}
		for i, snap := range taken {
			found, err := l.store.Find(snap.ID())
			must(rt, err)
			same(rt, were[i], look(rt, l.write(found, "")))
		}
		keep := rapid.IntRange(1, len(taken)).Draw(rt, "keep")
		_, err := l.store.Prune(context.Background(), Policy{KeepLast: keep}, nil)
		must(rt, err)
		left := l.sound()
		if len(left) != min(keep, len(taken)) {
			rt.Fatalf("%d snapshots are left, want %d", len(left), keep)
		}
		for i, snap := range left {
			same(rt, were[len(were)-len(left)+i], look(rt, l.write(snap, "")))
		}
	})
}
