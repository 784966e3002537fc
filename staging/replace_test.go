package staging

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestReplaceConflicts: what is to be replaced and is not as the caller saw it is a conflict before
// anything is written.
func TestReplaceConflicts(t *testing.T) {
	for name, change := range map[string]func(at string){
		"written to":   func(at string) { must(t, appendTo(at, "more")) },
		"touched":      func(at string) { must(t, os.Chtimes(at, time.Now(), time.Now())) },
		"another file": func(at string) { must(t, rewrite(at)) },
		"gone":         func(at string) { must(t, os.Remove(at)) },
	} {
		t.Run(name, func(t *testing.T) {
			sc := replaceScene(t, t.TempDir())
			change(filepath.Join(sc.root, "existing/keep"))
			before := take(t, sc.root)
			if e := wantStep(t, sc.run(nil), StepConflict, "existing/keep"); e.Attempt != "" {
				t.Error(e)
			}
			sameTree(t, before, sc.root)
		})
	}
}

// TestReplaceMeetsOthers: what another process does to a file just before it is replaced undoes the
// commit. Where it is still the same file, with what was written, all is as it was; a file that
// another process has put there stays, and the rollback has failed (decisions D15, D32).
func TestReplaceMeetsOthers(t *testing.T) {
	for name, c := range map[string]struct {
		do     func(at string)
		failed bool
	}{
		"written to":   {func(at string) { must(t, appendTo(at, "more")) }, false},
		"another file": {func(at string) { must(t, rewrite(at)) }, true},
		"gone":         {func(at string) { must(t, os.Remove(at)) }, true},
	} {
		for _, call := range []string{"exchange keep", "make directory new"} {
			t.Run(name+", before "+call, func(t *testing.T) {
				sc := replaceScene(t, t.TempDir())
				was := take(t, sc.root)
				err := sc.run(before(call, func() {
					c.do(filepath.Join(sc.root, "existing/keep"))
					was["existing/keep"] = take(t, sc.root)["existing/keep"]
				}))
				if was["existing/keep"] == "" {
					delete(was, "existing/keep")
				}
				e := failure(t, err)
				if (e.Rollback != nil) != c.failed {
					t.Fatalf("%v", err)
				}
				foreignKept(t, was, sc.root)
				if !c.failed {
					sameTree(t, was, sc.root)
				}
			})
		}
	}
}

