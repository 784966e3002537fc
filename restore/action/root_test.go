package action_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// dressed is all that a snapshot brings back of a directory itself.
func (w *fixture) dressed(path string) string {
	w.t.Helper()
	var st unix.Stat_t
	must(w.t, unix.Stat(w.at(path), &st))
	note := make([]byte, 64)
	n, err := unix.Getxattr(w.at(path), "user.note", note)
	if err != nil && !errors.Is(err, unix.ENODATA) {
		w.t.Error(err)
	}
	return fmt.Sprintf("%o %d:%d %s %q", st.Mode, st.Uid, st.Gid, time.Unix(st.Mtim.Unix()).UTC(), note[:max(n, 0)])
}

// dress gives a directory all of that.
func (w *fixture) dress(path string, mode os.FileMode, owner int, note string, at time.Time) {
	w.t.Helper()
	must(w.t, os.Chown(w.at(path), owner, owner+1))
	must(w.t, os.Chmod(w.at(path), mode))
	must(w.t, unix.Setxattr(w.at(path), "user.note", []byte(note), 0))
	must(w.t, os.Chtimes(w.at(path), at, at))
}

// TestDirectoriesComeBack: owner, group, mode, extended attributes and time of the root, also
// where it is a mount point, and of a directory in it come back with a snapshot; when the
// restore fails they are as they were before it, and no lock has changed them.
func TestDirectoriesComeBack(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give directories away")
	}
	for _, format := range []harness.Format{harness.Tmpfs, harness.Ext4, harness.XFS, harness.Btrfs, harness.Overlay} {
		for _, mounted := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/mounted %v", format.Name, mounted), func(t *testing.T) {
				v := harness.MountedVolume(t, format).Path
				w := fixtureIn(t, t.TempDir())
				if mounted {
					w.root = v
				} else {
					must(t, os.Chmod(v, 0o755))
					w = fixtureIn(t, v)
				}
				w.write("dir/file", "then")
				w.write("dir/goes", "then")
				w.dress("dir", 0o750, 7, "inner", time.Unix(1_500_000_000, 1000))
				w.dress("", 0o2751, 12, "outer", time.Unix(1_600_000_000, 2000))
				root, dir := w.dressed(""), w.dressed("dir")
				taken := w.take()
				if now := w.dressed(""); now != root {
					t.Errorf("after the snapshot the root is %s, was %s", now, root)
				}
				w.write("dir/file", "now")
				w.remove("dir/goes")
				w.write("came", "now")
				w.dress("dir", 0o700, 8, "other", time.Unix(1_700_000_000, 3000))
				w.dress("", 0o755, 13, "another", time.Unix(1_700_000_001, 4000))
				rootNow, dirNow := w.dressed(""), w.dressed("dir")

				in := w.enter()
				in.whenStaging(func(op, path string, do func() error) error {
					if op == "create" && path == ".spectrum06_committed.new" {
						return errors.New("it cannot be recorded")
					}
					return do()
				})
				if _, err := action.Restore(context.Background(), in.Root, taken, action.How{Type: audit.Session, Reason: "asked for"}); err == nil {
					t.Error("it was not undone")
				}
				in.leave()
				if r, d := w.dressed(""), w.dressed("dir"); r != rootNow || d != dirNow {
					t.Errorf("undone: the root is %s, was %s; the directory is %s, was %s", r, rootNow, d, dirNow)
				}

				done, err := w.restore(taken)
				must(t, err)
				if r, d := w.dressed(""), w.dressed("dir"); r != root || d != dir {
					t.Errorf("restored: the root is %s, was %s; the directory is %s, was %s", r, root, d, dir)
				}
				_, err = w.restore(done.Done.Snapshot)
				must(t, err)
				if r, d := w.dressed(""), w.dressed("dir"); r != rootNow || d != dirNow {
					t.Errorf("restored again: the root is %s, was %s; the directory is %s, was %s", r, rootNow, d, dirNow)
				}
			})
		}
	}
}
