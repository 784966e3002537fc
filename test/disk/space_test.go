package disk

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// small has files of about a block each, so that a step of the sweep is about a
// block; large has files that the space ends in the middle of.
func small() harness.Files {
	files := harness.Files{"empty": "", "two/blocks": strings.Repeat("ab", 4000)}
	for i := range 12 {
		dir := []string{"out", "out/deep", "new/sub"}[i%3]
		files[fmt.Sprintf("%s/f%d", dir, i)] = strings.Repeat("small", 300+40*i)
	}
	return files
}

func large() harness.Files {
	files := small()
	for i := range 4 {
		files[fmt.Sprintf("large/%d", i)] = strings.Repeat(fmt.Sprint("large", i), 125_000)
	}
	return files
}

// A sweep takes space or inodes from a volume, a little less in each step.
type sweep struct {
	p     *harness.Project
	v     *volume
	ends  map[string]int // how often each end was seen, by its code
	tried int
}

func newSweep(t *testing.T, kind string, files harness.Files) *sweep {
	t.Helper()
	return &sweep{p: harness.New(t, files), v: newVolume(t, kind), ends: map[string]int{}}
}

// site makes a restore root on the volume.
func (s *sweep) site(t *testing.T) *harness.Site {
	t.Helper()
	s.tried++
	return s.p.Site(t, filepath.Join(s.v.path, fmt.Sprintf("root%d", s.tried)))
}

// passing is what the journal and the staging directories take while a commit is
// at work, generously. They are gone after it.
const passing = 64 << 10

// need is what a commit leaves behind, in a volume that has plenty.
func (s *sweep) need(t *testing.T) usage {
	t.Helper()
	site := s.site(t)
	before := s.v.free(t)
	if r := site.Commit(t, nil); r.Status != 0 {
		t.Fatal(r)
	}
	after := s.v.free(t)
	site.Remove(t)
	return usage{before.bytes - after.bytes, before.inodes - after.inodes}
}

// step commits into a new root on a volume that narrow has left little of,
// looks at what is there, gives the space back, and commits again.
func (s *sweep) step(t *testing.T, what string, narrow func()) {
	t.Helper()
	site := s.site(t)
	narrow()
	id := site.Preview(t)
	free := s.v.free(t)
	r := s.p.Run(t, nil, harness.CommitArgs(id)...)
	s.ends[r.Answer.Code]++
	if r.Status == 0 {
		want(t, site, harness.After)
		s.v.release(t)
	} else {
		wantFull(t, r)
		want(t, site, harness.Before)
		s.v.wantFree(t, free)
		s.v.release(t)
		again(t, site)
	}
	site.Remove(t)
	if t.Failed() {
		t.Fatalf("%s, %s: %v", s.v.kind, what, r)
	}
}

// report tells what was seen. A sweep that saw no end but one has swept nothing.
func (s *sweep) report(t *testing.T, what string, steps int) {
	t.Helper()
	ends := ""
	for _, code := range slices.Sorted(maps.Keys(s.ends)) {
		name := code
		if code == "" {
			name = "done"
		}
		ends += fmt.Sprintf(", %s %d", name, s.ends[code])
	}
	t.Logf("%s, %s: %d steps%s", s.v.kind, what, steps, ends)
	if s.ends[""] == 0 || len(s.ends) < 2 {
		t.Errorf("the sweep of %s saw only one end", s.v.kind)
	}
}

// xfsChunks is what xfs wants to have free beyond what it takes: it makes inodes
// in chunks.
const xfsChunks = 1 << 20

// bytes sweeps the free space from none to a tenth more than the need.
func (s *sweep) bytes(t *testing.T, steps int) {
	t.Helper()
	need := s.need(t).bytes + passing
	if s.v.kind == "xfs" {
		need += xfsChunks
	}
	for i := range steps {
		leave := need * 11 / 10 * int64(i) / int64(steps-1)
		s.step(t, fmt.Sprintf("%d bytes free of %d", leave, need), func() { s.v.leaveBytes(t, leave) })
	}
	s.report(t, fmt.Sprintf("need %d bytes", need), steps)
}

func TestSpace(t *testing.T) {
	for _, c := range []struct {
		kind  string
		files harness.Files
		steps int
	}{
		{"tmpfs", small(), 32}, {"ext4", small(), 32}, {"xfs", large(), 8}, {"btrfs", large(), 8},
	} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			newSweep(t, c.kind, c.files).bytes(t, c.steps)
		})
	}
}

func TestLongSpace(t *testing.T) {
	if os.Getenv("SPECTRUM_LONG") == "" {
		t.Skip("long: make test-long")
	}
	for _, kind := range []string{"tmpfs", "ext4", "ext4-1k", "xfs", "btrfs"} {
		for name, files := range map[string]harness.Files{"small": small(), "large": large()} {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				newSweep(t, kind, files).bytes(t, 32)
			})
		}
	}
}

// TestInodes sweeps the free inodes from none to more than the need.
func TestInodes(t *testing.T) {
	for _, kind := range []string{"tmpfs-few", "ext4-few"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSweep(t, kind, small())
			need := int(s.need(t).inodes)
			for i := range need + need/10 + 8 {
				s.step(t, fmt.Sprintf("%d inodes free of %d", i, need), func() { s.v.leaveInodes(t, i) })
			}
			s.report(t, fmt.Sprintf("need %d inodes", need), need+need/10+8)
		})
	}
}
