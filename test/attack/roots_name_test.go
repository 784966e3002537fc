package attack

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// TestRootNameIsOfWhatWasOpened: the owner of a directory exchanges it with a link to
// another one between any two calls of the program that look it up, and back before the
// next open. What is kept of his directory is never kept under the name of the other:
// a restore would put his files there.
func TestRootNameIsOfWhatWasOpened(t *testing.T) { victims(t, rootName) }

func rootName(t *testing.T, uid int) {
	top := open(t)
	p := &harness.Project{Dir: filepath.Join(top, "project"), State: filepath.Join(top, "state")}
	dir := filepath.Join(top, "dir")
	harness.Must(t, os.Mkdir(p.State, 0o700))
	theirs, served, link := filepath.Join(dir, "theirs"), filepath.Join(dir, "served"), filepath.Join(dir, "link")
	for name, content := range map[string]string{theirs + "/evil": "evil", served + "/index": "index", served + "/more": "more"} {
		harness.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		harness.Must(t, os.WriteFile(name, []byte(content), 0o644))
	}
	harness.Must(t, os.Symlink(served, link))
	give(t, p, uid)
	flip := func() {
		harness.Must(t, unix.Renameat2(unix.AT_FDCWD, theirs, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE))
	}
	looksUp := func(c sysfault.Call) bool {
		return (c.Path == theirs || c.Path == dir || c.Path == link) && strings.Contains("openat openat2 newfstatat statx readlinkat", c.Name)
	}
	taken := 0
	s, more := sample.Every(t, 3), true
	for i := 0; more; i++ {
		n, flipped, seen := s.At(i), false, 0
		back := func() {
			if flipped {
				flip()
				flipped = false
			}
		}
		plan := sysfault.Plan{N: 1, Onward: true, Match: looksUp, Before: func(c sysfault.Call) {
			seen++
			if c.Name == "openat" && c.Path != dir {
				back()
			}
			if seen == n {
				flip()
				flipped = true
			}
		}}
		r := p.Run(t, &plan, "snapshot", "take", theirs)
		more = seen >= n
		back()
		if r.Hung || r.Status != 0 && r.Status != 1 && r.Status != 64 && r.Status != 65 && r.Status != 4 {
			t.Errorf("before call %d: %v", n, r)
		}
		if r.Status == 0 {
			taken++
		}
	}
	var list struct {
		Snapshots []struct {
			Root  string `json:"restore_root"`
			Files int    `json:"files"`
		} `json:"snapshots"`
	}
	harness.Must(t, json.Unmarshal([]byte(p.Must(t, "snapshot", "list", "--json").Stdout), &list))
	for _, s := range list.Snapshots {
		if (s.Root == served) != (s.Files == 2) {
			t.Errorf("what has %d files was kept as a snapshot of %q", s.Files, s.Root)
		}
	}
	if taken == 0 || len(list.Snapshots) != taken {
		t.Errorf("%d snapshots of %d that were taken", len(list.Snapshots), taken)
	}
}
