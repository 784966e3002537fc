package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// A sweep tries the cases of its stride, each once, and an earlier one when all of
// them are behind the last.
func TestSweep(t *testing.T) {
	for _, c := range []struct {
		cases, first, every int
		want                []int
	}{
		{5, 1, 1, []int{1, 2, 3, 4, 5}},
		{10, 3, 4, []int{3, 7}},
		{2, 9, 10, []int{2}},
		{1, 100, 100, []int{1}},
	} {
		t.Run(fmt.Sprint(c.cases, c.first, c.every), func(t *testing.T) {
			var mu sync.Mutex
			var tried []int
			Sweep(t, sample.Stride{First: c.first, Every: c.every}, func(_ *testing.T, n int) bool {
				mu.Lock()
				defer mu.Unlock()
				if n <= c.cases {
					tried = append(tried, n)
				}
				return n <= c.cases
			})
			if slices.Sort(tried); !slices.Equal(tried, c.want) {
				t.Errorf("tried %v, want %v", tried, c.want)
			}
		})
	}
}

// Over 17 calls in a row every kind of fault has its turn.
func TestFaultsAt(t *testing.T) {
	all := len(AllFaults())
	for _, count := range []int{1, 3, all + 5} {
		seen := map[Fault]int{}
		for n := range all {
			for _, f := range FaultsAt(n, count) {
				seen[f]++
			}
		}
		for f, times := range seen {
			if want := min(count, all); times != want || len(seen) != all {
				t.Errorf("%d at a call: %v had %d turns, want %d; %d kinds of %d", count, f, times, want, len(seen), all)
			}
		}
	}
}

// A copy of an image is a file system of its own.
func TestVolumes(t *testing.T) {
	for _, f := range []Format{Ext4, Ext41K, Ext4Few, XFS, Btrfs, Tmpfs, TmpfsFew} {
		t.Run(f.Name, func(t *testing.T) {
			one, two := MountedVolume(t, f), MountedVolume(t, f)
			Must(t, os.WriteFile(filepath.Join(one.Path, "file"), []byte("of one"), 0o600))
			if _, err := os.Stat(filepath.Join(two.Path, "file")); err == nil {
				t.Error("two volumes are one")
			}
			if f.Size > 0 {
				one.Remount(t)
			}
			if text, err := os.ReadFile(filepath.Join(one.Path, "file")); string(text) != "of one" {
				t.Errorf("%q, %v", text, err)
			}
			two.PrepareFill(t)
			free := two.Free(t)
			two.LeaveBytes(t, 0)
			if err := os.WriteFile(filepath.Join(two.Path, "file"), []byte(strings.Repeat("x", 1<<20)), 0o600); err == nil {
				t.Error("a full volume takes a file")
			}
			_ = os.Remove(filepath.Join(two.Path, "file"))
			two.Release(t)
			two.DemandFree(t, free)
		})
	}
}
