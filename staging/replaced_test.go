package staging

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// Another process moves a file of its own over a target that is ours by then, or
// onto its name, at every call. The file stays, whatever the end of the commit is.
func TestReplacedAtEveryCall(t *testing.T) {
	for _, c := range []struct {
		target string
		make   func(t testing.TB, root string) *commitFixture
	}{
		{"existing/new", singleCommit},
		{"fresh/deep/f2", singleCommit},
		{"RESTORE_REPORT.json", singleCommit},
		{"existing/keep", replaceCommit},
		{"existing/other", replaceCommit},
	} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%v", c.target, fails), func(t *testing.T) {
				t.Parallel()
				base := ""
				if fails {
					base = t.TempDir() // where an inode number is used again at once
					_ = shareSources(t, base)
				} else {
					base = scratch(t)
				}
				sweepReplaced(&sweeper{t: t, base: base, make: c.make}, c.target, fails)
			})
		}
	}
}

func sweepReplaced(s *sweeper, target string, fails bool) {
	t := s.t
	fresh := func() (*commitFixture, picture) {
		sc, before := s.fresh()
		sc.lazy = true // its power is not cut
		if fails {
			sc.spec.workers = 1 // so that there are as many calls each time
			sc.hook = failCheck(sc.spec.files[len(sc.spec.files)-1].Path.String(), 2)
		}
		return sc, before
	}
	sc, _ := fresh()
	replaced, reported := 0, 0
	for _, n := range some(t, 10, callsWith(sc, filepath.Dir(target))) {
		sc, before := fresh()
		put, seen, err := replaceAt(t, sc, target, n)
		if put == "" {
			t.Fatalf("%q was not replaced at call %d: %v", target, n, err)
		}
		replaced++
		foreignKept(t, sc.staying(before), sc.root)
		stillThere(t, filepath.Join(sc.root, target), put)
		if err != nil {
			reported++
			replaces := before[target] != "" // then what others put there is no reason to halt
			if e := failure(t, err); e.Rollback == nil && e.Step != StepConflict && seen && !replaces {
				t.Errorf("call %d: the rollback is said to be clean: %v", n, err)
			}
		}
		if t.Failed() {
			t.Fatalf("call %d, %q: %v", n, target, err)
		}
	}
	t.Logf("%q: replaced at %d calls, %d times reported", target, replaced, reported)
	if !sampled() && (replaced < 10 || reported == 0) {
		t.Error("too few")
	}
}

// callsWith runs the commitFixture and returns the calls before which a directory is there.
func callsWith(sc *commitFixture, dir string) (calls []int) {
	sc.t.Helper()
	n := 0
	_ = sc.run(func(op, path string, f func() error) error {
		n++
		if _, err := os.Stat(sc.at(dir)); err == nil {
			calls = append(calls, n)
		}
		return sc.lazily(op, path, f)
	})
	return calls
}

// replaceAt runs the commitFixture and puts a foreign file in the place of target
// before call n, if its directory is there. It returns what was put there, and
// whether the target was surveyed after that.
func replaceAt(t *testing.T, sc *commitFixture, target string, n int) (put string, seen bool, err error) {
	full := filepath.Join(sc.root, target)
	theirs := sc.root + "_theirs"
	must(t, os.WriteFile(theirs, []byte("somebody else's"), 0o640))
	calls := 0
	err = sc.run(func(op, path string, f func() error) error {
		if calls++; calls == n && os.Rename(theirs, full) == nil {
			put = describe(t, full, "target")
		}
		seen = seen || put != "" && op == "survey" && path == target
		return sc.lazily(op, path, f)
	})
	return put, seen, err
}

// The control: without moving aside, the look before the unlink is not enough.
func TestReplacedControl(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "ours")
	theirs := filepath.Join(t.TempDir(), "theirs")
	must(t, os.WriteFile(theirs, nil, 0o640))
	s := hookedBy(func(op, path string, f func() error) error {
		if op == "unlink" {
			must(t, os.Rename(theirs, filepath.Join(root, "ours")))
		}
		return f()
	})
	d := on(openRoot(t, root), s)
	st, err := d.Stat("ours")
	must(t, err)
	made := swapping{path: mustParse(t, "ours"), since: phaseCommitted, hasNew: true, fresh: identityOf(st)}
	made.created.see(st, st.Size)
	u := &undo{attempt: &attempt{s: s, root: d, kind: KindCommit, swaps: []swapping{made}}} // no staging directory
	must(t, errors.Join(u.retract(0), u.err()))
	if _, err := os.Lstat(filepath.Join(root, "ours")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the attack does not bite: %v", err)
	}
}

// Something foreign appears in a directory of ours at every call.
func TestForeignFileAtEveryCall(t *testing.T) {
	s := &sweeper{t: t, base: scratch(t), make: singleCommit}
	sc, _ := s.fresh()
	sc.hook = failCheck("zero", 2)
	planted, stayed := 0, 0
	for _, n := range some(t, 15, callsWith(sc, "fresh/deep")) {
		sc, before := s.fresh()
		sc.hook = failCheck("zero", 2)
		foreign := filepath.Join(sc.root, "fresh/deep/foreign")
		var want string
		calls := 0
		err := sc.run(func(op, path string, f func() error) error {
			if calls++; calls == n {
				if _, err := os.Stat(filepath.Dir(foreign)); err == nil {
					want = writeForeign(t, foreign)
				}
			}
			return f()
		})
		foreignKept(t, before, sc.root)
		if want != "" {
			planted++
			stillThere(t, foreign, want)
			if failure(t, err).Rollback != nil {
				stayed++
			}
		}
	}
	t.Logf("planted at %d calls, %d reported", planted, stayed)
	if planted < sample.Of(1, 20, 20) || stayed != planted {
		t.Error("too few, or not all of them reported")
	}
}
