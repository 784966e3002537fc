package staging

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

func TestCommit(t *testing.T) {
	for _, c := range commitCases {
		for name, root := range map[string]string{"disk": t.TempDir(), "tmpfs": mountTmpfs(t, "")} {
			for _, workers := range []int{0, 1, 7} {
				t.Run(fmt.Sprintf("%s/%s/%d", c.name, name, workers), func(t *testing.T) {
					sc := c.make(t, filepath.Join(root, fmt.Sprint(c.name, workers)))
					before := take(t, sc.root)
					sc.spec.workers = workers
					fds := descriptors(t)
					must(t, sc.commit())
					if n := descriptors(t); n != fds {
						t.Errorf("%d descriptors before, %d after", fds, n)
					}
					sc.done(before)
					for path, n := range sc.checks {
						if n != 2 {
							t.Errorf("%q was checked %d times", path, n)
						}
					}
				})
			}
		}
	}
}

func TestFailureLeavesNoDescriptors(t *testing.T) {
	sc := manyCommit(t, t.TempDir())
	fds := descriptors(t)
	sc.hook = failCheck("r16/f", 2)
	_ = wantStep(t, sc.commit(), StepVerify, "r16/f")
	if n := descriptors(t); n != fds {
		t.Errorf("%d descriptors before, %d after", fds, n)
	}
}

var errWrong = errors.New("wrong")

// failCheck makes check n of path fail.
func failCheck(path string, n int) func(string, int, io.ReaderAt) error {
	return func(p string, count int, _ io.ReaderAt) error {
		if p == path && count == n {
			return errWrong
		}
		return nil
	}
}

func TestNothingToDo(t *testing.T) {
	sc := newCommitFixture(t, t.TempDir(), foreignThings, nil, nil)
	before := take(t, sc.root)
	must(t, sc.commit())
	sameTree(t, before, sc.root)
}

// Paths whose byte order and whose order as trees differ.
func TestPathOrder(t *testing.T) {
	sc := newCommitFixture(t, t.TempDir(), []string{"x/"},
		[]string{"a-/y", "a.b/x", "a/b/c", "a/b.c/d", "a/b/c.d/e", "a0", "x/a.b", "x/a/b", "x/a-"}, []string{"x/a/r", "r"})
	before := take(t, sc.root)
	must(t, sc.commit())
	sc.done(before)
}

// Root, staging directory and path together are longer than PATH_MAX.
func TestLongPath(t *testing.T) {
	long := strings.Repeat(strings.Repeat("p", 255)+"/", 15) + strings.Repeat("q", 250)
	sc := newCommitFixture(t, t.TempDir(), nil, []string{long, "short"}, nil)
	must(t, sc.commit())
	f, st, err := sc.dir.OpenRegular(sc.spec.files[0].Path, pathsafe.NoLinks)
	must(t, err)
	defer f.Close()
	if st.Size != sc.spec.files[0].Size {
		t.Errorf("size %d", st.Size)
	}
}

// Directories get 0755 less the umask, artifacts their bits less the umask, files exactly
// theirs.
func TestUmask(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o027))
	sc := singleCommit(t, t.TempDir())
	sc.umask = 0o027
	before := take(t, sc.root)
	must(t, sc.commit())
	sc.done(before)
	fi, err := os.Stat(filepath.Join(sc.root, "fresh/deep"))
	if err != nil || fi.Mode() != fs.ModeDir|0o750 {
		t.Errorf("directory: %v, %v", fi.Mode(), err)
	}
}

