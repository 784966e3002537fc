package staging

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// writeForeign makes a file that is not ours and returns its description.
func writeForeign(t *testing.T, path string) string {
	t.Helper()
	must(t, os.WriteFile(path, []byte("somebody else's"), 0o640))
	return describe(t, path, filepath.Base(path))
}

func stillThere(t *testing.T, path, want string) {
	t.Helper()
	if got := describe(t, path, filepath.Base(path)); got != want {
		t.Errorf("%q was %s\n\tis %s", path, want, got)
	}
}

// TestForeignFileInOurDirectory: a foreign file in a directory that the attempt created stays, and
// the rollback has failed: nothing foreign is removed for the sake of a clean result.
func TestForeignFileInOurDirectory(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	foreign := filepath.Join(sc.root, "fresh/deep/foreign")
	var want string
	sc.hook = func(path string, n int, _ io.ReaderAt) error {
		if path != "zero" || n != 2 {
			return nil
		}
		want = writeForeign(t, foreign)
		return errWrong
	}
	e := wantStep(t, sc.commit(), StepVerify, "zero")
	if e.Rollback == nil || !errors.Is(e.Rollback, unix.ENOTEMPTY) || !errors.Is(e, errWrong) {
		t.Errorf("%v", e)
	}
	stillThere(t, foreign, want)
	must(t, os.Remove(foreign))
	sc.mustRecover()
	sameTree(t, before, sc.root)
}

// A target that another process creates during the attempt: it stays, and the rollback has
// failed.
func TestForeignTarget(t *testing.T) {
	for _, c := range []struct {
		target string
		step   Step
	}{
		{"existing/new", StepFinalize}, {"existing/empty/x", StepFinalize}, {"inlink/via", StepFinalize},
		{"zero", StepFinalize}, {"RESTORE_MANIFEST.json", StepPublish}, {"RESTORE_REPORT.json", StepPublish},
	} {
		sc := singleCommit(t, t.TempDir())
		before := take(t, sc.root)
		foreign := filepath.Join(sc.root, c.target)
		var want string
		sc.hook = func(path string, n int, _ io.ReaderAt) error {
			if path == "fresh/g" && n == 1 {
				want = writeForeign(t, foreign)
			}
			return nil
		}
		e := wantStep(t, sc.commit(), c.step, c.target)
		if e.Rollback == nil || !errors.Is(e, fs.ErrExist) {
			t.Errorf("%q: %v", c.target, e)
		}
		stillThere(t, foreign, want)
		must(t, os.Remove(foreign))
		sc.mustRecover()
		sameTree(t, before, sc.root)
	}
}

// The attempt fails for another reason, and the target is there all the same.
func TestForeignTargetBeforeAnyMove(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	foreign := filepath.Join(sc.root, "a.txt")
	var want string
	sc.hook = func(path string, n int, _ io.ReaderAt) error {
		if path != "zero" {
			return nil
		}
		want = writeForeign(t, foreign)
		return errWrong
	}
	e := wantStep(t, sc.commit(), StepCheck, "zero")
	if e.Rollback == nil {
		t.Error("a target exists, and the rollback is said to have reached the state before")
	}
	stillThere(t, foreign, want)
}

// A foreign directory in the place of a new subtree is not a target: it stays,
// and no target exists, so the state before is reached.
func TestForeignDirectoryInTheWay(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	sc.hook = func(path string, n int, _ io.ReaderAt) error {
		if path == "zero" && n == 1 {
			plant(t, sc.root, "fresh/theirs")
		}
		return nil
	}
	e := wantStep(t, sc.commit(), StepFinalize, "fresh")
	if e.Rollback != nil || !errors.Is(e, fs.ErrExist) {
		t.Error(e)
	}
	stillThere(t, filepath.Join(sc.root, "fresh/theirs"), describe(t, filepath.Join(sc.root, "fresh/theirs"), "theirs"))
	must(t, os.RemoveAll(filepath.Join(sc.root, "fresh")))
	sameTree(t, before, sc.root)
}

