package action_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"golang.org/x/sys/unix"
)

// replace commits with replacement of what is there.
func (w *fixture) replace(contents map[string]string) (attempt string, err error) {
	w.t.Helper()
	return w.commitBy(plainly(contents), func(c restore.Candidate) (*restore.Restore, error) {
		return restore.ForRootReplacing(context.Background(), c, w.root, func(*pathsafe.Dir) (map[string][sha256.Size]byte, error) {
			own := map[string][sha256.Size]byte{}
			for _, name := range []string{restore.ManifestName, restore.ReportName} {
				if content, err := os.ReadFile(w.at(name)); err == nil {
					own[name] = sha256.Sum256(content)
				}
			}
			return own, nil
		})
	})
}

// TestReplaceMeetsChange: a target that is changed after it was looked at is a finalize that failed,
// or a check after the restore, and all is as it was.
func TestReplaceMeetsChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *fixture)
		code   restore.Code
	}{
		"content of what is replaced":  {func(w *fixture) { w.write("old", "another") }, restore.FinalizeFailed},
		"removal of what is replaced":  {func(w *fixture) { w.remove("old") }, restore.FinalizeFailed},
		"another file":                 {func(w *fixture) { w.remove("old"); w.write("old", "then") }, restore.FinalizeFailed},
		"content of what is identical": {func(w *fixture) { w.write("same", "odd") }, restore.HashMismatchAfterRestore},
		"removal of what is identical": {func(w *fixture) { w.remove("same") }, restore.OutputMissingAfterRestore},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			w.write("old", "then")
			w.write("same", "same")
			var changed map[string]string
			w.began = func() {
				c.change(w)
				changed = w.contents()
			}
			_, err := w.replace(map[string]string{"new": "1", "old": "2", "same": "same"})
			if f := restoretest.FailureOf(t, err); f.Code != c.code {
				t.Errorf("%v, want %s", err, c.code)
			}
			if now := w.contents(); !maps.Equal(now, changed) {
				t.Errorf("%q, was %q", now, changed)
			}
			if len(w.chain()) > 0 {
				t.Error("there is a savepoint")
			}
		})
	}
}

// contents is what the files of the root hold.
func (w *fixture) contents() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, name := range []string{"new", "old", "same", restore.ManifestName, restore.ReportName} {
		if content, err := os.ReadFile(w.at(name)); err == nil {
			all[name] = string(content)
		}
	}
	return all
}

// TestReplaceAndBack: commits that replace what earlier ones made are undone one by one, and
// together: bytes, modes, times and extended attributes are back, also of the result artifacts.
func TestReplaceAndBack(t *testing.T) {
	w := newFixture(t)
	w.write("old", "zero")
	must(t, os.Chmod(w.at("old"), 0o640))
	if err := unix.Setxattr(w.at("old"), "user.note", []byte("mine"), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
	pictures := []forest{read(t, w.root)}
	var commits []string
	for i, contents := range []map[string]string{
		{"old": "one", "dir/made": "1"},
		{"old": "two", "dir/made": "1", "dir/more": "2"},
		{"old": "three", "dir/made": "3", "dir/more": "2"},
	} {
		id, err := w.replace(contents)
		must(t, err)
		commits = append(commits, id)
		if i < 2 {
			pictures = append(pictures, read(t, w.root))
		}
	}
	w.undoTo(commits[2], false, pictures[2])
	w.undoTo(commits[0], true, pictures[0])
}

func (w *fixture) undoTo(commit string, later bool, want forest) {
	w.t.Helper()
	_, err := w.undo(commit, later)
	must(w.t, err)
	w.same(want, "after the rollback")
}

// TestReplaceLost: a directory that is gone comes back with what was replaced in it, and with nothing
// else, where one snapshot has all of it. What cannot come back is named.
func TestReplaceLost(t *testing.T) {
	w := newFixture(t)
	w.write("dir/sub/old", "then")
	must(t, os.Chmod(w.at("dir"), 0o710))
	was := read(t, w.root)
	w.write("dir/mine", "mine")
	commit, err := w.replace(map[string]string{"dir/sub/old": "1", "dir/new": "2", "other": "2"})
	must(t, err)
	w.remove("dir")
	w.undoTo(commit, false, was)

	first, err := w.replace(map[string]string{"dir/sub/old": "1"})
	must(t, err)
	w.write("dir/two", "then")
	_, err = w.replace(map[string]string{"dir/two": "2"})
	must(t, err)
	w.remove("dir")
	done, err := w.undo(first, true)
	must(t, err)
	if len(done.Left) != 2 || done.Left[0].Path != "dir/sub/old" || done.Left[0].Missing != "dir/sub" || done.Left[1].Path != "dir/two" {
		t.Errorf("%+v", done.Left)
	}
	w.write("dir", "in its place")
	if done, err = w.undo(first, true); err != nil || len(done.Left) != 3 || done.Left[2].Path != "dir/two" || done.Left[2].Missing != "" {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestReplaceOverLowerLayer: what is replaced, and what stays, is in the lower layer of an overlay.
func TestReplaceOverLowerLayer(t *testing.T) {
	for _, options := range []string{"", "redirect_dir=on", "metacopy=on,redirect_dir=on", "xino=on"} {
		for _, apart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/apart %v", strings.ReplaceAll(options, ",", " "), apart), func(t *testing.T) {
				w := newFixture(t)
				w.write("old", "then")
				w.write("dir/old", "then")
				w.write("same", "same")
				overlaid(t, w.root, w.root, options, apart)
				was := read(t, w.root)
				commit, err := w.replace(map[string]string{"new": "1", "old": "2", "dir/old": "3", "same": "same"})
				must(t, err)
				w.undoTo(commit, false, was)
			})
		}
	}
}
