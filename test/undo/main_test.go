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

// shared is a directory for the fixtures that the tests share, in memory where it may be
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

// grounds are those of package harness, and an ordinary user on ext4 where one may mount.
func grounds() []harness.Ground {
	all := harness.Grounds()
	if os.Geteuid() != 0 {
		return all
	}
	return append([]harness.Ground{{Name: "ordinary user", Format: harness.Ext4Roomy, User: harness.Nobody}}, all...)
}

// fixtures are those that no test uses now, by their command and ground. A fixture is made once by
// the program, which takes as long as some trials, and reset for each trial.
var fixtures struct {
	sync.Mutex
	made     int
	idle     map[[2]string][]*fixture
	projects map[int]*harness.Project // of all fixtures, by who runs the program
	volumes  map[string]string        // where they are mounted, by format, as long as this process lives
}

// project returns the signed project of all fixtures.
func project(t testing.TB) *harness.Project {
	t.Helper()
	return projectOf(t, 0)
}

// projectOf returns that of a user.
func projectOf(t testing.TB, user int) *harness.Project {
	t.Helper()
	fixtures.Lock()
	defer fixtures.Unlock()
	if fixtures.projects == nil {
		fixtures.projects = map[int]*harness.Project{}
	}
	if fixtures.projects[user] == nil {
		dir := filepath.Join(shared, fmt.Sprint("project of ", user))
		harness.Must(t, os.Mkdir(dir, 0o755))
		p := harness.NewIn(t, dir, files())
		if user != 0 {
			harness.LetOthersIn(t, dir)
			p.GiveTo(t, user, dir)
		}
		fixtures.projects[user] = p
	}
	return fixtures.projects[user]
}

// placeOn returns a new place: the restore root is on this ground, all else is in memory.
func placeOn(t testing.TB, g harness.Ground) place {
	t.Helper()
	fixtures.Lock()
	defer fixtures.Unlock()
	fixtures.made++
	name := fmt.Sprint("fixture ", fixtures.made)
	at := in(filepath.Join(shared, name))
	at.ground = g
	harness.Must(t, os.Mkdir(at.dir, 0o755))
	if g.Format.Kind == "" {
		return at
	}
	if fixtures.volumes == nil {
		fixtures.volumes = map[string]string{}
	}
	if fixtures.volumes[g.Format.Name] == "" {
		dir := filepath.Join(shared, g.Format.Name)
		harness.Must(t, os.MkdirAll(filepath.Join(dir, "mnt"), 0o755))
		g.Format.MountOn(t, dir, filepath.Join(dir, "mnt"))
		fixtures.volumes[g.Format.Name] = filepath.Join(dir, "mnt")
	}
	at.above = filepath.Join(fixtures.volumes[g.Format.Name], name)
	return at
}

// borrow returns a fixture of this kind for one test, on a ground that follows from the seed.
func borrow(t testing.TB, a *command) *fixture {
	t.Helper()
	return borrowOn(t, a, sample.From(a.name, grounds())[0])
}

// borrowOn is borrow on this ground. A fixture does not come back from a test that failed.
func borrowOn(t testing.TB, a *command, g harness.Ground) *fixture {
	t.Helper()
	kind := [2]string{a.name, g.Name}
	w := idle(kind)
	if w == nil {
		w = newFixture(t, placeOn(t, g), a)
		w.rehearse(t)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		fixtures.Lock()
		defer fixtures.Unlock()
		if fixtures.idle == nil {
			fixtures.idle = map[[2]string][]*fixture{}
		}
		fixtures.idle[kind] = append(fixtures.idle[kind], w)
	})
	return w
}

// idle takes a fixture that no test uses; nil is none.
func idle(kind [2]string) *fixture {
	fixtures.Lock()
	defer fixtures.Unlock()
	list := fixtures.idle[kind]
	if len(list) == 0 {
		return nil
	}
	w := list[len(list)-1]
	fixtures.idle[kind] = list[:len(list)-1]
	return w
}

// turnsOf returns the grounds for the trials of a command.
func turnsOf(a *command) []harness.Ground { return harness.Turns(a.name, grounds()) }

// sweep runs trials in fixtures of a kind, on grounds that take turns, until one reports that there
// is no such call.
func sweep(t *testing.T, a *command, s sample.Stride, trial func(t *testing.T, w *fixture, n int) bool) {
	t.Helper()
	harness.TakeTurns(t, turnsOf(a), s, func(t *testing.T, g harness.Ground, own sample.Stride) {
		harness.SweepIn(t, own, func(t *testing.T) func(*testing.T, int) bool {
			var w *fixture // when there is a trial for it
			return func(t *testing.T, n int) bool {
				if w == nil {
					w = borrowOn(t, a, g)
				}
				w.reset(t)
				return trial(t, w, n)
			}
		})
	})
}

// changing matches the calls that can change what is on the disk of this fixture.
func (w *fixture) changing(c sysfault.Call) bool { return harness.Changing(c) && w.about(c) }

// failing matches the calls that can fail. A close that does closes all the same,
// which cannot be played.
func (w *fixture) failing(c sysfault.Call) bool { return c.Name != "close" && w.about(c) }

// looking matches those of them that change nothing.
func (w *fixture) looking(c sysfault.Call) bool { return w.failing(c) && !harness.Changing(c) }

// about matches the calls that are about this fixture.
func (w *fixture) about(c sysfault.Call) bool {
	for _, dir := range []string{w.dir, w.above()} {
		if harness.Inside(c.Path, dir) || harness.Inside(c.To, dir) {
			return true
		}
	}
	return false
}
