package bundle_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// BenchmarkSeal seals the same files with and without a block table in turn, and reports the processor
// time with one for each second without: 1.05 is the goal.
func BenchmarkSeal(b *testing.B) {
	for _, c := range []struct {
		files, size int
	}{{1, 512 << 20}, {20_000, 8 << 10}} {
		b.Run(fmt.Sprintf("%d files of %d KiB", c.files, c.size>>10), func(b *testing.B) {
			dir := b.TempDir()
			content := bytes.Repeat([]byte("data\n"), c.size/5+1)[:c.size]
			for i := range c.files {
				path := filepath.Join(dir, "data", fmt.Sprint(i/200), fmt.Sprint(i))
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					b.Fatal(err)
				}
				if err := os.WriteFile(path, content, 0o644); err != nil {
					b.Fatal(err)
				}
			}
			var with, without time.Duration
			for i := range 2 * b.N {
				if took, blocks := sealed(b, dir, (i+i/2)%2 == 0); blocks {
					with += took
				} else {
					without += took
				}
			}
			b.ReportMetric(with.Seconds()/without.Seconds(), "with/without")
		})
	}
}

// sealed returns the processor time of sealing a project.
func sealed(b *testing.B, dir string, blocks bool) (time.Duration, bool) {
	project, err := pathsafe.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer project.Close()
	key, err := bundle.GenerateKey()
	if err != nil {
		b.Fatal(err)
	}
	opts := bundle.SealOptions{Project: project, RunDir: filepath.Join(dir, "run"), Outputs: []string{"data"}, Key: key, BuildID: "git:bench", Blocks: blocks}
	before := processorTime(b)
	_, err = bundle.Seal(b.Context(), opts)
	took := processorTime(b) - before
	if err != nil {
		b.Fatal(err)
	}
	if err := os.RemoveAll(opts.RunDir); err != nil {
		b.Fatal(err)
	}
	return took, blocks
}

func processorTime(b *testing.B) time.Duration {
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
