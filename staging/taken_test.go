package staging

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestForeignIsPutBack: an undo moves a subtree with a foreign file away, and is killed at any
// call. The next one puts the file back at its name.
func TestForeignIsPutBack(t *testing.T) {
	killed := func(n int) (calls int, away bool) {
		sc := unfinishable(t)
		theirs := take(t, sc.root)["fresh/deep/theirs"]
		_, err := sc.recoverWith(Automatic, func(op, path string, f func() error) error {
			if calls++; n > 0 && calls >= n && op != "close" {
				return unix.EIO
			}
			return sc.lazily(op, path, f)
		})
		_, missing := os.Lstat(sc.at("fresh/deep/theirs"))
		var halt *HaltError
		if _, again := sc.recover(Person); !errors.As(again, &halt) || !errors.Is(again, unix.ENOTEMPTY) {
			t.Errorf("killed at call %d: %v, then %v", n, err, again)
		}
		if now := take(t, sc.root); now["fresh/deep/theirs"] != theirs || now["fresh/g"] != "" {
			t.Errorf("killed at call %d: theirs was %s, is %s; ours is %s", n, theirs, now["fresh/deep/theirs"], now["fresh/g"])
		}
		must(t, os.Remove(sc.at("fresh/deep/theirs")))
		sc.mustRecover()
		return calls, missing != nil
	}
	total, _ := killed(0)
	taken := 0
	for _, n := range tries(t, 20, total) {
		if _, away := killed(n); away {
			taken++
		}
		if t.Failed() {
			return
		}
	}
	if !sampled() && taken < 5 {
		t.Errorf("it was away only %d times", taken)
	}
}

// TestForeignCannotBePutBack: while a subtree with a foreign file is away another process takes
// its name. Both stay, and the root is halted until a person has looked.
func TestForeignCannotBePutBack(t *testing.T) {
	for _, revived := range []bool{false, true} {
		sc := singleCommit(t, filepath.Join(scratch(t), "root"))
		before := take(t, sc.root)
		var theirs, id string
		intrude := func(op, path string, f func() error) error {
			err := f()
			switch {
			case op == "rename" && path == "fresh" && theirs == "" && err == nil: // to its place
				theirs = writeForeign(t, sc.at("fresh/deep/theirs"))
			case op == "rename" && path == "fresh" && err == nil: // away
				plant(t, sc.root, "fresh/another")
			}
			if op == "create" && path == committedName+newSuffix {
				return unix.EIO
			}
			return err
		}
		if revived {
			sc.lazy = true
			sc.abandon(allMoved)
			theirs = writeForeign(t, sc.at("fresh/deep/theirs"))
			_, err := sc.recoverWith(Automatic, intrude)
			var halt *HaltError
			if !errors.As(err, &halt) || !errors.Is(err, unix.ENOTEMPTY) {
				t.Fatal(err)
			}
			id = halt.Attempt
		} else {
			e := failure(t, sc.run(intrude))
			if !errors.Is(e.Rollback, unix.ENOTEMPTY) {
				t.Fatal(e)
			}
			id = e.Attempt
		}
		foreignKept(t, before, sc.root)
		another := describe(t, sc.at("fresh/another"), "another")
		out, err := sc.recover(Acknowledged)
		if err != nil || len(out) != 1 || out[0].Result != Released || !strings.Contains(out[0].Left.Error(), keptPrefix+id) {
			t.Fatalf("%+v, %v", out, err)
		}
		found, err := filepath.Glob(sc.at(keptPrefix + id + "/old/*/deep/theirs"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%q, %v", found, err)
		}
		stillThere(t, found[0], theirs)
		stillThere(t, sc.at("fresh/another"), another)
	}
}

// TestCommitOverLower: the root is in the lower layer of an overlay, where a directory becomes
// another inode when something is made in it. A commit, its undo and its recovery do their work.
func TestCommitOverLower(t *testing.T) {
	below := harness.MountedVolume(t, harness.Tmpfs).Path
	plant(t, filepath.Join(below, "lower/root"), foreignThings...)
	for _, name := range []string{"committed", "undone", "recovered", "forward"} {
		t.Run(name, func(t *testing.T) {
			var options []string
			for _, part := range []string{"upperdir", "workdir"} {
				dir := filepath.Join(below, name+part)
				must(t, os.Mkdir(dir, 0o755))
				options = append(options, part+"="+dir)
			}
			merged := t.TempDir()
			must(t, unix.Mount("overlay", merged, "overlay", 0, strings.Join(append(options, "lowerdir="+filepath.Join(below, "lower")), ",")))
			t.Cleanup(func() { must(t, unix.Unmount(merged, unix.MNT_DETACH)) })
			sc := singleCommit(t, filepath.Join(merged, "root"))
			before := take(t, sc.root)
			switch name {
			case "undone":
				sc.hook = failCheck("zero", 2)
				if e := wantStep(t, sc.commit(), StepVerify, "zero"); e.Rollback != nil {
					t.Error(e)
				}
			case "recovered", "forward":
				sc.abandon(map[string]string{"recovered": allMoved, "forward": notPublished}[name])
				want := map[string]Result{"recovered": RolledBack, "forward": Completed}[name]
				if out, err := sc.recover(Automatic); err != nil || len(out) != 1 || out[0].Result != want {
					t.Error(out, err)
				}
			default:
				must(t, sc.commit())
			}
			after := take(t, sc.root)
			for path := range before {
				if _, ok := after[path]; !ok {
					t.Errorf("%q is gone", path)
				}
				delete(after, path)
			}
			if done := name == "committed" || name == "forward"; done != (len(after) > 0) {
				t.Errorf("new: %v", after)
			}
		})
	}
}
