package disk

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// formats are those whose room is counted.
var formats = []harness.Format{harness.Tmpfs, harness.Ext4, harness.Ext41K, harness.XFS, harness.Btrfs}

var shortage = regexp.MustCompile(`no space in the file system of "([^"]*)": at least (\d+) (bytes|files) are needed, and (\d+) are free`)

// TestNoRoom: where the restore cannot fit, the preview reports it with both numbers, and the
// commit ends before anything is written.
func TestNoRoom(t *testing.T) {
	for _, f := range sample.Pick(t, 2, formats) {
		t.Run(f.Name, func(t *testing.T) {
			p, v := harness.New(t, large()), filled(t, f)
			site := p.Site(t, filepath.Join(v.Path, "root"))
			v.LeaveBytes(t, 1<<20)
			v.Sync(t) // a Btrfs counts late
			wantShort(t, site, v, "bytes")
		})
	}
	t.Run("inodes", func(t *testing.T) {
		p, v := harness.New(t, small()), filled(t, harness.TmpfsFew)
		site := p.Site(t, filepath.Join(v.Path, "root"))
		v.LeaveInodes(t, 8)
		wantShort(t, site, v, "files")
	})
}

// TestNoRoomElsewhere: a snapshot is written to another place, or exported, where it cannot fit:
// that is known, with both numbers, before anything is made there.
func TestNoRoomElsewhere(t *testing.T) {
	for _, f := range sample.Pick(t, 2, formats) {
		t.Run(f.Name, func(t *testing.T) {
			p, v := harness.New(t, small()), filled(t, f)
			root := filepath.Join(t.TempDir(), "root")
			harness.Must(t, os.Mkdir(root, 0o755))
			content := make([]byte, 4<<20)
			for i := range content {
				content[i] = byte(i * i >> 8)
			}
			harness.Must(t, os.WriteFile(filepath.Join(root, "large"), content, 0o644))
			id := strings.TrimPrefix(strings.TrimSpace(p.Must(t, "snapshot", "take", "-q", root).Stdout), "OK ")
			v.LeaveBytes(t, 1<<20)
			v.Sync(t)
			stamp, err := harness.Stamp(v.Path)
			harness.Must(t, err)
			for _, args := range [][]string{{"snapshot", "restore", "--to", filepath.Join(v.Path, "to"), id}, {"snapshot", "export", id, filepath.Join(v.Path, "to")}} {
				r := p.Run(t, nil, args...)
				m := shortage.FindStringSubmatch(r.Stderr)
				if r.Status != 74 || m == nil || m[1] != v.Path {
					t.Errorf("%v", r)
				}
				if now, err := harness.Stamp(v.Path); err != nil || now != stamp {
					t.Errorf("something was written: %v", err)
				}
			}
		})
	}
}

func wantShort(t *testing.T, site *harness.Site, v *harness.Volume, of string) {
	t.Helper()
	shown := site.PreviewReply(t, nil)
	m := shortage.FindStringSubmatch(shown.Stderr)
	if shown.Status != 0 || m == nil || m[1] != site.Root || m[3] != of {
		t.Fatalf("the preview does not say that there is no room: %v", shown)
	}
	need, err := strconv.ParseInt(m[2], 10, 64)
	harness.Must(t, err)
	free, err := strconv.ParseInt(m[4], 10, 64)
	harness.Must(t, err)
	if need <= free || of == "bytes" && need < 2<<20 {
		t.Errorf("%d %s are needed, and %d are free", need, of, free)
	}
	wantShown(t, site, strings.TrimSpace(shown.Stdout), m[2])
	stamp, err := harness.Stamp(site.Root)
	harness.Must(t, err)
	r := site.Project.Run(t, nil, harness.CommitArgs(strings.TrimSpace(shown.Stdout))...)
	if r.Status != 74 || r.Answer.Code != "RESTORE_INTERNAL_ERROR" || !shortage.MatchString(r.Stderr) {
		t.Errorf("the commit ends with %v", r)
	}
	if err := site.Refused(stamp); err != nil {
		t.Error(err)
	}
	want(t, site, harness.Before)
	v.Release(t)
	// The preview was not used up: what the hint says, to free space and to retry, is all.
	if r := site.Project.Run(t, nil, harness.CommitArgs(strings.TrimSpace(shown.Stdout))...); r.Status != 0 {
		t.Errorf("with room again the commit ends with %v", r)
	}
	want(t, site, harness.After)
}

// wantShown requires that the report and the page say how much is needed, and that the JSON,
// whose identity is that of the question, does not.
func wantShown(t *testing.T, site *harness.Site, id, needed string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	report := site.Project.Must(t, "preview", "--restore-root", site.Root, "--html", file, site.Project.Runs[0].Dir)
	page, err := os.ReadFile(file)
	harness.Must(t, err)
	answer := site.Project.Must(t, "preview", "--json", "--restore-root", site.Root, site.Project.Runs[0].Dir)
	for what, shown := range map[string]bool{
		"report": strings.Contains(report.Stderr, "| WARNING | a commit of this preview would fail: no space") && strings.Contains(report.Stderr, needed),
		"page":   strings.Contains(string(page), "a commit of this preview would fail: no space") && strings.Contains(string(page), needed),
		"JSON":   !strings.Contains(answer.Stdout, "no space") && strings.Contains(answer.Stdout, `"preview_id":"`+id+`"`),
	} {
		if !shown {
			t.Errorf("the %s is wrong: %v", what, report)
		}
	}
}

