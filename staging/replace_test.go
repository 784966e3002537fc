package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
			sc := replaceCommit(t, t.TempDir())
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
// commit, and is what is there then: the same file with what was written, another file, or none.
func TestReplaceMeetsOthers(t *testing.T) {
	for name, do := range map[string]func(at string){
		"written to":   func(at string) { must(t, appendTo(at, "more")) },
		"another file": func(at string) { must(t, rewrite(at)) },
		"gone":         func(at string) { must(t, os.Remove(at)) },
	} {
		for _, call := range []string{"exchange keep", "make directory new"} {
			t.Run(name+", before "+call, func(t *testing.T) {
				sc := replaceCommit(t, t.TempDir())
				was := take(t, sc.root)
				err := sc.run(before(call, func() {
					do(filepath.Join(sc.root, "existing/keep"))
					was["existing/keep"] = take(t, sc.root)["existing/keep"]
				}))
				if was["existing/keep"] == "" {
					delete(was, "existing/keep")
				}
				if e := wantStep(t, err, StepFinalize, "existing/keep"); e.Rollback != nil {
					t.Error(e)
				}
				sameTree(t, was, sc.root)
			})
		}
	}
}

// TestReplaceKeeps: a file that a process has open to write to, or has written to since, is kept
// when it was replaced.
func TestReplaceKeeps(t *testing.T) {
	for _, name := range []string{"existing/keep", "RESTORE_REPORT.json"} {
		sc := replaceCommit(t, t.TempDir())
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

// TestReplaceRejects: only files are replaced by a commit, and only by files.
func TestReplaceRejects(t *testing.T) {
	sc := replaceCommit(t, t.TempDir())
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

// rivals are what another process does to a file that is replaced, or was; those whose result has
// to be at its name when the commit is undone return that.
var rivals = map[string]func(at string) (newest string, err error){
	"append": func(at string) (string, error) {
		err := appendTo(at, "more")
		b, read := os.ReadFile(at)
		return string(b), errors.Join(err, read)
	},
	"edit": func(at string) (string, error) { return "edited", os.WriteFile(at, []byte("edited"), 0o600) },
	"flip": func(at string) (string, error) { // as long as before
		b, err := os.ReadFile(at)
		for i := range b {
			b[i] ^= 1
		}
		return string(b), errors.Join(err, os.WriteFile(at, b, 0o600))
	},
	"save": func(at string) (string, error) {
		return "saved", errors.Join(os.WriteFile(at+".tmp", []byte("saved"), 0o600), os.Rename(at+".tmp", at))
	},
	"relink": func(at string) (string, error) {
		return "linked", errors.Join(os.WriteFile(at+"-other", []byte("linked"), 0o600), os.Remove(at), os.Link(at+"-other", at))
	},
	"ln":        func(at string) (string, error) { return "", os.Link(at, at+"-moved") },
	"chmod":     func(at string) (string, error) { return "", os.Chmod(at, 0o606) },
	"attribute": func(at string) (string, error) { return "", unix.Setxattr(at, "user.note", []byte("new"), 0) },
	"remove":    func(at string) (string, error) { return "", os.Remove(at) },
	"directory": func(at string) (string, error) { return "a directory", errors.Join(os.Remove(at), os.Mkdir(at, 0o700)) },
	"link":      func(at string) (string, error) { return "a link", errors.Join(os.Remove(at), os.Symlink("new", at)) },
	"move": func(at string) (string, error) {
		return "moved", errors.Join(os.Rename(at, at+"-moved"), os.WriteFile(at, []byte("moved"), 0o600))
	},
}

// standing is what rivals return of what is at a name.
func standing(t testing.TB, at string) string {
	t.Helper()
	st, err := os.Lstat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "nothing"
	case err == nil && st.IsDir():
		return "a directory"
	case err == nil && st.Mode().Type() == fs.ModeSymlink:
		return "a link"
	}
	b, read := os.ReadFile(at)
	must(t, errors.Join(err, read))
	return string(b)
}

// TestReplaceRivals: another process changes what is to be replaced, or was, or puts something else
// in its place, at every call, or removes it. Whatever the end of the commit: nothing of the others
// is lost, what they wrote last is at the name, all other names are as before or complete, and
// nothing halts the root.
func TestReplaceRivals(t *testing.T) {
	const target = "existing/keep"
	for _, name := range slices.Sorted(maps.Keys(rivals)) {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, %v", name, fails), func(t *testing.T) {
				t.Parallel()
				s, ends := &sweeper{t: t, base: scratch(t), make: replaceCommit}, &harness.Tally{}
				fresh := func() (*commitFixture, picture) {
					sc, before := s.fresh()
					sc.lazy = true // its power is not cut
					if fails {
						sc.hook = failCheck("theirs/file", 2)
					}
					return sc, before
				}
				total := 0
				sc, _ := fresh()
				_ = sc.run(func(op, path string, f func() error) error {
					total++
					return sc.lazily(op, path, f)
				})
				for _, n := range tries(t, 8, total) {
					sc, before := fresh()
					r := &rival{t: t, sc: sc, at: sc.at(target), do: rivals[name]}
					err := sc.run(func(op, path string, f func() error) error {
						r.count(n)
						return sc.lazily(op, path, f)
					})
					ends.Add(r.judge(before, target, err))
					if t.Failed() {
						t.Fatalf("call %d of %d: %v", n, total, err)
					}
				}
				t.Log(ends)
			})
		}
	}
}

