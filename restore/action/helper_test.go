package action_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/tree"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// A scene is a candidate and a restore root in which strangers' things stand.
type scene struct {
	*bundletest.Project
	t     testing.TB
	runs  []*bundletest.Run
	chain bool
	root  string
	want  map[string]string // what a commit puts under the root, artifacts aside
	undos []func()
}

// The outputs of the last run: into a directory that exists, into two that do
// not, and to the top. (In a chain everything is new.)
var outputs = map[string]string{
	"existing/f.txt": "f\n",
	"new/a.txt":      "alpha\n",
	"new/sub/b.txt":  "beta\n",
	"new/sub/empty":  "",
	"top.txt":        "top\n",
}

// newScene makes the scene of a mode: "single" or "chain", which has a good run
// before the last one.
func newScene(t testing.TB, mode string) *scene {
	t.Helper()
	s := emptyScene(t, mode == "chain")
	if s.chain {
		s.add("run-1", map[string]string{"gen/c.txt": "gamma\n"})
	}
	s.add("run-2", outputs)
	s.strangers()
	return s
}

func emptyScene(t testing.TB, chain bool) *scene {
	return &scene{Project: bundletest.New(t), t: t, chain: chain, root: t.TempDir(), want: map[string]string{}}
}

func (s *scene) add(id string, outputs map[string]string) *bundletest.Run {
	s.t.Helper()
	r := s.Run(id, outputs)
	s.runs = append(s.runs, r)
	for path, content := range outputs {
		if s.chain {
			path = id + "/" + path
		}
		s.want[path] = content
	}
	return r
}

// strangers puts into the root what no commit may touch.
func (s *scene) strangers() {
	s.t.Helper()
	for _, dir := range []string{"existing", "other", "empty"} {
		must(s.t, os.Mkdir(s.at(dir), 0o755))
	}
	must(s.t, os.WriteFile(s.at("existing/keep.txt"), []byte("keep"), 0o600))
	must(s.t, os.WriteFile(s.at("other/keep.txt"), []byte("keep, too"), 0o4755))
	must(s.t, os.Symlink("other", s.at("link")))
	must(s.t, unix.Mkfifo(s.at("fifo"), 0o644))
	must(s.t, os.Mkdir(s.at(".spectrum06_staging_other"), 0o700))
	must(s.t, os.WriteFile(s.at(".spectrum06_staging_other/f"), []byte("of another"), 0o600))
}

// undo registers what ends a fault, once: at mend, or when the test is over.
func (s *scene) undo(f func()) {
	f = sync.OnceFunc(f)
	s.undos = append(s.undos, f)
	s.t.Cleanup(f)
}

// mend ends the faults.
func (s *scene) mend() {
	for _, f := range s.undos {
		f()
	}
}

// at is a path beneath the restore root.
func (s *scene) at(path string) string { return filepath.Join(s.root, path) }

// target is where an output of the last run goes.
func (s *scene) target(path string) string {
	if s.chain {
		return "run-2/" + path
	}
	return path
}

// source is the file of an output.
func (s *scene) source(path string) string { return filepath.Join(s.Root, path) }

// staging is the staging directory of the running commit.
func (s *scene) staging() string {
	s.t.Helper()
	dirs, err := filepath.Glob(s.at(".spectrum06_staging_*-*"))
	must(s.t, err)
	if len(dirs) != 1 {
		s.t.Fatalf("staging directories %q", dirs)
	}
	return dirs[0]
}

// staged is where a target of the last run stands before it is moved.
func (s *scene) staged(path string) string { return filepath.Join(s.staging(), "new", s.target(path)) }

// approve runs everything up to the approval of the preview.
func (s *scene) approve() *preview.Approved {
	s.t.Helper()
	c := restore.Candidate{Chain: s.chain, Runs: restoretest.OpenRuns(s.t, s.Root, s.runDirs()...)}
	a, err := restoretest.Approve(restoretest.Plan(s.t, c, s.root), preview.Origin{})
	must(s.t, err)
	return a
}