// TestReplaceKeeps: a file that a process has open to write to, or has written to since, is kept
// when it was replaced.
func TestReplaceKeeps(t *testing.T) {
	for _, name := range []string{"existing/keep", "RESTORE_REPORT.json"} {
		sc := replaceScene(t, t.TempDir())
		f, err := os.OpenFile(sc.at(name), os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		must(t, sc.commit())
		_, err = f.WriteString(" and later")
		must(t, errors.Join(err, f.Close()))
		kept := theOnly(t, filepath.Join(sc.root, keptPrefix+"*", name))
		if text, err := os.ReadFile(kept); err != nil || string(text) != "foreign "+name+" and later" {
			t.Errorf("%q, %v", text, err)
		}
		_ = theOnly(t, filepath.Join(sc.root, keptPrefix+"*", "*"))
	}
}

// TestReplaceRefuses: only files are replaced by a commit, and only by files.
func TestReplaceRefuses(t *testing.T) {
	sc := replaceScene(t, t.TempDir())
	c := sc.spec.change()
	must(t, c.validate())
	dir, err := sc.dir.Lstat("existing")
	must(t, err)
	c.Swaps[0].Old = &dir
	var failed *Error
	if err := c.validate(); !errors.As(err, &failed) {
		t.Errorf("a directory: %v", err)
	}
	c = sc.spec.change()
	c.Swaps[len(c.Swaps)-1].Old = &dir
	if err := c.validate(); !errors.As(err, &failed) {
		t.Errorf("a directory by an artifact: %v", err)
	}
}

// TestReplaceRivals: another process changes what is to be replaced, or was, or puts something else
// in its place, at every call. Whatever the end of the commit: nothing of the others is lost, and
// all other names are as before or complete.
func TestReplaceRivals(t *testing.T) {
	const target = "existing/keep"
	rivals := map[string]func(at string) error{
		"append":    func(at string) error { return appendTo(at, "more") },
		"chmod":     func(at string) error { return os.Chmod(at, 0o606) },
		"attribute": func(at string) error { return unix.Setxattr(at, "user.note", []byte("new"), 0) },
		"remove":    os.Remove,
		"directory": func(at string) error { return errors.Join(os.Remove(at), os.Mkdir(at, 0o700)) },
		"link":      func(at string) error { return errors.Join(os.Remove(at), os.Symlink("new", at)) },
		"move":      func(at string) error { return errors.Join(os.Rename(at, at+"-moved"), os.WriteFile(at, nil, 0o600)) },
	}
	for _, name := range slices.Sorted(maps.Keys(rivals)) {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %v", name, fails), func(t *testing.T) {
				t.Parallel()
				base, ends := scratch(t), &harness.Tally{}
				s := &sweeper{t: t, base: base, make: replaceScene}
				_, total := traceOf(t, s)
				for _, n := range tries(t, 8, total) {
					sc, before := s.fresh()
					sc.lazy = true // its power is not cut
					if fails {
						sc.hook = failCheck("theirs/file", 2)
					}
					at, calls := sc.at(target), 0
					was := inodeOf(t, at) // of what others had there, as long as they have not removed it
					theirs := uint64(0)   // of what they have put there
					err := sc.run(func(op, path string, f func() error) error {
						if calls++; calls == n {
							here := inodeOf(t, at)
							must(t, rivals[name](at))
							if _, err := os.Lstat(at); err == nil && inodeOf(t, at) != here {
								theirs = inodeOf(t, at)
							}
							if name != "move" && theirs != 0 && here == was || name == "remove" && here == was {
								was = 0
							}
						}
						return sc.lazily(op, path, f)
					})
					rest := sc.staying(before)
					delete(rest, target)
					foreignKept(t, rest, sc.root)
					there := inodesIn(t, sc.root)
					if theirs != 0 && !there[theirs] {
						t.Error("what others have put there is lost")
					}
					switch {
					case err == nil:
						ends.Add("complete")
					case failure(t, err).Rollback == nil && calls >= n:
						ends.Add("undone")
						delete(before, target)
						now := take(t, sc.root)
						delete(now, target)
						delete(now, target+"-moved")
						if d := diff(before, now, false); d != "" {
							t.Error(d)
						}
					default:
						ends.Add("halted")
					}
					if err != nil && was != 0 && !there[was] {
						t.Error("what was there is lost")
					}
					if t.Failed() {
						t.Fatalf("call %d of %d: %v", n, total, err)
					}
				}
				t.Log(ends)
			})
		}
	}
}

func inodeOf(t testing.TB, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return st.Ino
}

func inodesIn(t testing.TB, root string) map[uint64]bool {
	t.Helper()
	all := map[uint64]bool{}
	must(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			all[inodeOf(t, path)] = true
		}
		return err
	}))
	return all
}

// TestReplaceKeepsAfterKill: what is kept when a recovery completes a commit is named.
func TestReplaceKeepsAfterKill(t *testing.T) {
	sc := replaceScene(t, t.TempDir())
	sc.abandon("rename 0") // COMMITTED
	f, err := os.OpenFile(theOnly(t, filepath.Join(sc.root, stagePrefix+"*", oldsName, "0")), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	out, err := sc.recover(Automatic)
	must(t, err)
	if len(out) != 1 || out[0].Result != Completed || out[0].Left == nil {
		t.Fatal(out)
	}
	_ = theOnly(t, filepath.Join(sc.root, keptPrefix+"*", "existing/keep"))
}

func theOnly(t testing.TB, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(pattern)
	if err != nil || len(all) != 1 {
		t.Fatalf("%q: %q, %v", pattern, all, err)
	}
	return all[0]
}

// TestReplacedArtifactGoes: an artifact that is to be replaced and goes away just before that is not
// taken for one that was not there: the commit fails.
func TestReplacedArtifactGoes(t *testing.T) {
	for _, call := range []string{"make directory new", "rename RESTORE_REPORT.json"} {
		sc := replaceScene(t, t.TempDir())
		err := sc.run(before(call, func() { must(t, os.Remove(sc.at("RESTORE_REPORT.json"))) }))
		if e := wantStep(t, err, StepFinalize, "RESTORE_REPORT.json"); e.Rollback == nil {
			t.Error(e)
		}
	}
}
