package undo

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestTimesOfDirectories: a rollback leaves directories with the times that they had before the
// commit; one in which something has changed since keeps its time.
func TestTimesOfDirectories(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		from := t.TempDir()
		run := harness.NewIn(t, from, files()).Runs[0].Dir
		harness.LetOthersIn(t, from)
		dirs := []string{"", "out", "out/deep"}
		u.write(t, filepath.Join(root, "out/deep/mine"), "mine")
		set := func(when time.Time) {
			for _, dir := range dirs {
				harness.Must(t, os.Chtimes(filepath.Join(root, dir), when, when))
			}
		}
		timeOf := func(dir string) time.Time {
			info, err := os.Stat(filepath.Join(root, dir))
			harness.Must(t, err)
			return info.ModTime()
		}
		undo := func() {
			var list struct{ Savepoints []struct{ Attempt string } }
			u.must(t, &list, "savepoint", "list", "--json", root)
			u.must(t, nil, "rollback", list.Savepoints[0].Attempt)
		}
		commit := func() {
			var made struct {
				ID string `json:"preview_id"`
			}
			u.must(t, &made, "preview", "--json", "--restore-root", root, run)
			u.must(t, nil, harness.CommitArgs(made.ID)...)
		}
		long := time.Unix(1_500_000_000, 123_456_000)
		set(long)
		commit()
		undo()
		for _, dir := range dirs {
			if is := timeOf(dir); !is.Equal(long) {
				t.Errorf("%q has time %v", dir, is)
			}
		}
		u.write(t, filepath.Join(root, "out/new of mine"), "mine")
		for _, by := range []time.Duration{time.Hour, -time.Hour} { // the latter as who unpacks an archive
			set(long)
			commit()
			another := time.Now().Add(by).Truncate(time.Second)
			set(another)
			undo()
			for _, dir := range dirs {
				if is := timeOf(dir); !is.Equal(another) {
					t.Errorf("%q has time %v, and got %v from another", dir, is, another)
				}
			}
		}
	})
}
