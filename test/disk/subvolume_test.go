package disk

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
)

// barriers are the ways in which a directory of a btrfs can begin another file system.
var barriers = []struct {
	name string
	make func(t *testing.T, path string)
}{
	{"mount", func(t *testing.T, path string) {
		harness.Must(t, os.Mkdir(path, 0o755))
		harness.Must(t, unix.Mount("tmpfs", path, "tmpfs", 0, "mode=755"))
		t.Cleanup(func() { _ = blocklog.Unmount(path) })
	}},
	{"subvolume", func(t *testing.T, path string) { harness.Subvolume(t, path) }},
}

// TestSubvolume puts a mount, and then a subvolume, in the place of a directory of the root, with
// the same content. Every command reports the same of both, and nothing changes in it: a commit
// that would have to move something there is rejected before anything is copied, a rollback names
// it and does all else.
func TestSubvolume(t *testing.T) {
	for _, c := range []struct {
		name      string
		committed bool
		dir       string // which becomes another file system
		do        func(t *testing.T, b *barred) []harness.Reply
		want      string // in what is said
		locks     bool   // it begins, and takes the lock
		acts      bool   // on all else
	}{
		{"look", false, "out", func(t *testing.T, b *barred) []harness.Reply {
			run := b.site.Project.Runs[0].Dir
			return []harness.Reply{
				b.run(t, "diff", run, b.site.Root),
				b.run(t, "preview", "--json", "--restore-root", b.site.Root, run),
			}
		}, "another mount or subvolume", false, false},
		{"commit", false, "out", func(t *testing.T, b *barred) []harness.Reply {
			return []harness.Reply{b.run(t, harness.CommitArgs(b.site.Preview(t))...)}
		}, "\"out\" is on another mount or subvolume\nhint: a restore works within one file system: unmount it, or replace the subvolume by a directory", true, false},
		{"snapshot", false, "beside", func(t *testing.T, b *barred) []harness.Reply {
			return []harness.Reply{
				b.run(t, "snapshot", "take", b.site.Root),
				b.run(t, "snapshot", "restore", b.snapshot),
			}
		}, "beside stays: it is a mount or a subvolume", true, true},
		{"rollback", true, "out", func(t *testing.T, b *barred) []harness.Reply {
			return []harness.Reply{
				b.run(t, "savepoint", "verify", b.savepoint),
				b.run(t, "rollback", b.commit),
				b.run(t, "snapshot", "restore", b.snapshot),
			}
		}, "out stays: it is a mount or a subvolume", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var said [2]string
			for i, barrier := range barriers {
				b := newBarred(t, c.committed)
				b.bar(t, c.dir, barrier.make)
				looked := b.site.Root
				if c.acts {
					looked = filepath.Join(looked, c.dir)
				}
				was := exact(t, looked, c.locks)
				for _, r := range c.do(t, b) {
					said[i] += fmt.Sprintf("%q: status %d\n%s\n%s\n", r.Args[:2], r.Status, r.Stdout, r.Stderr)
				}
				if now := exact(t, looked, c.locks); now != was {
					t.Errorf("%s: something was changed: %s, then %s", barrier.name, was, now)
				}
				said[i] = plain(b.site, said[i])
			}
			if said[0] != said[1] {
				t.Errorf("of a mount:\n%s\nof a subvolume:\n%s", said[0], said[1])
			}
			if !strings.Contains(said[1], c.want) {
				t.Errorf("not %q:\n%s", c.want, said[1])
			}
		})
	}
}

// A barred is a root on a btrfs, a part of which is another file system.
type barred struct {
	site              *harness.Site
	snapshot          string // of the whole root, before all else
	savepoint, commit string
}

func newBarred(t *testing.T, committed bool) *barred {
	t.Helper()
	p := harness.New(t, small())
	b := &barred{site: p.Site(t, filepath.Join(harness.MountedVolume(t, harness.Btrfs).Path, "root"))}
	harness.Must(t, os.RemoveAll(filepath.Join(b.site.Root, harness.ForeignStaging))) // no snapshot is taken with it
	var answer struct{ ID string }
	harness.Must(t, json.Unmarshal([]byte(p.Must(t, "snapshot", "take", "--json", b.site.Root).Stdout), &answer))
	b.snapshot = answer.ID
	if !committed {
		return b
	}
	if r := b.site.Commit(t, nil); r.Status != 0 {
		t.Fatal(r)
	}
	var list struct {
		Savepoints []struct{ ID, Attempt string } `json:"savepoints"`
	}
	harness.Must(t, json.Unmarshal([]byte(p.Must(t, "savepoint", "list", "--json", b.site.Root).Stdout), &list))
	b.savepoint, b.commit = list.Savepoints[0].ID, list.Savepoints[0].Attempt
	return b
}

// bar makes a directory of the root another file system, with the same content.
func (b *barred) bar(t *testing.T, name string, make func(t *testing.T, path string)) {
	t.Helper()
	path, aside := filepath.Join(b.site.Root, name), filepath.Join(filepath.Dir(b.site.Root), "aside")
	harness.Must(t, os.Rename(path, aside))
	make(t, path)
	harness.CopyAll(t, aside, path)
}

func (b *barred) run(t *testing.T, args ...string) harness.Reply {
	t.Helper()
	return b.site.Project.Run(t, nil, args...)
}

// exact is all that is in a directory, with its times; without its change time when a lock may
// have been in it for a moment.
func exact(t *testing.T, dir string, locks bool) string {
	t.Helper()
	tree, err := harness.Take(dir)
	harness.Must(t, err)
	if locks {
		st, err := os.Stat(dir)
		harness.Must(t, err)
		return fmt.Sprint(st.ModTime(), tree)
	}
	stamp, err := harness.Stamp(dir)
	harness.Must(t, err)
	return fmt.Sprint(stamp, tree)
}

// changing is what two roots do not share.
var changing = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{8}\b|[0-9a-f]{32,}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// plain is text without what two roots do not share.
func plain(s *harness.Site, text string) string {
	text = strings.NewReplacer(s.Root, "ROOT", s.Project.Dir, "PROJECT", s.Project.State, "STATE").Replace(text)
	return changing.ReplaceAllString(text, "*")
}
