package staging

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const removed = "existing/goes"

// TestRemovalConflicts: what is to be removed and is not as the caller saw it is a conflict before
// anything is written.
func TestRemovalConflicts(t *testing.T) {
	for name, change := range map[string]func(at string){
		"written to":   func(at string) { must(t, appendTo(at, "more")) },
		"another file": func(at string) { must(t, rewrite(at)) },
		"gone":         func(at string) { must(t, os.Remove(at)) },
		"a directory":  func(at string) { must(t, errors.Join(os.Remove(at), os.Mkdir(at, 0o700))) },
	} {
		t.Run(name, func(t *testing.T) {
			sc := replaceCommit(t, t.TempDir())
			change(sc.at(removed))
			before := take(t, sc.root)
			if e := wantStep(t, sc.run(nil), StepConflict, removed); e.Attempt != "" {
				t.Error(e)
			}
			sameTree(t, before, sc.root)
		})
	}
}

// TestRemovalMeetsOthers: what another process does to a file just before it is removed undoes the
// commit, and is what is there then.
func TestRemovalMeetsOthers(t *testing.T) {
	for name, do := range map[string]func(at string){
		"written to":   func(at string) { must(t, appendTo(at, "more")) },
		"another file": func(at string) { must(t, rewrite(at)) },
		"gone":         func(at string) { must(t, os.Remove(at)) },
	} {
		for _, call := range []string{"rename goes", "make directory new"} {
			t.Run(name+", before "+call, func(t *testing.T) {
				sc := replaceCommit(t, t.TempDir())
				was := take(t, sc.root)
				err := sc.run(before(call, func() {
					do(sc.at(removed))
					was[removed] = take(t, sc.root)[removed]
				}))
				if was[removed] == "" {
					delete(was, removed)
				}
				if e := wantStep(t, err, StepFinalize, removed); e.Rollback != nil {
					t.Error(e)
				}
				sameTree(t, was, sc.root)
			})
		}
	}
}