// TestRoomIsCountedTooLow: what is needed is never more than what a commit takes. The free
// space is measured whenever something is moved into place; where exactly as much is free
// as was taken at most, nothing says that it is too little.
func TestRoomIsCountedTooLow(t *testing.T) {
	files := large()
	files["inline"], files["page"], files["tail"] = "in the inode", strings.Repeat("p", 4096), strings.Repeat("t", 4097)
	for _, f := range sample.Pick(t, 2, append(formats, harness.Ext4With("ext4 inline", 32<<20, "-b", "4096", "-I", "1024", "-O", "inline_data"))) {
		t.Run(f.Name, func(t *testing.T) {
			p, v := harness.New(t, files), filled(t, f)
			site := p.Site(t, filepath.Join(v.Path, "root"))
			before := v.Free(t)
			least := before.Bytes
			plan := &sysfault.Plan{N: 1, Onward: true, Only: []string{"renameat2"}, Match: func(c sysfault.Call) bool {
				return strings.Contains(c.Path, ".spectrum06_staging_") && !strings.Contains(c.To, ".spectrum06_")
			}, Before: func(sysfault.Call) { least = min(least, v.Free(t).Bytes) }}
			if r := site.Commit(t, plan); r.Status != 0 || least == before.Bytes {
				t.Fatalf("%v: nothing was measured", r)
			}
			site.Remove(t)
			next := p.Site(t, filepath.Join(v.Path, "next"))
			v.LeaveBytes(t, before.Bytes-least)
			if r := next.PreviewReply(t, nil); r.Status != 0 || shortage.MatchString(r.Stderr) {
				t.Errorf("%d bytes are taken, and %v", before.Bytes-least, r)
			}
			v.LeaveBytes(t, 1<<20)
			v.Sync(t)
			if r := next.PreviewReply(t, nil); r.Status != 0 || !shortage.MatchString(r.Stderr) {
				t.Errorf("the control: %v", r)
			}
		})
	}
}

// TestNoFaultIsABug fails a call of each command with each fault of a machine. The exit
// status is never that of a bug. Each command has a state directory of its own, with one
// commit: what the trials leave behind there would be looked at by the later ones.
func TestNoFaultIsABug(t *testing.T) {
	errnos := []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EROFS, syscall.EXDEV,
		syscall.ENAMETOOLONG, syscall.EACCES, syscall.EPERM, syscall.ENOENT,
	}
	memory := harness.MemoryDir(t)
	var sum harness.Tally
	stride, tried := sample.Thin(t, 131, 31), 0
	for _, c := range []func(site *harness.Site) []string{
		func(s *harness.Site) []string {
			return []string{"keygen", "--json", "--out", filepath.Join(s.Root, "new.pem")}
		},
		func(s *harness.Site) []string { return []string{"verify", "--json", s.Project.Runs[0].Dir} },
		func(s *harness.Site) []string {
			return []string{"preview", "--json", "--restore-root", s.Root, s.Project.Runs[0].Dir}
		},
		func(s *harness.Site) []string { return harness.CommitArgs(s.Preview(t)) },
		func(s *harness.Site) []string { return []string{"recover", "--json", s.Root} },
		func(s *harness.Site) []string { return []string{"snapshot", "take", "--json", s.Root} },
		func(s *harness.Site) []string { return []string{"savepoint", "list", "--json", s.Root} },
		func(s *harness.Site) []string { return []string{"doctor", "--json", s.Root} },
	} {
		p := harness.New(t, harness.Small())
		past := p.Site(t, filepath.Join(memory, "past"))
		if r := past.Commit(t, nil); r.Status != 0 {
			t.Fatal(r)
		}
		for n := stride.First; ; n += stride.Every {
			site := p.Site(t, filepath.Join(memory, fmt.Sprint("root ", n)))
			args := c(site)
			errno := errnos[tried%len(errnos)]
			tried++
			var hit sysfault.Call
			r := p.Run(t, &sysfault.Plan{N: n, Errno: errno, Match: site.Beneath(harness.Anything), Before: func(c sysfault.Call) { hit = c }}, args...)
			site.Remove(t)
			if r.Fault.Fired == 0 {
				break
			}
			sum.Add(fmt.Sprint(r.Status))
			if r.Status == 70 || r.Status == 2 || r.Hung {
				t.Errorf("%q at %s: %v", errno, site.Describe(hit), r)
			}
		}
		past.Remove(t)
	}
	sum.DemandKinds(t, 2, "74")
}
