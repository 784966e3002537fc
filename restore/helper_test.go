package restore_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
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
// path that is no path has none.
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
	project, err := pathsafe.OpenRoot(s.Root)
	must(s.t, err)
	s.t.Cleanup(func() { project.Close() })
	c := restore.Candidate{Chain: s.chain, Watch: s.watch}
	for _, dir := range s.dirs {
		run, err := verify.OpenRun(project, dir)
		must(s.t, err)
		s.t.Cleanup(func() { run.Close() })
		c.Runs = append(c.Runs, run)
	}
	return c
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
	r, err := s.plan()
	must(s.t, err)
	return r
}

// refused runs PREFLIGHT and PLAN and wants a failure that left no trace: no
// result beside the error, and nothing in the arena as much as looked at in a
// way that shows.
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
	return failureOf(s.t, err)
}

// approved is the plan with the approval of its preview.
func (s *scene) approved() *preview.Approved {
	s.t.Helper()
	r := s.mustPlan()
	p, err := preview.New(context.Background(), r, preview.Request{Origin: preview.Origin{RunDirs: s.dirs, RestoreRoot: s.root}})
	must(s.t, err)
	raw, err := p.Keep()
	must(s.t, err)
	record, err := preview.ParseRecord(raw, p.ID())
	must(s.t, err)
	said, err := statement.Parse(preview.Exactly)
	must(s.t, err)
	approval, err := record.Approve(p, said)
	must(s.t, err)
	a, err := approval.Accept(r, forgetful{})
	must(s.t, err)
	return a
}

// commit carries the restore out.
func (s *scene) commit() error {
	s.t.Helper()
	return commitApproved(s.approved())
}

func commitApproved(a *preview.Approved) error {
	in, _, err := commit.Enter(context.Background(), a.Restore().Root().Name(), commit.Entry{Key: []byte("the key of these tests, not secret")})
	if err != nil {
		return err
	}
	defer in.Leave()
	return commit.Run(context.Background(), in, a, commit.Watch{})
}

// mustRestore commits and wants exactly these files beneath the restore root,
// the result artifacts aside.
func (s *scene) mustRestore(want map[string]string) {
	s.t.Helper()
	must(s.t, s.commit())
	got := map[string]string{}
	for _, path := range files(s.t, s.root) {
		got[path] = read(s.t, s.inRoot(path))
	}
	for _, path := range s.artifacts() {
		if got[path] == "" {
			s.t.Errorf("no %q was written", path)
		}
		delete(got, path)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		s.t.Errorf("restored %q, want %q", got, want)
	}
}

// artifacts are the paths of the result artifacts.
func (s *scene) artifacts() []string {
	if !s.chain {
		return []string{restore.ManifestName, restore.ReportName}
	}
	var list []string
	for _, dir := range s.dirs {
		id := filepath.Base(dir)
		list = append(list, id+"/"+restore.ManifestName, id+"/"+restore.ReportName)
	}
	return list
}

// forgetful is a ledger for tests that approve everything once.
type forgetful struct{}

func (forgetful) Use(string) error { return nil }

// failureOf returns the failure without its text, which names directories of
// the test. Two equal ones are the same answer.
func failureOf(t testing.TB, err error) restore.Failure {
	t.Helper()
	var f *restore.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%v is not a failure of the law", err)
	}
	got := *f
	got.Err = nil
	return got
}

// wantVerdict wants that a strict verifier said this.
func wantVerdict(t testing.TB, err error, want verify.Code) {
	t.Helper()
	var reject *verify.Reject
	if !errors.As(err, &reject) || reject.Code != want {
		t.Errorf("the verifier said %v, want %s", err, want)
	}
}

// files lists the regular files below a directory, in byte order.
func files(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, rel)
		}
		return err
	}))
	slices.Sort(list)
	return list
}

func read(t testing.TB, name string) string {
	t.Helper()
	raw, err := os.ReadFile(name)
	must(t, err)
	return string(raw)
}

// mount mounts a file system until the test is over.
func mount(t testing.TB, source, target, kind string, flags uintptr, data string) {
	t.Helper()
	must(t, os.MkdirAll(target, 0o755))
	must(t, unix.Mount(source, target, kind, flags, data))
	t.Cleanup(func() { must(t, unix.Unmount(target, unix.MNT_DETACH)) })
}

// inMemory puts the directories of this test's scenes on a tmpfs.
func inMemory(t *testing.T) {
	t.Helper()
	t.Setenv("TMPDIR", harness.OpenMemoryDir(t))
}

// deadMount leaves at target what a killed FUSE server leaves.
func deadMount(t testing.TB, target string) {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	must(t, err)
	mount(t, "dead", target, "fuse", 0, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd))
	must(t, unix.Close(fd))
	if _, err := os.Stat(target); !errors.Is(err, syscall.ENOTCONN) {
		t.Fatalf("the mount is not dead: %v", err)
	}
}

const nobody = 65534

// letOthersIn opens the way to the scene's directories for everybody.
func (s *scene) letOthersIn() {
	s.t.Helper()
	for _, dir := range []string{s.Root, s.arena} {
		for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
			must(s.t, os.Chmod(dir, 0o755))
		}
	}
}

// asNobody runs f without root's power over files, in all of the process. No
// test here runs beside another.
func asNobody(t testing.TB, f func()) {
	t.Helper()
	must(t, syscall.Setresuid(-1, nobody, -1))
	defer func() { must(t, syscall.Setresuid(-1, 0, -1)) }()
	f()
}

// eachProcs runs f with one and with two processors.
func eachProcs(f func()) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for n := 1; n <= 2; n++ {
		runtime.GOMAXPROCS(n)
		f()
	}
}
