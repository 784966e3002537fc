package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestStrangers changes the root after an undo operation was killed there: these files stay,
// whatever becomes of the undo operation.
func TestStrangers(t *testing.T) {
	for _, way := range sample.Pick(t, 2, ways) {
		t.Run(way().name, func(t *testing.T) { strangersIn(t, way(), sample.Thin(t, 79, 13)) })
	}
}

// mine is what a stranger writes.
const mine = "mine, and made meanwhile"

func strangersIn(t *testing.T, a *command, s sample.Stride) {
	var sum harness.Tally
	sweep(t, a, s, func(t *testing.T, w *fixture, n int) bool {
		r := w.site.Project.Run(t, harness.Killing(n, w.changing), w.args...)
		if !r.Killed() {
			return false
		}
		sum.Add("killed")
		name := w.free(n%2 == 0)
		if name == "" {
			return true
		}
		sum.Add("planted")
		harness.Must(t, os.WriteFile(w.path(name), []byte(mine), 0o604))
		if err := w.stranger(t, &sum, name, n); err != nil {
			t.Errorf("killed before %s, then another process made %q\n%v", w.site.Last(r), name, err)
		}
		return true
	})
	sum.Demand(t, "planted")
}

// free is a name that is free now, and that the undo operation is about, or one in a directory
// that it is about; "" for none.
func (w *fixture) free(taken bool) string {
	if !taken {
		return w.freeIn("beside", "whole", "new")
	}
	for _, name := range []string{"top.txt", "out/a.txt", "new/sub/b.txt", "foreign.txt", "later"} {
		_, was := w.site.Before[name]
		_, comes := w.site.After[name]
		_, err := os.Lstat(w.path(name))
		_, noDir := os.Lstat(filepath.Dir(w.path(name)))
		if (was || comes) && errors.Is(err, os.ErrNotExist) && noDir == nil {
			return name
		}
	}
	return w.freeIn("beside", "out")
}

func (w *fixture) freeIn(dirs ...string) string {
	i := slices.IndexFunc(dirs, func(dir string) bool {
		info, err := os.Lstat(w.path(dir))
		return err == nil && info.IsDir()
	})
	if i < 0 {
		return ""
	}
	return dirs[i] + "/stranger"
}

// found says where the stranger's file is, beneath the directory above the root.
func (w *fixture) found() (string, error) {
	at := ""
	err := filepath.WalkDir(w.above(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if string(raw) == mine {
			at = path
		}
		return err
	})
	if err == nil && at == "" {
		err = errors.New("the stranger's file is gone")
	}
	return at, err
}

// stranger recovers from a root in which another process has made this name.
func (w *fixture) stranger(t *testing.T, sum *harness.Tally, name string, n int) error {
	t.Helper()
	r := w.site.Recover(t, nil)
	sum.Add(fmt.Sprint("recover exit ", r.Status))
	at, err := w.found()
	switch {
	case err != nil:
		return errors.Join(err, fmt.Errorf("%v", r))
	case at != w.path(name) && !(r.Status == 0 && strings.Contains(r.Stderr, strings.Split(strings.TrimPrefix(at, w.site.Root+"/"), "/")[0])):
		// What was put at a name that something comes back to is kept aside, and that is said.
		return fmt.Errorf("the stranger's file is at %q: %v", at, r)
	case at != w.path(name):
		sum.Add("kept aside")
		harness.Must(t, os.RemoveAll(w.path(strings.Split(strings.TrimPrefix(at, w.site.Root+"/"), "/")[0])))
		return w.ended(t, harness.Before, harness.After)
	case r.Status == 0:
		return errors.Join(w.lost(t), w.keeps(t), w.site.Ended())
	case r.Status != 3:
		return fmt.Errorf("%v", r)
	}
	sum.Add("halted")
	if err := w.site.Halted(t); err != nil {
		return err
	}
	if n%4 < 2 { // they go, and recovery does the rest
		harness.Must(t, os.Remove(at))
		if r := w.site.Recover(t, nil); r.Status != 0 {
			return fmt.Errorf("the stranger has gone: %v", r)
		}
		return w.ended(t, harness.Before, harness.After)
	}
	return w.acknowledged(t, sum, name)
}

// acknowledged releases a halted root in which another process has made this name. It stays, and
// where the command, once more, is to displace it, the snapshot from before has it.
func (w *fixture) acknowledged(t *testing.T, sum *harness.Tally, name string) error {
	t.Helper()
	if r := w.site.Acknowledge(t); r.Status != 0 {
		return fmt.Errorf("acknowledge: %v", r)
	}
	sum.Add("acknowledged")
	if r := w.site.PreviewReply(t, nil); r.Status == 3 {
		return fmt.Errorf("after the acknowledgement: %v", r)
	}
	_, gone := w.found()
	if err := errors.Join(gone, w.lost(t), w.keeps(t), w.site.Ended()); err != nil {
		return err
	}
	if r := w.site.Project.Run(t, nil, w.args...); r.Status != 0 {
		return fmt.Errorf("once more, after the acknowledgement: %v", r)
	}
	if _, gone = w.found(); gone == nil {
		return nil
	}
	sum.Add("displaced once more")
	all := w.list(t)
	if r := w.site.Project.Run(t, nil, "snapshot", "restore", "--json", all[len(all)-1].ID, name); r.Status != 0 {
		return fmt.Errorf("%w: %v", gone, r)
	}
	_, gone = w.found()
	return gone
}