// A file larger than one chunk, and one whose source goes on without end.
func TestBigFile(t *testing.T) {
	sc := newCommitFixture(t, t.TempDir(), nil, []string{"big"}, nil)
	content := strings.Repeat("0123456789abcdef", (copyChunk*2+copyChunk/2)/16)
	must(t, os.WriteFile(sc.sources["big"], []byte(content), 0o600))
	f := &sc.spec.files[0]
	f.Size = int64(len(content))
	f.Check = func(_ context.Context, f io.ReaderAt) error { return sc.check("big", content, f) }
	var staged, verified int64
	sc.spec.progress = func(phase string, n int64) {
		switch phase {
		case PhaseStage:
			staged += n
		case PhaseVerify:
			verified += n
		}
	}
	begun := 0
	must(t, sc.run(func(op, path string, f func() error) error {
		if op == "start write-back" {
			begun++
			return errors.Join(f(), unix.EIO) // the call is made, and its result is ignored
		}
		return f()
	}))
	if staged != f.Size || verified != f.Size || begun != 3 {
		t.Errorf("%d bytes staged, %d verified, of %d; %d write-backs begun", staged, verified, f.Size, begun)
	}
	b, err := os.ReadFile(filepath.Join(sc.root, "big"))
	if err != nil || string(b) != content {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestSourceWithoutEnd(t *testing.T) {
	sc := newCommitFixture(t, t.TempDir(), nil, []string{"a", "endless"}, nil)
	before := take(t, sc.root)
	sc.spec.files[1].Open = func(*pathsafe.Opener) (Source, error) { return os.Open("/dev/zero") }
	sc.hook = func(path string, n int, f io.ReaderAt) error {
		if st, err := pathsafe.StatFile(f.(pathsafe.Opened)); err == nil && path == "endless" && st.Size > sc.spec.files[1].Size+1 {
			t.Errorf("%d bytes were copied", st.Size)
		}
		return nil
	}
	e := wantStep(t, sc.commit(), StepCheck, "endless")
	if e.Rollback != nil {
		t.Error(e)
	}
	sameTree(t, before, sc.root)
}

// What changed between plan and copy is found by the check of the copy.
func TestSourceChanges(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"overwritten": func(p string) error { return os.WriteFile(p, []byte(strings.Repeat("X", 147)), 0o600) },
		"truncated":   func(p string) error { return os.Truncate(p, 3) },
		"emptied":     func(p string) error { return os.Truncate(p, 0) },
		"grown":       func(p string) error { return os.Truncate(p, 1<<20) },
	} {
		t.Run(name, func(t *testing.T) {
			sc := singleCommit(t, t.TempDir())
			before := take(t, sc.root)
			must(t, change(sc.sources["fresh/deep/f1"]))
			e := wantStep(t, sc.commit(), StepCheck, "fresh/deep/f1")
			if e.Rollback != nil {
				t.Error(e)
			}
			sameTree(t, before, sc.root)
		})
	}
	t.Run("gone", func(t *testing.T) {
		sc := singleCommit(t, t.TempDir())
		before := take(t, sc.root)
		must(t, os.Remove(sc.sources["inlink/via"]))
		e := wantStep(t, sc.commit(), StepStage, "inlink/via")
		if e.Rollback != nil || !errors.Is(e, fs.ErrNotExist) {
			t.Error(e)
		}
		sameTree(t, before, sc.root)
	})
}

// A check that does not look at the size does not make up for a wrong size.
func TestSizeIsChecked(t *testing.T) {
	sc := newCommitFixture(t, t.TempDir(), nil, []string{"a", "b"}, nil)
	sc.spec.files[1].Size++
	sc.spec.files[1].Check = func(context.Context, io.ReaderAt) error { return nil }
	_ = wantStep(t, sc.commit(), StepCheck, "b")
}

// Of several failures the one with the lowest path is reported, whatever the
// timing.
func TestLowestFailureWins(t *testing.T) {
	for step, n := range map[Step]int{StepCheck: 1, StepVerify: 2} {
		base := scratch(t)
		for round := range sample.Of(8, 40, 40) {
			sc := manyCommit(t, filepath.Join(base, fmt.Sprint(round)))
			sc.spec.workers = 8
			rng := rand.New(rand.NewPCG(uint64(round), uint64(n)))
			slow := rng.IntN(8)
			sc.hook = func(path string, count int, _ io.ReaderAt) error {
				if path == fmt.Sprintf("r%02d/f", slow) {
					time.Sleep(time.Millisecond) // the lowest comes last
				}
				if path >= fmt.Sprintf("r%02d/f", slow) && count == n {
					return errWrong
				}
				return nil
			}
			_ = wantStep(t, sc.commit(), step, fmt.Sprintf("r%02d/f", slow))
		}
	}
}

func TestCancel(t *testing.T) {
	for _, c := range commitCases {
		base := scratch(t)
		ops, total := traceOf(t, &sweeper{t: t, base: base, make: c.make})
		firstMove := total
		for i, op := range ops {
			if op == "rename "+preparedName+newSuffix {
				firstMove = i + 3 // after it and the sync of its name
				break
			}
		}
		for _, n := range append([]int{0}, tries(t, 15, total)...) {
			cancelAt(t, c.make(t, filepath.Join(base, fmt.Sprint("n", n))), n, firstMove)
		}
	}
}

// cancelAt cancels before call n, 0 for before the start.
func cancelAt(t *testing.T, sc *commitFixture, n, firstMove int) {
	t.Helper()
	before := take(t, sc.root)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if n == 0 {
		cancel()
	}
	calls := 0
	err := run(ctx, sc.dir, sc.spec, &runner{testKey, hookedBy(func(op, path string, f func() error) error {
		if calls++; calls == n {
			cancel()
		}
		return f()
	})})
	if n >= firstMove {
		if err != nil {
			t.Errorf("cancelled before call %d, move is %d: %v", n, firstMove, err)
		}
		sc.done(before)
		return
	}
	e := failure(t, err)
	if !errors.Is(err, context.Canceled) || e.Rollback != nil || e.Step != StepStage {
		t.Errorf("cancelled before call %d: %v", n, err)
	}
	sameTree(t, before, sc.root)
}

// A second commit on the same root, from inside the first one.
func TestSecondCommitIsRejected(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	other := openRoot(t, sc.root)
	refused := 0
	sc.hook = func(string, int, io.ReaderAt) error {
		for _, root := range []*pathsafe.Dir{sc.dir, other} {
			err := run(context.Background(), root, spec{artifacts: []artifactAt{{Path: mustParse(t, "second"), Artifact: Artifact{nil, 0o644}}}}, &runner{testKey, &sysHook{}})
			e := wantStep(t, err, StepBegin, "")
			var busy *BusyError
			if errors.Is(err, pathsafe.ErrLocked) && e.Rollback == nil && errors.As(err, &busy) && busy.PID == os.Getpid() {
				refused++
			}
		}
		return nil
	}
	must(t, sc.commit())
	if want := 4 * len(sc.spec.files); refused != want {
		t.Errorf("%d commits were refused, want %d", refused, want)
	}
	sc.done(before)
	must(t, run(context.Background(), other, spec{artifacts: []artifactAt{{Path: mustParse(t, "second"), Artifact: Artifact{nil, 0o644}}}}, &runner{testKey, &sysHook{}}))
}

// Two commits of the same targets at the same time: one wins.
func TestTwoCommitsRace(t *testing.T) {
	locked, taken := 0, 0
	for range sample.Of(10, 50, 50) {
		sc := singleCommit(t, t.TempDir())
		before := take(t, sc.root)
		errs := make(chan error, 2)
		for range 2 {
			go func() { errs <- sc.commit() }()
		}
		first, second := <-errs, <-errs
		if first != nil {
			first, second = second, first
		}
		if first != nil || second == nil {
			t.Fatalf("%v, %v", first, second)
		}
		if e := failure(t, second); errors.Is(second, pathsafe.ErrLocked) {
			locked++
		} else if taken++; e.Step != StepConflict {
			t.Error(second)
		}
		sc.done(before)
	}
	t.Logf("%d found the lock, %d the targets", locked, taken)
}

// A file system that cannot move without replacing is found out before
// anything is copied.
func TestNoReplaceIsFoundOut(t *testing.T) {
	sc := singleCommit(t, t.TempDir())
	before := take(t, sc.root)
	err := sc.run(func(op, path string, f func() error) error {
		switch op {
		case "rename":
			return errors.ErrUnsupported
		case "copy":
			t.Error("something was copied")
		}
		return f()
	})
	if e := failure(t, err); e.Step != StepBegin || !errors.Is(err, errors.ErrUnsupported) || e.Rollback != nil {
		t.Error(err)
	}
	sameTree(t, before, sc.root)
}

// Artifacts appear after everything else, in order, and whole. Those whose place they take are
// never seen beside anything that the commit puts in place.
func TestArtifactsComeLast(t *testing.T) {
	for _, c := range commitCases {
		sc := c.make(t, t.TempDir())
		must(t, sc.run(func(op, path string, f func() error) error {
			err := f()
			seen := 0
			for i, a := range sc.spec.artifacts {
				b, readErr := os.ReadFile(filepath.Join(sc.root, a.Path.String()))
				if errors.Is(readErr, fs.ErrNotExist) {
					continue
				}
				if a.old != nil && strings.HasPrefix(string(b), "foreign") {
					if _, err := os.Lstat(filepath.Join(sc.root, "existing/new")); err == nil {
						t.Errorf("after %s %q the old artifact %d stands beside what is new", op, path, i)
					}
					continue
				}
				if seen++; seen != i+1 || string(b) != string(a.Data) {
					t.Errorf("after %s %q artifact %d is there with %q", op, path, i, b)
				}
			}
			if verified := sc.verified(); seen > 0 && verified != len(sc.spec.files) {
				t.Errorf("after %s %q there are artifacts, but %d files are verified", op, path, verified)
			}
			return err
		}))
	}
}

func (s *commitFixture) verified() (n int) {
	for _, count := range s.checks {
		if count >= 2 {
			n++
		}
	}
	return n
}

// The chain manifest stands beside the staging directory while files are copied.
func TestChainManifest(t *testing.T) {
	sc := chainCommit(t, t.TempDir())
	moments := 0
	must(t, sc.run(func(op, path string, f func() error) error {
		manifests, _ := filepath.Glob(filepath.Join(sc.root, ".spectrum06_chain_*.json"))
		stages, _ := filepath.Glob(filepath.Join(sc.root, ".spectrum06_staging_*-*"))
		if len(stages) == 1 && op == "copy" {
			moments++
			b, err := os.ReadFile(manifests[0])
			if err != nil || string(b) != string(sc.spec.manifest) {
				t.Errorf("at %s %q the manifest holds %q, %v", op, path, b, err)
			}
			id := strings.TrimPrefix(filepath.Base(stages[0]), stagePrefix)
			if filepath.Base(manifests[0]) != manifestPrefix+id+".json" {
				t.Errorf("%q beside %q", manifests[0], stages[0])
			}
			if fi, err := os.Stat(stages[0]); err != nil || fi.Mode().Perm() != 0o700 {
				t.Errorf("staging: %v, %v", fi.Mode(), err)
			}
		}
		return f()
	}))
	if moments == 0 {
		t.Error("never seen")
	}
}

func TestFullDisk(t *testing.T) {
	root := mountTmpfs(t, "size=1m")
	sc := singleCommit(t, filepath.Join(root, "r"))
	before := take(t, sc.root)
	free := freeSpace(t, root)
	must(t, os.Truncate(sc.sources["zero"], 2<<20))
	sc.spec.files[len(sc.spec.files)-1].Size = 2 << 20
	err := sc.commit()
	e := wantStep(t, err, StepStage, "zero")
	if !errors.Is(err, unix.ENOSPC) || e.Rollback != nil {
		t.Error(err)
	}
	sameTree(t, before, sc.root)
	if now := freeSpace(t, root); now != free {
		t.Errorf("%d free before, %d after", free, now)
	}
}

func freeSpace(t *testing.T, path string) uint64 {
	t.Helper()
	var sf unix.Statfs_t
	must(t, unix.Statfs(path, &sf))
	return sf.Bfree
}

func TestReadOnlyRoot(t *testing.T) {
	base := mountTmpfs(t, "")
	plant(t, base, "foreign")
	before := take(t, base)
	sc := newCommitFixture(t, base, nil, []string{"a"}, nil)
	must(t, unix.Mount("", base, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	e := failure(t, sc.commit())
	if e.Step != StepStage || !errors.Is(e, unix.EROFS) {
		t.Error(e)
	}
	sameTree(t, before, base)
}

// TestRenamesGrowWithSubtrees: a new subtree is moved in one go, whatever is in
// it.
func TestRenamesGrowWithSubtrees(t *testing.T) {
	var files []string
	for i := range 300 {
		files = append(files, fmt.Sprintf("new/%d/%d", i%7, i), fmt.Sprintf("other/%d", i))
	}
	sc := newCommitFixture(t, filepath.Join(scratch(t), "root"), foreignThings[:1], append(files, "top"), []string{"r"})
	moves := 0
	must(t, sc.run(func(op, path string, f func() error) error {
		if op == "rename" && !strings.HasPrefix(path, ".spectrum06_") {
			moves++
		}
		return f()
	}))
	if moves != 3+1 {
		t.Errorf("%d moves of two subtrees, a file and an artifact", moves)
	}
}
