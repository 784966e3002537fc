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

// A ground is where roots are, and who runs the program there.
type ground struct {
	name   string
	format harness.Format // of their file system; the zero one: that of the temporary directory
	user   int            // 0: the one who runs the tests
}

// grounds are each kind of file system, and an ordinary user. Who may not mount has one.
func grounds() []ground {
	if os.Geteuid() != 0 {
		return []ground{{name: "here"}}
	}
	ext4, btrfs := harness.Ext4With("ext4", 256<<20, "-E", "nodiscard"), harness.Btrfs // with room for the worlds of all tests
	btrfs.Size = 1 << 30
	all := []ground{{"ordinary user", ext4, harness.Nobody}}
	for _, f := range []harness.Format{harness.TmpfsWith("tmpfs", ""), ext4, harness.XFS, btrfs, harness.Overlay} {
		all = append(all, ground{f.Name, f, 0})
	}
	return all
}

// worlds are those that no test uses now, by their command and ground. A world is made once by
// the program, which takes as long as some trials, and reset for each trial.
var worlds struct {
	sync.Mutex
	made     int
	idle     map[[2]string][]*world
	projects map[int]*harness.Project // of all worlds, by who runs the program
	volumes  map[string]string        // where they are mounted, by format, as long as this process lives
}

// project returns the signed project of all worlds.
func project(t testing.TB) *harness.Project {
	t.Helper()
	return projectOf(t, 0)
}

// projectOf returns that of a user.
func projectOf(t testing.TB, user int) *harness.Project {
	t.Helper()
	worlds.Lock()
	defer worlds.Unlock()
	if worlds.projects == nil {
		worlds.projects = map[int]*harness.Project{}
	}
	if worlds.projects[user] == nil {
		dir := filepath.Join(shared, fmt.Sprint("project of ", user))
		harness.Must(t, os.Mkdir(dir, 0o755))
		p := harness.NewIn(t, dir, files())
		if user != 0 {
			harness.LetOthersIn(t, dir)
			p.GiveTo(t, user, dir)
		}
		worlds.projects[user] = p
	}
	return worlds.projects[user]
}

// place returns a new place: the restore root is on this ground, all else is in memory.
func (g ground) place(t testing.TB) place {
	t.Helper()
	worlds.Lock()
	defer worlds.Unlock()
	worlds.made++
	name := fmt.Sprint("world ", worlds.made)
	at := in(filepath.Join(shared, name))
	at.ground = g
	harness.Must(t, os.Mkdir(at.dir, 0o755))
	if g.format.Kind == "" {
		return at
	}
	if worlds.volumes == nil {
		worlds.volumes = map[string]string{}
	}
	if worlds.volumes[g.format.Name] == "" {
		dir := filepath.Join(shared, g.format.Name)
		harness.Must(t, os.MkdirAll(filepath.Join(dir, "mnt"), 0o755))
		g.format.MountOn(t, dir, filepath.Join(dir, "mnt"))
		worlds.volumes[g.format.Name] = filepath.Join(dir, "mnt")
	}
	at.above = filepath.Join(worlds.volumes[g.format.Name], name)
	return at
}

// borrow returns a world of this kind for one test, on a ground that follows from the seed.
func borrow(t testing.TB, a *command) *world {
	t.Helper()
	return borrowOn(t, a, sample.From(a.name, grounds())[0])
}

// borrowOn is borrow on this ground. A world does not come back from a test that failed.
func borrowOn(t testing.TB, a *command, g ground) *world {
	t.Helper()
	kind := [2]string{a.name, g.name}
	w := idle(kind)
	if w == nil {
		w = newWorld(t, g.place(t), a)
		w.rehearse(t)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		worlds.Lock()
		defer worlds.Unlock()
		if worlds.idle == nil {
			worlds.idle = map[[2]string][]*world{}
		}
		worlds.idle[kind] = append(worlds.idle[kind], w)
	})
	return w
}

// idle takes a world that no test uses; nil is none.
func idle(kind [2]string) *world {
	worlds.Lock()
	defer worlds.Unlock()
	list := worlds.idle[kind]
	if len(list) == 0 {
		return nil
	}
	w := list[len(list)-1]
	worlds.idle[kind] = list[:len(list)-1]
	return w
}

// turnsOf returns the grounds for the trials of a command: in a sample one.
func turnsOf(a *command) []ground {
	all := sample.From(a.name, grounds())
	if sample.Now() == sample.Sample {
		return all[:1]
	}
	return all
}

// sweep runs trials in worlds of a kind, until one reports that there is no such call. In a
// sample all are on one ground, in a sweep they take turns: each call is tried on one, with
// another seed on another. Only the long tier tries each call on each.
func sweep(t *testing.T, a *command, s sample.Stride, trial func(t *testing.T, w *world, n int) bool) {
	t.Helper()
	turns := turnsOf(a)
	for i, g := range turns {
		own := s
		if sample.Now() < sample.Long {
			own = sample.Stride{First: s.At(i), Every: s.Every * len(turns)}
		}
		t.Run(g.name, func(t *testing.T) {
			harness.SweepIn(t, own, func(t *testing.T) func(*testing.T, int) bool {
				var w *world // when there is a trial for it
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
	for _, dir := range []string{w.dir, w.above()} {
		if harness.Inside(c.Path, dir) || harness.Inside(c.To, dir) {
			return true
		}
	}
	return false
}
