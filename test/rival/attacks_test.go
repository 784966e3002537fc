package rival

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// An attack does something to the root, and may undo it.
type attack struct {
	name      string
	act       func(*attempt) bool // false where there was nothing to do it to
	undo      func(*attempt)      // nil: it stays
	takes     bool                // it takes from staging, so that remains may be left there
	ours      bool                // what it moves is the commit's own
	hides     bool                // it puts another thing in the place of a directory that stays whole elsewhere
	root      bool                // it moves the root itself
	contested bool                // in a loop both sides win often
	gives     bool                // it puts its own into the staging directory, where all names are the commit's: that is given up
}

// swap is an attack that exchanges two names, and exchanges them again.
func swap(name, one, two string) attack {
	do := func(a *attempt) bool { return a.exchange(filepath.Join(a.dir, one), filepath.Join(a.dir, two)) }
	return attack{name: name, act: do, undo: func(a *attempt) { do(a) }}
}

// move is an attack that renames, and renames back.
func move(name, from, to string) attack {
	return attack{
		name: name,
		act:  func(a *attempt) bool { return a.did(os.Rename(filepath.Join(a.dir, from), filepath.Join(a.dir, to))) },
		undo: func(a *attempt) { a.did(os.Rename(filepath.Join(a.dir, to), filepath.Join(a.dir, from))) },
	}
}

// swapFound exchanges what find names with a thing of the attacker.
func swapFound(name, with string, find func(*attempt) string) attack {
	return attack{
		name: name, takes: true,
		act: func(a *attempt) bool {
			path := find(a)
			if path == "" || !a.exchange(path, filepath.Join(a.theirs, with)) {
				return false
			}
			a.found = path
			return true
		},
		undo: func(a *attempt) {
			if !a.exchange(a.found, filepath.Join(a.theirs, with)) {
				a.follow(filepath.Join(a.theirs, with))
			}
		},
	}
}

// follow undoes an exchange whose path was looked up in staging, and that the kernel made only
// when the subtree had moved to its place: it cannot be distinguished from an attack on a target. One that
// was made before the move stays.
func (a *attempt) follow(theirs string) {
	stage, name, _ := strings.Cut(strings.TrimPrefix(a.found, a.Root+"/"), "/")
	name, ok := strings.CutPrefix(name, "new/") // where the new file is staged at its own path
	if !ok || !isStaging(stage) {
		return
	}
	top, _, _ := strings.Cut(name, "/")
	if moved, swapped := changed(filepath.Join(a.Root, top)), changed(theirs); moved > 0 && swapped >= moved {
		a.exchange(filepath.Join(a.Root, name), theirs)
	}
}

// changed is when the inode of a path was changed, in nanoseconds; 0 where there
// is none. A rename changes what it moves.
func changed(path string) int64 {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return 0
	}
	return st.Ctim.Nano()
}

// firstFile finds a regular file in staging whose name starts so, or not so.
func firstFile(journal bool) func(*attempt) string {
	return func(a *attempt) string {
		stage, found := a.staging(), ""
		if stage == "" {
			return ""
		}
		_ = filepath.WalkDir(stage, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && found == "" && (filepath.Dir(path) == stage && e.Name()[0] == '.') == journal {
				found = path
			}
			return nil // the program removes things meanwhile
		})
		return found
	}
}

// placed finds an output that is in its place.
func placed(a *attempt) string {
	for _, name := range []string{"out/new.txt", "fresh/deep/a", "out/sub/x", "top.txt"} {
		path := filepath.Join(a.Root, name)
		tree, err := harness.Take(path)
		if _, foreign := a.foreign[tree["."].Inode]; err == nil && !foreign {
			return path
		}
	}
	return ""
}

// replant removes an output that is in its place and puts a file of its own
// there; on ext4 it has the very inode number.
func replant(a *attempt) bool {
	path := placed(a)
	if path == "" || os.Remove(path) != nil {
		return false
	}
	name, err := filepath.Rel(a.Root, path)
	return err == nil && a.plant(name)
}

func planting(names ...string) attack {
	return attack{name: "plant " + names[0], act: func(a *attempt) bool {
		for _, name := range names {
			if a.plant(name) {
				return true
			}
		}
		return false
	}}
}

// attacks are all patterns.
func attacks() []attack {
	twin := swapFound("target becomes its twin", "twin", placed)
	other := swapFound("target becomes another file", "file", placed)
	twin.takes, other.takes = false, false
	journal := swapFound("journal becomes another file", "file", firstFile(true))
	staged, stagedTwin := swapFound("staged file becomes another", "file", firstFile(false)),
		swapFound("staged file becomes its twin", "twin", firstFile(false))
	journal.gives, staged.gives, stagedTwin.gives = true, true, true
	out, outBelow := move("new directory moves out", "root/fresh", "theirs/moved/fresh"),
		move("new directory below a parent moves out", "root/out/sub", "theirs/moved/sub")
	rootDir, rootLink := swap("root becomes another directory", "root", "theirs/root"),
		swap("root becomes a link out", "root", "theirs/link")
	rootDir.root, rootLink.root = true, true
	parent := move("parent moves out", "root/out", "theirs/moved/out")
	out.ours, outBelow.ours, parent.ours = true, true, true // with what was moved into it
	link, file, dir := swap("parent becomes a link out", "root/out", "theirs/link"),
		swap("parent becomes a file", "root/out", "theirs/file"),
		swap("parent becomes another directory", "root/out", "theirs/dir")
	link.contested, link.hides, file.hides, dir.hides = true, true, true, true
	return []attack{
		link, file, dir,
		rootDir, rootLink,
		parent, out, outBelow,
		swapFound("staging becomes another directory", "stage", (*attempt).staging),
		swapFound("staging becomes a link out", "link", (*attempt).staging),
		staged, stagedTwin,
		journal, twin, other,
		{name: "target is made anew", act: replant},
		planting("out/new.txt"), planting("top.txt"), planting("fresh/deep/intruder", "fresh/intruder", "fresh"),
		planting("out/sub/intruder", "out/sub"), planting("RESTORE_MANIFEST.json"), planting("RESTORE_REPORT.json"),
	}
}
