package restore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// A scene is a candidate and a restore root. Whatever a refusal must not touch
// lies in arena.
type scene struct {
	*bundletest.Project
	t     testing.TB
	runs  []*bundletest.Run
	dirs  []string // the candidate's run directories, as they are given
	chain bool
	arena string
	root  string // the restore root, as it is given
	watch verify.Watch

	outputs int // of all runs
}

// newScene makes a candidate of one run for each list of outputs, and an empty
// restore root.
func newScene(t testing.TB, chain bool, outputs ...map[string]string) *scene {
	t.Helper()
	s := &scene{Project: bundletest.New(t), t: t, chain: chain, arena: t.TempDir()}
	s.root = filepath.Join(s.arena, "root")
	must(t, os.Mkdir(s.root, 0o755))
	for i, o := range outputs {
		s.add(fmt.Sprintf("run-%d", i+1), o)
	}
	return s
}

// The outputs of ordinary runs.
var (
	oneRun     = map[string]string{"out/a.txt": "alpha\n", "out/b.txt": "beta\n", "top.txt": "top\n"}
	anotherRun = map[string]string{"gen/c.txt": "gamma\n"}
)

// modes are the ways in which the same fault comes to a restore.
var modes = []struct {
	name string
	make func(t testing.TB) *scene
}{
	{"single", func(t testing.TB) *scene { return newScene(t, false, oneRun) }},
	{"chain of one", func(t testing.TB) *scene { return newScene(t, true, oneRun) }},
	{"chain", func(t testing.TB) *scene { return newScene(t, true, anotherRun, oneRun) }},
}

// only is a scene of one run with this output, whose source does not exist: a
// path that is not a path has none.
func only(t testing.TB, chain bool, path string) *scene {
	s := newScene(t, chain, map[string]string{"plain": "x"})
	s.last().EditHashes(func(h map[string]any) {
		delete(h, "plain")
		h[path] = bundletest.Hash("x")
	})
	return s
}

func (s *scene) add(id string, outputs map[string]string) *bundletest.Run {
	s.t.Helper()
	r := s.Run(id, outputs)
	s.runs, s.dirs = append(s.runs, r), append(s.dirs, r.Dir)
	s.outputs += len(outputs)
	return r
}

// last is the run that cases break: the last one, so that a chain has good
// ones before it.
func (s *scene) last() *bundletest.Run { return s.runs[len(s.runs)-1] }

// afterHashing does something between verification and PLAN: when the last
// output of the candidate has been hashed.
func (s *scene) afterHashing(do func()) {
	n := 0
	s.watch.Hashed = func(int64) {
		if n++; n == s.outputs {
			do()
		}
	}
}

func (s *scene) lastID() string { return filepath.Base(s.dirs[len(s.dirs)-1]) }

// inRoot is a path beneath the restore root.
func (s *scene) inRoot(path string) string { return filepath.Join(s.root, path) }

// inProject is a path beneath the project root.
func (s *scene) inProject(path string) string { return filepath.Join(s.Root, path) }

// put makes a file beneath the restore root.
func (s *scene) put(path string) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(s.inRoot(path)), 0o755))
	must(s.t, os.WriteFile(s.inRoot(path), []byte("was here before"), 0o644))
}

// link makes a symbolic link beneath the restore root.
func (s *scene) link(target, path string) {
	s.t.Helper()
	must(s.t, os.MkdirAll(filepath.Dir(s.inRoot(path)), 0o755))
	must(s.t, os.Symlink(target, s.inRoot(path)))
}

// replace puts something else in the place of a file of the project.
func (s *scene) replace(path string, with func(name string) error) {
	s.t.Helper()
	must(s.t, os.RemoveAll(s.inProject(path)))
	must(s.t, with(s.inProject(path)))
}

// candidate opens the runs, until the test is over.
func (s *scene) candidate() restore.Candidate {
	s.t.Helper()
	return restore.Candidate{Chain: s.chain, Watch: s.watch, Runs: restoretest.OpenRuns(s.t, s.Root, s.dirs...)}
}

// plan runs PREFLIGHT and PLAN.
func (s *scene) plan() (*restore.Restore, error) {
	s.t.Helper()
	r, err := restore.ForRoot(context.Background(), s.candidate(), s.root)
	if r != nil {
		s.t.Cleanup(func() { r.Close() })
	}
	return r, err
}

// mustPlan is plan for what has to pass.
func (s *scene) mustPlan() *restore.Restore {
	s.t.Helper()
	return restoretest.Plan(s.t, s.candidate(), s.root)
}

// refused runs PREFLIGHT and PLAN and requires a failure that left no trace: no result beside the
// error, and nothing in the arena as much as looked at in a way that shows.
func (s *scene) refused() restore.Failure {
	s.t.Helper()
	before := bundletest.Census(s.t, s.arena)
	r, err := s.plan()
	if r != nil {
		s.t.Error("there is a Restore beside the error")
	}
	if everyRefusal != nil {
		everyRefusal(s, err)
	}
	if after := bundletest.Census(s.t, s.arena); after != before {
		s.t.Errorf("the refusal left a trace:\nbefore\n%s\nafter\n%s", before, after)
	}
	return restoretest.FailureOf(s.t, err)
}

// approved is the plan with the approval of its preview.
func (s *scene) approved() *preview.Approved {
	s.t.Helper()
	a, err := restoretest.Approve(s.mustPlan(), preview.Origin{RunDirs: s.dirs, RestoreRoot: s.root})
	must(s.t, err)
	return a
}

// commit carries the restore out.
func (s *scene) commit() error {
	s.t.Helper()
	return commitApproved(s.approved())
}

func commitApproved(a *preview.Approved) error {
	in, _, err := action.Enter(context.Background(), a.Restore().Root().Name(), action.Entry{Key: restoretest.JournalKey})
	if err != nil {
		return err
	}
	defer in.Leave()
	return action.Commit(context.Background(), in, a, action.Watch{})
}

// mustRestore commits and requires exactly these files beneath the restore root, the result
// artifacts aside.
func (s *scene) mustRestore(want map[string]string) {
	s.t.Helper()
	must(s.t, s.commit())
	got := harness.FilesIn(s.t, s.root)
	for _, path := range restoretest.ResultArtifacts(s.chain, s.dirs) {
		if got[path] == "" {
			s.t.Errorf("no %q was written", path)
		}
		delete(got, path)
	}
	if !maps.Equal(got, want) {
		s.t.Errorf("restored %q, want %q", got, want)
	}
}

// wantVerdict requires this verdict of a strict verifier.
func wantVerdict(t testing.TB, err error, want verify.Code) {
	t.Helper()
	var reject *verify.Reject
	if !errors.As(err, &reject) || reject.Code != want {
		t.Errorf("the verifier said %v, want %s", err, want)
	}
}

// letOthersIn opens the way to the scene's directories for all users.
func (s *scene) letOthersIn() {
	s.t.Helper()
	harness.LetOthersIn(s.t, s.Root)
	harness.LetOthersIn(s.t, s.arena)
}

// eachProcs runs f with one and with two processors.
func eachProcs(f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for n := 1; n <= 2; n++ {
		runtime.GOMAXPROCS(n)
		f()
	}
}
