package snapshot

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkStore holds a second Take of the same against the first, and Write of
// all against cp -a; both with what makes them durable. SNAPSHOT_FILES is how
// many files of 4 KiB there are.
func BenchmarkStore(b *testing.B) {
	files := 10_000
	if n := os.Getenv("SNAPSHOT_FILES"); n != "" {
		_, err := fmt.Sscan(n, &files)
		must(b, err)
	}
	dir := b.TempDir()
	root := mkdir(b, filepath.Join(dir, "source"))
	fillTree(b, root, files)
	age()
	for i := range b.N {
		l := makeFixture(b, mkdir(b, filepath.Join(dir, fmt.Sprint(i))))
		l.root, l.handle = root, openDir(b, root)
		l.store.division = usualDivision
		first := clock(func() { l.take() })
		var snap *Snapshot
		again := min(clock(func() { snap = l.take() }), clock(func() { snap = l.take() }))
		write := clock(func() {
			must(b, l.store.Write(context.Background(), snap, parse(b, ""), openDir(b, l.dir), "written"))
			must(b, openDir(b, l.dir).SyncFS())
		})
		cp := clock(func() {
			must(b, exec.Command("cp", "-a", root, filepath.Join(l.dir, "copied")).Run())
			must(b, exec.Command("sync", "-f", l.dir).Run())
		})
		verify := clock(func() { l.sound() })
		l.close()
		must(b, os.RemoveAll(l.dir))
		b.Logf("first %v, second %v (1/%.1f), write %v, cp -a %v (%.2f), verify %v",
			first, again, float64(first)/float64(again), write, cp, float64(write)/float64(cp), verify)
	}
}

func clock(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func fillTree(b *testing.B, root string, files int) {
	const perDir = 100
	data := make([]byte, 4096)
	for i := range files {
		dir := filepath.Join(root, fmt.Sprintf("%04d", i/perDir))
		if i%perDir == 0 {
			mkdir(b, dir)
		}
		binary.LittleEndian.PutUint64(data, uint64(i))
		must(b, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%06d.bin", i)), data, 0o644))
	}
}