func (s *scene) runDirs() (dirs []string) {
	for _, r := range s.runs {
		dirs = append(dirs, r.Dir)
	}
	return dirs
}

// commit enters the root and carries the approval out.
func (s *scene) commit(ctx context.Context, a *preview.Approved, progress func(string, int64)) error {
	in, _, err := action.Enter(ctx, s.root, action.Entry{Key: restoretest.JournalKey})
	if err != nil {
		return err
	}
	defer in.Leave()
	return action.Commit(ctx, in, a, action.Watch{Progress: progress})
}

// mustCommit commits and requires exactly the planned tree beside what was there.
func (s *scene) mustCommit() {
	s.t.Helper()
	before := entriesIn(s.t, s.root)
	must(s.t, s.commit(context.Background(), s.approve(), nil))
	s.checkRestored(before)
}

// checkRestored requires the tree that was there before, and beside it the outputs and the result
// artifacts and nothing else.
func (s *scene) checkRestored(before map[string]entry) {
	s.t.Helper()
	after := entriesIn(s.t, s.root)
	want := maps.Clone(s.want)
	for _, a := range restoretest.ResultArtifacts(s.chain, s.runDirs()) {
		if _, ok := after[a]; !ok {
			s.t.Errorf("no %q", a)
		}
		want[a] = after[a].content
	}
	for path, e := range after {
		old, was := before[path]
		content, mine := want[path]
		switch {
		case was:
			checkSame(s.t, path, old, e)
		case mine && e.content != content, !mine && !parentOf(path, want):
			s.t.Errorf("%q: %q", path, e)
		}
	}
	for path := range want {
		if _, ok := after[path]; !ok {
			s.t.Errorf("%q was not restored", path)
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			s.t.Errorf("%q is gone", path)
		}
	}
}

// checkSame requires what was there before to be unchanged. A directory's time tells only that
// something was put into it.
func checkSame(t testing.TB, path string, before, after entry) {
	t.Helper()
	if before.dir() {
		before.mtime, after.mtime = "", ""
	}
	if before != after {
		t.Errorf("%q was %q, is %q", path, before, after)
	}
}

func parentOf(dir string, paths map[string]string) bool {
	for p := range paths {
		if strings.HasPrefix(p, dir+"/") {
			return true
		}
	}
	return false
}

// An entry is what stands at a path: type and mode, time of modification, and
// for files and links the content.
type entry struct{ mode, mtime, content string }

func (e entry) dir() bool { return strings.HasPrefix(e.mode, "d") }

// entriesIn describes everything below a directory, and the directory as ".".
func entriesIn(t testing.TB, dir string) map[string]entry {
	t.Helper()
	entries := map[string]entry{}
	must(t, tree.Walk(dir, func(path string, n *tree.Node, err error) error {
		if err != nil {
			return err
		}
		e := entry{mode: n.FileMode().String(), mtime: time.Unix(n.Mtim.Unix()).String()}
		e.content, err = n.Content()
		entries[path] = e
		return err
	}))
	return entries
}

// failureOf returns the failure without what differs from one attempt to the next.
func failureOf(t testing.TB, err error) restore.Failure {
	t.Helper()
	got := restoretest.FailureOf(t, err)
	if ours.MatchString(got.Path) {
		got.Path = stagingDir
	}
	return got
}

// mount mounts a tmpfs beneath the root, or on it.
func (s *scene) mount(path, options string) {
	s.t.Helper()
	must(s.t, unix.Mount("tmpfs", s.at(path), "tmpfs", 0, options))
	s.undo(func() { must(s.t, unix.Unmount(s.at(path), unix.MNT_DETACH)) })
}

// census is bundletest.Census without the change time of the root: the lock of an attempt that
// then does not begin was there for a moment.
func (s *scene) census() string {
	s.t.Helper()
	own := regexp.MustCompile(`(?m)^(` + regexp.QuoteMeta(s.root) + ` .*) \{.*\}$`)
	return own.ReplaceAllString(bundletest.Census(s.t, s.root), "$1")
}
