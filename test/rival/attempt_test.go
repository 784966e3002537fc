package rival

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// An attempt is a command under attack: its restore root, and around it what an
// attacker needs.
type attempt struct {
	*harness.Site
	dir     string       // of all of it
	outside string       // where nothing may be written
	theirs  string       // what the attacker has to exchange with
	fresh   harness.Tree // what a commit adds
	planted harness.Tree // what the attacker put into the root and left there
	foreign map[uint64]harness.Thing
	acting  bool   // an attack is in force that can be undone
	found   string // what it has taken
	acted   int
}

func newAttempt(t *testing.T, p *harness.Project, name string) *attempt {
	t.Helper()
	dir := filepath.Join(filepath.Dir(p.Dir), name)
	a := &attempt{dir: dir, planted: harness.Tree{}, foreign: map[uint64]harness.Thing{}}
	a.outside, a.theirs = filepath.Join(dir, "outside"), filepath.Join(dir, "theirs")
	a.Site = p.Site(t, filepath.Join(dir, "root"))
	a.fresh = added(a.Site)
	for _, d := range []string{"outside/sub", "theirs/dir/sub", "theirs/root/out", "theirs/stage/out/sub", "theirs/moved"} {
		harness.Must(t, os.MkdirAll(filepath.Join(dir, d), 0o755))
	}
	for _, f := range []string{
		"outside/secret", "outside/new.txt", "theirs/dir/new.txt", "theirs/dir/sub/x", "theirs/root/out/foreign",
		"theirs/root/top.txt", "theirs/stage/out/new.txt", "theirs/stage/out/sub/x", "theirs/stage/top.txt", "theirs/file",
	} {
		harness.Must(t, os.WriteFile(filepath.Join(dir, f), []byte("not of the commit: "+f), 0o640))
	}
	harness.Must(t, os.WriteFile(filepath.Join(a.theirs, "twin"), []byte(outputs()["out/new.txt"]), 0o644))
	harness.Must(t, os.Symlink(a.outside, filepath.Join(a.theirs, "link")))
	for ino, at := range a.inventory(t) {
		a.foreign[ino] = at.thing
	}
	return a
}

// added is what a commit adds to a root.
func added(site *harness.Site) harness.Tree {
	tree := harness.Tree{}
	for name, thing := range site.After {
		if _, ok := site.Before[name]; !ok {
			tree[name] = thing
		}
	}
	return tree
}

// A place is where a thing lies below the attempt, and what it is.
type place struct {
	path  string
	thing harness.Thing
}

// inventory has everything in the attempt by its inode number.
func (a *attempt) inventory(t *testing.T) map[uint64]place {
	t.Helper()
	all := map[uint64]place{}
	for path, thing := range harness.MustTake(t, a.dir) {
		if path != "." {
			all[thing.Inode] = place{path, thing}
		}
	}
	return all
}

// exchange swaps two names in one step.
func (a *attempt) exchange(one, two string) bool {
	return a.did(unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, two, unix.RENAME_EXCHANGE))
}

func (a *attempt) did(err error) bool {
	if err == nil {
		a.acted++
	}
	return err == nil
}

// plant puts a foreign file into the root that stays there.
func (a *attempt) plant(name string) bool {
	path := filepath.Join(a.Root, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return false
	}
	_, err = f.WriteString("planted at " + name)
	tree, lookErr := harness.Take(path)
	if lookErr != nil { // its directory was moved in between, by the commit that is undone
		path, lookErr = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
		if lookErr == nil {
			tree, lookErr = harness.Take(path)
		}
	}
	if a.did(errors.Join(err, f.Close(), lookErr)) {
		a.leave(name, tree["."])
	}
	return true
}

// leave makes a thing in the root a foreign one.
func (a *attempt) leave(name string, thing harness.Thing) {
	a.planted[name], a.foreign[thing.Inode] = thing, thing
}

// staging finds the staging directory of the commit.
func (a *attempt) staging() string {
	d, err := os.Open(a.Root)
	if err != nil {
		return ""
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if isStaging(name) {
			return filepath.Join(a.Root, name)
		}
	}
	return ""
}

// isStaging reports whether a path is in the staging directory of a commit.
func isStaging(path string) bool {
	return strings.HasPrefix(path, ".spectrum06_staging_") && !strings.HasPrefix(path, harness.ForeignStaging)
}

// same is the root as it was, less what the attacker has taken out of it, and
// with what it has planted.
func (a *attempt) same(t *testing.T) harness.Tree {
	t.Helper()
	inside := map[uint64]bool{}
	for ino, at := range a.inventory(t) {
		inside[ino] = at.path == "root" || strings.HasPrefix(at.path, "root/")
	}
	tree := harness.Tree{}
	for name, thing := range a.Before {
		if inside[thing.Inode] {
			tree[name] = thing
		}
	}
	maps.Copy(tree, a.planted)
	return tree
}

// after is the same root with everything in place.
func (a *attempt) after(t *testing.T) harness.Tree {
	t.Helper()
	tree := a.same(t)
	maps.Copy(tree, a.fresh)
	for name := range a.fresh {
		for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
			if _, ok := tree[dir]; !ok {
				tree[dir] = harness.Thing{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	maps.Copy(tree, a.planted)
	return tree
}

// without drops what is in the staging directory of the commit.
func withoutStaging(tree harness.Tree) harness.Tree {
	tree = maps.Clone(tree)
	maps.DeleteFunc(tree, func(name string, _ harness.Thing) bool { return isStaging(name) })
	return tree
}

// failed shows what the attempt was when it went wrong, and else removes it:
// there are thousands of them.
func (a *attempt) failed(t *testing.T, what string, r harness.Reply) bool {
	t.Helper()
	if t.Failed() {
		t.Errorf("%s, acted %d times: %v", what, a.acted, r)
		return true
	}
	harness.Must(t, os.RemoveAll(a.dir))
	return false
}

// count counts how a command under attack ended.
func (a *attempt) count(c *harness.Tally, r harness.Reply) {
	c.Add("commands")
	c.AddN("acts", a.acted)
	if a.acted == 0 {
		c.Add("commands without an act")
	}
	switch r.Status {
	case 0:
		c.Add("done")
	case 3:
		c.Add("halted")
	default:
		c.Add("refused")
	}
}