// A rival acts once on a file that a commitFixture replaces.
type rival struct {
	t      *testing.T
	sc     *commitFixture
	at     string
	do     func(at string) (string, error)
	calls  int
	acted  bool
	newest string
	was    uint64 // the inode that was there before all, unless the rival has removed it
	theirs uint64 // the inode that the rival has put there; 0 for none
}

// count has it act before call n.
func (r *rival) count(n int) {
	if r.calls++; r.calls == 1 {
		r.was = inodeOf(r.t, r.at)
	}
	if r.calls != n {
		return
	}
	if _, err := os.Lstat(r.at); err != nil {
		return // an undo has it in its hands
	}
	here := inodeOf(r.t, r.at)
	var err error
	r.newest, err = r.do(r.at)
	must(r.t, err)
	r.acted = true
	if _, err := os.Lstat(r.at); err == nil && inodeOf(r.t, r.at) != here {
		r.theirs = inodeOf(r.t, r.at)
	}
	if here == r.was && !inodesIn(r.t, filepath.Dir(r.at))[here] {
		r.was = 0
	}
}

// judge compares the root with what was there before, and returns how the commit ended.
func (r *rival) judge(before picture, target string, err error) string {
	t, root := r.t, r.sc.root
	t.Helper()
	rest := r.sc.staying(before)
	delete(rest, target)
	foreignKept(t, rest, root)
	there := inodesIn(t, root)
	if r.theirs != 0 && !there[r.theirs] {
		t.Error("what others have put there is lost")
	}
	if r.acted && r.newest != "" && (err != nil || r.theirs != 0) && standing(t, r.at) != r.newest {
		t.Errorf("%q is at the name, not %q", standing(t, r.at), r.newest)
	}
	if err == nil {
		return "complete"
	}
	e := failure(t, err)
	if e.Rollback != nil {
		t.Error("it halts the root")
	}
	if r.was != 0 && !there[r.was] {
		t.Error("what was there is lost")
	}
	now := take(t, root)
	kept := false
	for _, p := range []picture{before, now} {
		for path := range p {
			if IsKept(strings.Split(path, "/")[0]) {
				kept = true
				delete(p, path)
			} else if path == target || strings.HasPrefix(path, target+"-") {
				delete(p, path)
			}
		}
	}
	if kept != (len(e.Kept) > 0) {
		t.Errorf("kept: %v", e.Kept)
	}
	if d := diff(before, now, false); d != "" {
		t.Error(d)
	}
	return "undone"
}

// TestReplaceRivalsAfterKill: the same between a kill and the recovery, which ends by itself.
func TestReplaceRivalsAfterKill(t *testing.T) {
	const target = "theirs/file"
	for _, name := range slices.Sorted(maps.Keys(rivals)) {
		for _, call := range []string{"create .spectrum06_prepared.new", "exchange keep", "exchange other", allMoved, notPublished, oneIsMissing} {
			t.Run(name+", killed at "+call, func(t *testing.T) {
				sc := replaceCommit(t, t.TempDir())
				before := take(t, sc.root)
				r := &rival{t: t, sc: sc, at: sc.at(target), do: rivals[name]}
				r.count(0)
				sc.abandon(call)
				r.count(2)
				out, err := sc.recover(Automatic)
				if err != nil || len(out) != 1 {
					t.Fatal(out, err)
				}
				if out[0].Result == Completed {
					_ = r.judge(before, target, nil)
					return
				}
				failed := &Error{Err: out[0].Cause}
				if out[0].Left != nil {
					failed.Kept = []Kept{{}}
				}
				if r.judge(before, target, failed) != "undone" || out[0].Result != RolledBack {
					t.Error(out)
				}
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
	sc := replaceCommit(t, t.TempDir())
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
		sc := replaceCommit(t, t.TempDir())
		err := sc.run(before(call, func() { must(t, os.Remove(sc.at("RESTORE_REPORT.json"))) }))
		if e := wantStep(t, err, StepFinalize, "RESTORE_REPORT.json"); e.Rollback != nil {
			t.Error(e)
		}
	}
}