// Between move and verify another process replaces, removes or changes a target. On ext4 the
// replacement gets the inode number of what was removed.
func TestTargetChangesAfterMove(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		step   Step
		stays  bool
	}{
		"same content, other file": {rewrite, StepVerify, true},
		"removed":                  {os.Remove, StepMissing, false},
		"longer":                   {func(p string) error { return appendTo(p, "x") }, StepVerify, true},
		"one byte":                 {flipByte, StepVerify, false},
		"directory":                {func(p string) error { return errors.Join(os.Remove(p), os.Mkdir(p, 0o755)) }, StepVerify, true},
		"link":                     {func(p string) error { return errors.Join(os.Remove(p), os.Symlink("deep/f1", p)) }, StepVerify, true},
		"link out":                 {func(p string) error { return errors.Join(os.Remove(p), os.Symlink("/etc/passwd", p)) }, StepVerify, true},
		"fifo":                     {func(p string) error { return errors.Join(os.Remove(p), unix.Mkfifo(p, 0o644)) }, StepVerify, true},
	} {
		t.Run(name, func(t *testing.T) {
			sc := singleCommit(t, t.TempDir())
			before := take(t, sc.root)
			target := filepath.Join(sc.root, "fresh/g")
			var want string
			sc.hook = func(path string, n int, _ io.ReaderAt) error {
				if path == "a.txt" && n == 2 {
					must(t, c.change(target))
					if c.stays {
						want = kind(t, target)
					}
				}
				return nil
			}
			e := wantStep(t, sc.commit(), c.step, "fresh/g")
			if (e.Rollback != nil) != c.stays {
				t.Error(e)
			}
			if !c.stays {
				sameTree(t, before, sc.root)
				return
			}
			foreignKept(t, before, sc.root)
			if got := kind(t, target); got != want {
				t.Errorf("it was %s, is %s", want, got)
			}
		})
	}
}

// rewrite puts an equal file in the place of path, on ext4 mostly with the same
// inode number: it keeps what it makes until that one comes.
func rewrite(path string) error {
	var old, now unix.Stat_t
	b, err := os.ReadFile(path)
	err = errors.Join(err, unix.Stat(path, &old), os.Remove(path))
	for i := 0; err == nil && i < 100 && now.Ino != old.Ino; i++ {
		made := fmt.Sprint(path, i)
		err = errors.Join(os.WriteFile(made, b, fs.FileMode(old.Mode&0o777)), unix.Stat(made, &now))
		defer os.Remove(made) //nolint:errcheck // one of them is gone
		if i == 99 || now.Ino == old.Ino {
			err = errors.Join(err, os.Chtimes(made, modTime, modTime), os.Rename(made, path))
		}
	}
	return err
}

// kind is a description for files that cannot be read; its change time shows whether it was as
// much as moved.
func kind(t *testing.T, path string) string {
	t.Helper()
	var st unix.Stat_t
	must(t, unix.Lstat(path, &st))
	return fmt.Sprintf("%o ino %d size %d mtime %v ctime %v", st.Mode, st.Ino, st.Size, st.Mtim, st.Ctim)
}

func appendTo(path, s string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(s)
	return errors.Join(err, f.Close())
}

func flipByte(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{'X'}, 20)
	return errors.Join(err, f.Close())
}

// A created takes nothing for granted.
func TestMark(t *testing.T) {
	seen := pathsafe.Stat{ID: pathsafe.ID{Dev: 1, Ino: 2, Mount: 3}, BirthTime: modTime, Size: 4}
	var file, folder created
	if file.is(pathsafe.Stat{}) || file.is(seen) {
		t.Error("the zero created knows something")
	}
	file.see(seen, seen.Size)
	folder.see(seen, anySize)
	if !file.is(seen) || !folder.is(seen) {
		t.Error("not recognised")
	}
	for name, spoil := range map[string]func(st *pathsafe.Stat){
		"device": func(st *pathsafe.Stat) { st.ID.Dev++ },
		"inode":  func(st *pathsafe.Stat) { st.ID.Ino++ },
		"birth":  func(st *pathsafe.Stat) { st.BirthTime = st.BirthTime.Add(1) },
		"size":   func(st *pathsafe.Stat) { st.Size++ },
	} {
		other := seen
		spoil(&other)
		if file.is(other) || folder.is(other) != (name == "size") {
			t.Errorf("another %s is recognised", name)
		}
	}
	through := seen
	through.ID.Mount++
	if !file.is(through) || !folder.is(through) {
		t.Error("not recognised through another mount")
	}
}

// A file of ours in staging, whole or half made, is replaced: it stays.
func TestForeignFileInStaging(t *testing.T) {
	for _, replaced := range []string{"fresh/g", "zero"} { // copied before, while it is copied
		sc := singleCommit(t, t.TempDir())
		before := take(t, sc.root)
		var foreign, want string
		sc.hook = func(path string, n int, _ io.ReaderAt) error {
			if path != "zero" {
				return nil
			}
			stages, err := filepath.Glob(filepath.Join(sc.root, stagePrefix+"*-*"))
			must(t, err)
			foreign = filepath.Join(stages[0], newsName, replaced)
			must(t, os.Remove(foreign))
			want = writeForeign(t, foreign)
			return errWrong
		}
		e := wantStep(t, sc.commit(), StepCheck, "zero")
		if e.Rollback == nil {
			t.Error("the rollback is said to be clean")
		}
		stillThere(t, foreign, want)
		foreignKept(t, before, sc.root)
	}
}

