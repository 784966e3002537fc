package staging

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
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
	sc := replaceScene(t, t.TempDir())
	f, err := os.OpenFile(filepath.Join(sc.root, "existing/keep"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	must(t, sc.commit())
	_, err = f.WriteString(" and later")
	must(t, err)
	kept, err := filepath.Glob(filepath.Join(sc.root, keptPrefix+"*", "existing/keep"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	if text, err := os.ReadFile(kept[0]); err != nil || string(text) != "foreign existing/keep and later" {
		t.Errorf("%q, %v", text, err)
	}
	if others, err := filepath.Glob(filepath.Join(sc.root, keptPrefix+"*", "*")); err != nil || len(others) != 1 {
		t.Errorf("%q, %v", others, err)
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
