package disk

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
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
	v     *harness.Volume
	ends  harness.Tally // by their codes
	tried int
}

func newSweep(t *testing.T, f harness.Format, files harness.Files) *sweep {
	t.Helper()
	return &sweep{p: harness.New(t, files), v: filled(t, f)}
}

// site makes a restore root on the volume.
func (s *sweep) site(t *testing.T) *harness.Site {
	t.Helper()
	s.tried++
	return s.p.Site(t, filepath.Join(s.v.Path, fmt.Sprintf("root%d", s.tried)))
}

// passing is what the journal and the staging directories take while a commit is
// at work, generously. They are gone after it.
const passing = 64 << 10

// need is what a commit leaves behind, in a volume that has plenty.
func (s *sweep) need(t *testing.T) harness.Usage {
	t.Helper()
	site := s.site(t)
	before := s.v.Free(t)
	if r := site.Commit(t, nil); r.Status != 0 {
		t.Fatal(r)
	}
	after := s.v.Free(t)
	site.Remove(t)
	return harness.Usage{Bytes: before.Bytes - after.Bytes, Inodes: before.Inodes - after.Inodes}
}

// step commits into a new root on a volume that narrow has left little of,
// looks at what is there, gives the space back, and commits again.
func (s *sweep) step(t *testing.T, what string, narrow func()) {
	t.Helper()
	site := s.site(t)
	narrow()
	id := site.Preview(t)
	free := s.v.Free(t)
	r := s.p.Run(t, nil, harness.CommitArgs(id)...)
	s.ends.Add(ending(r))
	if r.Status == 0 {
		want(t, site, harness.After)
		s.v.Release(t)
	} else {
		wantFull(t, r)
		want(t, site, harness.Before)
		s.v.DemandFree(t, free)
		s.v.Release(t)
		again(t, site)
	}
	site.Remove(t)
	if t.Failed() {
		t.Fatalf("%s, %s: %v", s.v.Name, what, r)
	}
}

// ending names how a commit ended.
func ending(r harness.Reply) string {
	if r.Status == 0 {
		return "done"
	}
	return r.Answer.Code
}

// report logs what was seen. A sweep that saw no end but one has swept nothing.
func (s *sweep) report(t *testing.T, what string) {
	t.Helper()
	t.Logf("%s, %s", s.v.Name, what)
	s.ends.DemandKinds(t, 2, "done")
}

// xfsChunks is the free space that xfs needs beyond what it uses: it makes inodes in chunks.
const xfsChunks = 1 << 20

// bytes sweeps the free space from none to a tenth more than the need.
func (s *sweep) bytes(t *testing.T, steps int) {
	t.Helper()
	need := s.need(t).Bytes + passing
	if s.v.Name == "xfs" {
		need += xfsChunks
	}
	stride := sample.Every(t, 16)
	for i := range steps {
		if stride.Has(i + 1) {
			leave := need * 11 / 10 * int64(i) / int64(steps-1)
			s.step(t, fmt.Sprintf("%d bytes free of %d", leave, need), func() { s.v.LeaveBytes(t, leave) })
		}
	}
	s.report(t, fmt.Sprintf("need %d bytes", need))
}

func TestSpace(t *testing.T) {
	type fill struct {
		format harness.Format
		name   string
	}
	files := map[string]func() harness.Files{"small": small, "large": large}
	var all []fill
	for _, f := range []harness.Format{harness.Tmpfs, harness.Ext4, harness.Ext41K, harness.XFS, harness.Btrfs} {
		for _, name := range []string{"small", "large"} {
			all = append(all, fill{f, name})
		}
	}
	for _, f := range sample.Pick(t, 5, all) {
		t.Run(f.format.Name+"/"+f.name, func(t *testing.T) {
			t.Parallel()
			newSweep(t, f.format, files[f.name]()).bytes(t, 32)
		})
	}
}

// TestInodes sweeps the free inodes from none to more than the need, which is what stays:
// journal and staging directories come to it while a commit is at work.
func TestInodes(t *testing.T) {
	for _, f := range []harness.Format{harness.TmpfsFew, harness.Ext4Few} {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			s := newSweep(t, f, small())
			need := int(s.need(t).Inodes)
			stride := sample.Every(t, 11)
			for i := range need + need/10 + 16 {
				if stride.Has(i + 1) {
					s.step(t, fmt.Sprintf("%d inodes free of %d", i, need), func() { s.v.LeaveInodes(t, i) })
				}
			}
			s.report(t, fmt.Sprintf("need %d inodes", need))
		})
	}
}
