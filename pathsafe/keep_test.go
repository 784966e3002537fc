package pathsafe

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCloseAll closes some of many open files together, in any order: exactly these, and each of
// them once.
func TestCloseAll(t *testing.T) {
	root := openDir(t, t.TempDir(), chooseWalker())
	var all []*File
	for i := range 64 {
		f, err := root.CreateFile(fmt.Sprint(i), 0o600)
		must(t, err)
		all = append(all, f)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var closed, open []*File
	var numbers []uintptr
	for i, f := range all {
		if !f.Keep() {
			t.Fatal("it may not stay open")
		}
		if i%8 == 0 || rng.IntN(5) == 0 {
			open = append(open, f)
			continue
		}
		closed, numbers = append(closed, f, nil), append(numbers, f.Fd())
	}
	rng.Shuffle(len(closed), func(i, j int) { closed[i], closed[j] = closed[j], closed[i] })
	must(t, CloseAll(closed))
	for _, n := range numbers {
		if _, err := unix.FcntlInt(n, unix.F_GETFD, 0); err != unix.EBADF {
			t.Errorf("descriptor %d: %v", n, err)
		}
	}
	for _, f := range open {
		if _, err := StatFile(f); err != nil {
			t.Error(err)
		}
	}
	if err := CloseAll(append(closed, open...)); err != nil {
		t.Error(err)
	}
	if err := open[0].Close(); err == nil {
		t.Error("a file was closed twice")
	}
}

// TestLend: a user that closes a file leaves it open for its owner, which is notified.
func TestLend(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(dir+"/f", []byte("content"), 0o600))
	var near Opener
	defer near.Close()
	f, _, err := near.OpenRegular(openDir(t, dir, chooseWalker()), mustParse(t, "f"), NoLinks)
	must(t, err)
	other, _, err := near.OpenRegular(openDir(t, dir, chooseWalker()), mustParse(t, "f"), NoLinks)
	must(t, err)
	defer other.Close()
	closed := 0
	for range 2 {
		lent := f.Lend(func() { closed++ })
		got, err := io.ReadAll(io.NewSectionReader(lent, 0, 100))
		if err != nil || string(got) != "content" {
			t.Errorf("%q, %v", got, err)
		}
		if err := lent.Close(); err != nil {
			t.Error(err)
		}
		if err := lent.Close(); err == nil {
			t.Error("it was closed twice")
		}
	}
	must(t, CloseAll([]*File{f.Lend(func() { closed++ }), other.Lend(nil)}))
	for _, f := range []*File{f, other} {
		if _, err := StatFile(f); err != nil {
			t.Error(err)
		}
	}
	if err := f.Lend(nil).Close(); err != nil || closed != 3 {
		t.Errorf("closed %d times: %v", closed, err)
	}
	must(t, f.Close())
}

// TestKeepable: enough descriptors are left for everything else.
func TestKeepable(t *testing.T) {
	for limit, want := range map[uint64]int64{0: 0, 64: 0, 1024: 0, 1034: 10, 20000: 18976, 1 << 20: maxKept, math.MaxUint64: maxKept} {
		if got := keepableOf(limit); got != want {
			t.Errorf("limit %d: %d files, want %d", limit, got, want)
		}
	}
	before := kept.Load()
	defer kept.Store(before)
	d := openDir(t, t.TempDir(), chooseWalker())
	f, err := d.CreateFile("f", 0o600)
	must(t, err)
	kept.Store(keepable() - 1)
	for range 2 {
		if !f.Keep() {
			t.Error("the last file may not stay open")
		}
	}
	other, err := d.CreateFile("other", 0o600)
	must(t, err)
	defer other.Close()
	if other.Keep() {
		t.Error("too many files may stay open")
	}
	must(t, f.Close())
	if !other.Keep() {
		t.Error("a file that was closed still counts")
	}
}