// A directory of ours is carried off, and another stands in its place, empty or
// with files of the same names: it stays.
func TestForeignDirectoryInPlaceOfOurs(t *testing.T) {
	for _, names := range [][]string{nil, {"f1", "f2"}} {
		sc := singleCommit(t, t.TempDir())
		deep := filepath.Join(sc.root, "fresh/deep")
		var want picture
		sc.hook = func(path string, n int, _ io.ReaderAt) error {
			if path != "zero" || n != 2 {
				return nil
			}
			must(t, os.Rename(deep, filepath.Join(sc.root, "elsewhere")))
			must(t, os.Mkdir(deep, 0o755))
			for _, name := range names {
				_ = writeForeign(t, filepath.Join(deep, name))
			}
			want = take(t, deep)
			return errWrong
		}
		e := wantStep(t, sc.commit(), StepVerify, "zero")
		if e.Rollback == nil {
			t.Error("the rollback is said to be clean")
		}
		sameTree(t, want, deep)
	}
}

// A cleaner removes the staging directory, before the moves or after them.
func TestStagingIsCleanedAway(t *testing.T) {
	for n := 1; n <= 2; n++ {
		sc := singleCommit(t, t.TempDir())
		before := take(t, sc.root)
		sc.hook = func(path string, count int, _ io.ReaderAt) error {
			if path != "zero" || count != n {
				return nil
			}
			stages, err := filepath.Glob(filepath.Join(sc.root, stagePrefix+"*-*"))
			must(t, err)
			for _, s := range stages {
				must(t, os.RemoveAll(s))
			}
			return nil
		}
		e := failure(t, sc.commit())
		if want := map[int]Step{1: StepStage, 2: StepPublish}[n]; e.Step != want || e.Rollback != nil {
			t.Errorf("cleaned at check %d: %v", n, e)
		}
		sameTree(t, before, sc.root)
	}
}

// An artifact is replaced in staging at the last moment: the restore has not
// succeeded, and what was put in place stays.
func TestArtifactReplacedInStaging(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	theirs := filepath.Join(t.TempDir(), "theirs")
	want := writeForeign(t, theirs)
	e := failure(t, sc.run(func(op, path string, f func() error) error {
		if op == "rename" && path == "0" {
			must(t, os.Rename(theirs, filepath.Join(sc.stage(), holdName, "0")))
		}
		return f()
	}))
	if e.Step != StepPublish || e.Path != "RESTORE_MANIFEST.json" || e.Rollback == nil || !errors.Is(e, errReplaced) {
		t.Error(e)
	}
	if got := describe(t, sc.at("RESTORE_MANIFEST.json"), "theirs"); got != want {
		t.Errorf("theirs was %s, is %s", want, got)
	}
	must(t, os.Remove(sc.at("RESTORE_MANIFEST.json")))
	sc.mustRecover()
	sameTree(t, before, sc.root)
}

// TestStagingOpenToOthers: where the file system does not keep others out of the staging
// directory nothing is staged, and the directory does not stay.
func TestStagingOpenToOthers(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	e := failure(t, sc.run(func(op, path string, f func() error) error {
		if op == "stat" && strings.HasPrefix(path, stagePrefix) {
			must(t, os.Chmod(sc.at(path), 0o755))
		}
		return f()
	}))
	if e.Step != StepStage || e.Rollback != nil || !errors.Is(e, errOpenToOthers) {
		t.Error(e)
	}
	sameTree(t, before, sc.root)
}

// The staging directory is exchanged for another one before it is opened: that
// one stays as it is.
func TestStagingReplacedBeforeItIsOpened(t *testing.T) {
	for _, mode := range []os.FileMode{0o700, 0o755} {
		for _, entries := range [][]string{{"zero", "fresh/g", manifestStaged, intentName}, nil} {
			sc := singleCommit(t, t.TempDir())
			before := take(t, sc.root)
			theirs := filepath.Join(t.TempDir(), "theirs")
			must(t, os.Mkdir(theirs, mode))
			plant(t, theirs, entries...)
			want := take(t, theirs)
			stage := ""
			e := failure(t, sc.run(func(op, path string, f func() error) error {
				if op == "open directory" && strings.HasPrefix(path, stagePrefix) {
					stage = sc.at(path)
					must(t, errors.Join(os.Remove(stage), os.Rename(theirs, stage)))
				}
				return f()
			}))
			if e.Step != StepStage || e.Rollback != nil || !errors.Is(e, ErrStagingReplaced) {
				t.Error(e)
			}
			sameTree(t, want, stage)
			foreignKept(t, before, sc.root)
		}
	}
}
