package staging

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
)

// What stands in the way is found before anything is written: no call but
// looks, and the root is untouched to the nanosecond.
func TestConflicts(t *testing.T) {
	for _, c := range []struct {
		foreign []string
		step    Step
		path    string
		err     error
	}{
		{[]string{"b/c"}, StepConflict, "b/c", errTaken},
		{[]string{"b/c/"}, StepConflict, "b/c", errTaken},
		{[]string{"b"}, StepConflict, "b/c", errTaken},
		{[]string{"b -> nowhere"}, StepConflict, "b/c", errTaken},
		{[]string{"b/c -> nowhere"}, StepConflict, "b/c", errTaken},
		{[]string{"b/c -> ../x", "x"}, StepConflict, "b/c", errTaken},
		{[]string{"z/"}, StepConflict, "z", errTaken},
		{[]string{"z", "b/d/e"}, StepConflict, "b/d/e", errTaken},
		{[]string{"z", "b -> /etc"}, StepBegin, "b/c", pathsafe.ErrEscape},
		{[]string{"b -> .."}, StepBegin, "b/c", pathsafe.ErrEscape},
		{[]string{"b -> b"}, StepBegin, "b/c", pathsafe.ErrEscape},
		{[]string{"b/c -> /etc/passwd"}, StepBegin, "b/c", pathsafe.ErrEscape},
		{[]string{"REPORT"}, StepConflict, "REPORT", errTaken},
		{[]string{"REPORT -> /etc/passwd"}, StepBegin, "REPORT", pathsafe.ErrEscape},
		{[]string{"MANIFEST", "REPORT"}, StepConflict, "MANIFEST", errTaken},
		{[]string{"MANIFEST", "z"}, StepConflict, "z", errTaken},
	} {
		sc := newCommitFixture(t, t.TempDir(), c.foreign, []string{"b/c", "b/d/e", "z"}, []string{"MANIFEST", "REPORT"})
		refusedUntouched(t, sc, c.step, c.path, c.err)
	}
}

func refusedUntouched(t *testing.T, sc *commitFixture, step Step, path string, want error) {
	t.Helper()
	before, inode := take(t, sc.root), kind(t, sc.root)
	err := sc.run(func(op, path string, f func() error) error {
		switch op {
		case "open directory", "open lock", "list", "survey", "stat":
		default:
			t.Errorf("%s %q was called", op, path)
		}
		return f()
	})
	e := wantStep(t, err, step, path)
	if want != nil && !errors.Is(err, want) || e.Rollback != nil {
		t.Errorf("%v, want %v", err, want)
	}
	sameTree(t, before, sc.root)
	if now := kind(t, sc.root); now != inode {
		t.Errorf("the root was %s, is %s", inode, now)
	}
}

func TestMountInTheWay(t *testing.T) {
	root := t.TempDir()
	mounted := filepath.Join(root, "b")
	harness.Mount(t, "tmpfs", mounted, "tmpfs", 0, "")
	sc := newCommitFixture(t, root, nil, []string{"b/c"}, nil)
	refusedUntouched(t, sc, StepBegin, "b/c", pathsafe.ErrCrossesMount)
}

// Two targets that a link beneath the root makes one.
func TestTargetsMeet(t *testing.T) {
	for _, files := range [][]string{{"d/n/a", "l/n/b"}, {"d/f", "l/f"}, {"d/f", "l/f/x"}} {
		sc := newCommitFixture(t, t.TempDir(), []string{"d/", "l -> d"}, files, nil)
		before := take(t, sc.root)
		e := failure(t, sc.commit())
		if e.Step != StepConflict || !strings.HasPrefix(e.Path, "l/") || e.Rollback != nil {
			t.Error(e)
		}
		sameTree(t, before, sc.root)
	}
}

func TestSpecIsRejected(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s *spec)
		path  string
	}{
		"no UTF-8":           {func(s *spec) { s.files[1].Path = mustParse(t, "b\xff") }, "b\xff"},
		"no path":            {func(s *spec) { s.files[1].Path = pathsafe.Path{} }, ""},
		"not in order":       {func(s *spec) { s.files[0], s.files[1] = s.files[1], s.files[0] }, "a"},
		"twice":              {func(s *spec) { s.files[1] = s.files[0] }, "a"},
		"no source":          {func(s *spec) { s.files[1].Open = nil }, "b/c"},
		"no check":           {func(s *spec) { s.files[1].Check = nil }, "b/c"},
		"set-id":             {func(s *spec) { s.files[1].Perm = 0o4755 }, "b/c"},
		"file and directory": {func(s *spec) { s.files[0].Path = mustParse(t, "b") }, "b"},
		"nested": {func(s *spec) {
			s.files[0].Path = mustParse(t, "b/c")
			s.files[1].Path = mustParse(t, "b/c/d")
		}, "b/c"},
		"artifact nowhere": {func(s *spec) { s.artifacts[0].Path = mustParse(t, "n/r") }, "n/r"},
		"artifact set-id":  {func(s *spec) { s.artifacts[0].Perm = 0o4644 }, "r"},
		"artifact no path": {func(s *spec) { s.artifacts[0].Path = pathsafe.Path{} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			sc := newCommitFixture(t, t.TempDir(), []string{"x"}, []string{"a", "b/c"}, []string{"r"})
			c.spoil(&sc.spec)
			refusedUntouched(t, sc, StepBegin, c.path, nil)
		})
	}
}

func TestErrorText(t *testing.T) {
	e := &Error{Step: StepFinalize, Path: "a\nb", Err: fs.ErrExist, Rollback: errForeign}
	want := `finalize "a\nb": file already exists; rollback failed: ` + errForeign.Error()
	if e.Error() != want || !errors.Is(e, fs.ErrExist) {
		t.Errorf("%s", e)
	}
	for s := StepBegin; s <= StepPublish; s++ {
		if s.String() == "" || strings.HasPrefix(s.String(), "step") {
			t.Errorf("%d has no name", int(s))
		}
	}
	if Step(0).String() != "step 0" || Step(99).String() != "step 99" {
		t.Error("unknown steps have names")
	}
}

// TestNewDirectories: what must be new is not merged into.
func TestNewDirectories(t *testing.T) {
	for _, foreign := range []string{"b/", "b", "b -> nowhere", "b -> x"} {
		sc := newCommitFixture(t, t.TempDir(), []string{foreign, "x/"}, []string{"a/f", "b/c"}, nil)
		sc.spec.absent = []pathsafe.Path{mustParse(t, "a"), mustParse(t, "b")}
		refusedUntouched(t, sc, StepConflict, "b", errTaken)
	}
	sc := newCommitFixture(t, t.TempDir(), []string{"b/"}, []string{"b/c"}, nil)
	must(t, sc.commit())
}

// TestRankDecides: of several failures that of the lowest rank counts, though
// another comes first by path.
func TestRankDecides(t *testing.T) {
	for step, n := range map[Step]int{StepCheck: 1, StepVerify: 2} {
		for last, want := range map[string]string{"c/f": "c/f", "b/f": "b/f", "a/f": "a/f"} {
			sc := newCommitFixture(t, t.TempDir(), nil, []string{"a/f", "b/f", "c/f"}, nil)
			for i := range sc.spec.files {
				if sc.spec.files[i].Path.String() != last {
					sc.spec.files[i].Rank = 1
				}
			}
			sc.hook = func(_ string, count int, _ io.ReaderAt) error {
				if count == n {
					return errWrong
				}
				return nil
			}
			_ = wantStep(t, sc.commit(), step, want)
		}
	}
}
