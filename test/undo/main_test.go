package undo

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// shared is a directory for the worlds that the tests share, in memory where it may be
// mounted.
var shared string

// TestMain gives the tests mounts of their own.
func TestMain(m *testing.M) {
	os.Exit(harness.Main(harness.RunFunc(func() int {
		return harness.WithMemoryDir(func(dir string) int {
			shared = dir
			return m.Run()
		})
	})))
}

// worlds are those that no test uses now, by the name of their command. A world is made
// once by the program, which takes as long as some trials, and reset for each trial.
var worlds struct {
	sync.Mutex
	made    int
	idle    map[string][]*world
	project *harness.Project // of all of them
}

// project returns the signed project of all worlds.
func project(t testing.TB) *harness.Project {
	t.Helper()
	worlds.Lock()
	defer worlds.Unlock()
	if worlds.project == nil {
		dir := filepath.Join(shared, "project")
		harness.Must(t, os.Mkdir(dir, 0o755))
		worlds.project = harness.NewIn(t, dir, files())
	}
	return worlds.project
}

// borrow returns a world of this kind for one test. It does not come back from a test
// that failed.
func borrow(t testing.TB, a *command) *world {
	t.Helper()
	w := idle(a)
	if w == nil {
		dir := filepath.Join(shared, fmt.Sprint("world ", number()))
		harness.Must(t, os.Mkdir(dir, 0o755))
		w = newWorld(t, in(dir), a)
		w.rehearse(t)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		worlds.Lock()
		defer worlds.Unlock()
		if worlds.idle == nil {
			worlds.idle = map[string][]*world{}
		}
		worlds.idle[a.name] = append(worlds.idle[a.name], w)
	})
	return w
}

// idle takes a world that no test uses; nil is none.
func idle(a *command) *world {
	worlds.Lock()
	defer worlds.Unlock()
	list := worlds.idle[a.name]
	if len(list) == 0 {
		return nil
	}
	w := list[len(list)-1]
	worlds.idle[a.name] = list[:len(list)-1]
	return w
}

func number() int {
	worlds.Lock()
	defer worlds.Unlock()
	worlds.made++
	return worlds.made
}

// sweep runs trials in worlds of a kind, until one reports that there is no such call.
func sweep(t *testing.T, a *command, s sample.Stride, trial func(t *testing.T, w *world, n int) bool) {
	t.Helper()
	harness.SweepIn(t, s, func(t *testing.T) func(*testing.T, int) bool {
		var w *world // when there is a trial for it
		return func(t *testing.T, n int) bool {
			if w == nil {
				w = borrow(t, a)
			}
			w.reset(t)
			return trial(t, w, n)
		}
	})
}

// changing matches the calls that can change what is on the disk of this world.
func (w *world) changing(c sysfault.Call) bool { return harness.Changing(c) && w.about(c) }

// failing matches the calls that can fail. A close that does closes all the same,
// which cannot be played.
func (w *world) failing(c sysfault.Call) bool { return c.Name != "close" && w.about(c) }

// looking matches those of them that change nothing.
func (w *world) looking(c sysfault.Call) bool { return w.failing(c) && !harness.Changing(c) }

// about matches the calls that are about this world.
func (w *world) about(c sysfault.Call) bool {
	return harness.Inside(c.Path, w.dir) || harness.Inside(c.To, w.dir)
}