// TestRemovalKeeps: a file that a process has open to write to is kept when it was removed.
func TestRemovalKeeps(t *testing.T) {
	sc := replaceCommit(t, t.TempDir())
	f, err := os.OpenFile(sc.at(removed), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	must(t, sc.commit())
	_, err = f.WriteString(" and later")
	must(t, errors.Join(err, f.Close()))
	kept := theOnly(t, filepath.Join(sc.root, keptPrefix+"*", removed))
	if text, err := os.ReadFile(kept); err != nil || string(text) != "foreign "+removed+" and later" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestRemovalUndone: the very file comes back, unless another process has put something at its name:
// that stays, and the file is kept.
func TestRemovalUndone(t *testing.T) {
	for _, newer := range []bool{false, true} {
		sc := replaceCommit(t, t.TempDir())
		ino := inodeOf(t, sc.at(removed))
		err := sc.run(func(op, path string, do func() error) error {
			if op == "create" && filepath.Base(path) == committedName+newSuffix {
				if newer {
					must(t, os.WriteFile(sc.at(removed), []byte("newer"), 0o600))
				}
				return unix.EIO
			}
			return do()
		})
		e := failure(t, err)
		if e.Rollback != nil {
			t.Fatal(e)
		}
		at := sc.at(removed)
		if newer {
			if text, err := os.ReadFile(at); err != nil || string(text) != "newer" {
				t.Errorf("%q, %v", text, err)
			}
			if len(e.Kept) != 1 || !e.Kept[0].Old || e.Kept[0].Path.String() != removed {
				t.Errorf("kept: %+v", e.Kept)
			}
			at = theOnly(t, filepath.Join(sc.root, keptPrefix+"*", removed))
		}
		if is := inodeOf(t, at); is != ino {
			t.Errorf("newer %v: another file is back", newer)
		}
	}
}

// TestRemovalLinks: the other name of a removed file keeps its bytes, and a directory that a removal
// leaves empty stays.
func TestRemovalLinks(t *testing.T) {
	sc := replaceCommit(t, t.TempDir())
	must(t, os.Mkdir(sc.at("only"), 0o755))
	must(t, os.Rename(sc.at(removed), sc.at("only/one")))
	must(t, os.Link(sc.at("only/one"), sc.at("other-name")))
	old, err := sc.dir.StatPath(mustParse(t, "only/one"), 0)
	must(t, err)
	sc.spec.removals = []removalAt{{mustParse(t, "only/one"), &old}}
	must(t, sc.commit())
	if names, err := os.ReadDir(sc.at("only")); err != nil || len(names) > 0 {
		t.Errorf("%v, %v", names, err)
	}
	if text, err := os.ReadFile(sc.at("other-name")); err != nil || string(text) != "foreign "+removed {
		t.Errorf("%q, %v", text, err)
	}
}

// TestRemovalInspected: during a commit a removed file is where Inspect says.
func TestRemovalInspected(t *testing.T) {
	for call, stands := range map[string]NameState{"rename goes": AsBefore, allMoved: AsAfter} {
		sc := replaceCommit(t, t.TempDir())
		ino := inode(t, sc.root, removed)
		sc.abandon(call)
		found := inspected(t, sc.root)
		i := slices.IndexFunc(found.Names, func(n InspectedName) bool { return n.Path == removed })
		if i < 0 {
			t.Fatalf("%s: %+v", call, found.Names)
		}
		if n := found.Names[i]; !n.HasOld || n.HasNew || n.State != stands || inode(t, sc.root, n.Before) != ino {
			t.Errorf("%s: %+v", call, n)
		}
		_, err := sc.recover(Automatic)
		must(t, err)
		if _, err := os.Lstat(sc.at(removed)); errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: it did not come back", call)
		}
	}
}

// TestRemovalRejects: a commit removes files only, after those that come and before the artifacts.
func TestRemovalRejects(t *testing.T) {
	sc := replaceCommit(t, t.TempDir())
	dir, err := sc.dir.Lstat("existing")
	must(t, err)
	for name, spoil := range map[string]func(c *Change){
		"a directory":           func(c *Change) { c.Swaps[len(sc.spec.files)].Old = &dir },
		"before files":          func(c *Change) { slices.Reverse(c.Swaps[:len(sc.spec.files)+1]) },
		"after artifacts":       func(c *Change) { slices.Reverse(c.Swaps[len(sc.spec.files):]) },
		"twice":                 func(c *Change) { c.Swaps = slices.Insert(c.Swaps, len(sc.spec.files), c.Swaps[len(sc.spec.files)]) },
		"nothing that is there": func(c *Change) { c.Swaps[len(sc.spec.files)].Old = nil },
	} {
		c := sc.spec.change()
		must(t, c.validate())
		spoil(&c)
		var failed *Error
		if err := c.validate(); !errors.As(err, &failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUndoneTimesOfOthers: where another process has worked in a directory since the commit was killed,
// the undo does not give that the time that it had.
func TestUndoneTimesOfOthers(t *testing.T) {
	noticeOthers(t)
	at := time.Date(2020, 1, 1, 0, 0, 0, 5, time.UTC)
	sc := singleCommit(t, t.TempDir())
	for _, dir := range []string{"existing", "existing/empty", ""} {
		must(t, os.Chtimes(sc.at(dir), at, at))
	}
	sc.abandon("create " + committedName + newSuffix)
	time.Sleep(2 * tick)
	must(t, os.WriteFile(sc.at("existing/of another"), nil, 0o600))
	_, err := sc.recover(Automatic)
	must(t, err)
	for dir, isBack := range map[string]bool{"existing": false, "existing/empty": true, "": true} {
		st, err := os.Stat(sc.at(dir))
		must(t, err)
		if st.ModTime().Equal(at) != isBack {
			t.Errorf("%q: %v", dir, st.ModTime())
		}
	}
}

// TestUndoneTimesOfOthersInRoot: the same of the root itself.
func TestUndoneTimesOfOthersInRoot(t *testing.T) {
	noticeOthers(t)
	at := time.Date(2020, 1, 1, 0, 0, 0, 5, time.UTC)
	sc := singleCommit(t, t.TempDir())
	must(t, os.Chtimes(sc.at(""), at, at))
	sc.abandon("create " + committedName + newSuffix)
	time.Sleep(2 * tick)
	must(t, os.WriteFile(sc.at("of another"), nil, 0o600))
	_, err := sc.recover(Automatic)
	must(t, err)
	st, err := os.Stat(sc.at(""))
	if must(t, err); st.ModTime().Equal(at) {
		t.Error("another process has worked in the root, and its time does not show it")
	}
}

// TestUndoneTimes: an undone commit leaves the root and the directories in which it has changed names
// the times that they had, also after a kill.
func TestUndoneTimes(t *testing.T) {
	at := time.Date(2020, 1, 1, 0, 0, 0, 5, time.UTC)
	for name, undo := range map[string]func(sc *commitFixture){
		"failed": func(sc *commitFixture) {
			err := sc.run(func(op, path string, do func() error) error {
				if op == "create" && filepath.Base(path) == committedName+newSuffix {
					return unix.EIO
				}
				return do()
			})
			if e := failure(t, err); e.Rollback != nil {
				t.Error(e)
			}
		},
		"killed": func(sc *commitFixture) {
			sc.abandon("create " + committedName + newSuffix)
			out, err := sc.recover(Automatic)
			if must(t, err); len(out) != 1 || out[0].Result != RolledBack {
				t.Error(out)
			}
		},
	} {
		for kind, commitFixture := range map[string]func(testing.TB, string) *commitFixture{"replaces": replaceCommit, "creates": singleCommit} {
			dirs := map[string][]string{"replaces": {"existing", "theirs", ""}, "creates": {"existing", "existing/empty", ""}}[kind]
			t.Run(name+" "+kind, func(t *testing.T) {
				sc := commitFixture(t, t.TempDir())
				for _, dir := range dirs {
					must(t, os.Chtimes(sc.at(dir), at, at))
				}
				undo(sc)
				for _, dir := range dirs {
					if st, err := os.Stat(sc.at(dir)); err != nil || !st.ModTime().Equal(at) {
						t.Errorf("%q: %v, %v", dir, st.ModTime(), err)
					}
				}
			})
		}
	}
}
