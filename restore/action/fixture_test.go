package action_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// A fixture is a restore root and a state directory of a test's own, and what enters
// the one with the other.
type fixture struct {
	t     testing.TB
	base  string
	root  string
	key   bundle.Key
	runs  int
	kill  *simulatedKill // of the current process; may be nil
	stays []error        // what was told of a halt that could not be ended
	began func()         // runs once when an action begins, before its snapshot is taken; may be nil
}

func newFixture(t testing.TB) *fixture { return fixtureIn(t, t.TempDir()) }

// fixtureIn makes a fixture in an empty directory.
func fixtureIn(t testing.TB, base string) *fixture {
	t.Helper()
	key, err := bundle.GenerateKey()
	must(t, err)
	w := &fixture{t: t, base: base, root: filepath.Join(base, "root"), key: key}
	must(t, os.Mkdir(w.root, 0o755))
	return w
}

// output is one file of a bundle.
type output struct {
	content string
	mode    os.FileMode
	time    time.Time
}

func plain(content string) output { return output{content, 0o644, time.Unix(1700000000, 5)} }

// plainly are outputs of these contents.
func plainly(contents map[string]string) map[string]output {
	all := map[string]output{}
	for path, content := range contents {
		all[path] = plain(content)
	}
	return all
}

func (w *fixture) at(path string) string { return filepath.Join(w.root, path) }

func (w *fixture) write(path, content string) {
	w.t.Helper()
	must(w.t, os.MkdirAll(filepath.Dir(w.at(path)), 0o755))
	must(w.t, os.WriteFile(w.at(path), []byte(content), 0o644))
}

func (w *fixture) mkdir(path string) { w.t.Helper(); must(w.t, os.MkdirAll(w.at(path), 0o755)) }

func (w *fixture) remove(path string) { w.t.Helper(); must(w.t, os.RemoveAll(w.at(path))) }

func (w *fixture) link(target, path string) { w.t.Helper(); must(w.t, os.Symlink(target, w.at(path))) }

func (w *fixture) fifo(path string) { w.t.Helper(); must(w.t, unix.Mkfifo(w.at(path), 0o644)) }

// state opens the state directory.
func (w *fixture) state() *statedir.Dir {
	w.t.Helper()
	state, err := statedir.Open(filepath.Join(w.base, "state"))
	must(w.t, err)
	return state
}

func (w *fixture) snapshots() *snapshot.Store {
	w.t.Helper()
	state := w.state()
	defer state.Close()
	place, err := state.Snapshots()
	must(w.t, err)
	store, err := snapshot.In(state.Root(), place)
	must(w.t, err)
	return store
}

func (w *fixture) savepoints() *savepoint.Store {
	w.t.Helper()
	state := w.state()
	defer state.Close()
	place, err := state.Savepoints()
	must(w.t, err)
	store := savepoint.In(place)
	return store
}

// log reads what is logged, and what is open.
func (w *fixture) log() (kinds []string, open int) {
	w.t.Helper()
	state := w.state()
	defer state.Close()
	f, err := state.AuditLog()
	must(w.t, err)
	log := audit.New(f)
	defer log.Close()
	head, err := log.Read(func(e audit.Entry) error {
		kinds = append(kinds, string(e.Kind))
		return nil
	})
	must(w.t, err)
	return kinds, len(head.Open)
}

// quietHalts is the state directory of a process that may be dead: then it marks no
// halts.
type quietHalts struct {
	*statedir.Dir
	w *fixture
}

func (h quietHalts) Halt(attempt string) error {
	if h.w.kill.happened() {
		return errKilled
	}
	return h.Dir.Halt(attempt)
}

// Attempt is [action.Authority].
func (h quietHalts) Attempt(root string) error {
	if did := h.w.began; did != nil {
		h.w.began = nil
		did()
	}
	return h.Dir.Attempt(root)
}

// RolledBack is [action.Authority].
func (h quietHalts) RolledBack(root string, bundleRoots []string) error {
	if h.w.kill.happened() {
		return errKilled
	}
	return h.Dir.MarkRolledBack(root, bundleRoots)
}

// inside is a root that was entered, and what has to be closed with it.
type inside struct {
	*action.Root
	state *statedir.Dir
}

func (i *inside) leave() {
	i.Leave()
	_ = i.state.Close()
}

func (w *fixture) enter() *inside {
	w.t.Helper()
	in, err := w.tryToEnter(staging.Automatic)
	must(w.t, err)
	return in
}

func (w *fixture) tryToEnter(mode staging.Mode) (*inside, error) {
	w.t.Helper()
	state := w.state()
	key, err := state.JournalKey()
	must(w.t, err)
	f, err := state.AuditLog()
	must(w.t, err)
	own := quietHalts{state, w}
	in, _, err := action.Enter(context.Background(), w.root, action.Entry{
		Key: key, Halts: own, Bars: own, Log: audit.New(f), Savepoints: w.savepoints(), Snapshots: w.snapshots(),
		Host:      func() (action.Host, error) { return action.Host{Key: w.key, BuildID: "git:x"}, nil },
		Authority: own, Mode: mode, State: state.Root(), BarStays: func(err error) { w.stays = append(w.stays, err) },
	})
	if err != nil {
		_ = state.Close()
		return nil, err
	}
	w.kill.install(in, f)
	return &inside{in, state}, nil
}

// seal makes a project with a signed run of these outputs.
func (w *fixture) seal(outputs map[string]output) (project, run string) {
	w.t.Helper()
	w.runs++
	project = filepath.Join(w.base, "project-"+strconv.Itoa(w.runs))
	must(w.t, os.Mkdir(project, 0o755))
	contents := map[string]string{}
	for path, o := range outputs {
		contents[path] = o.content
	}
	r := (&bundletest.Project{T: w.t, Root: project}).Run("run-"+strconv.Itoa(w.runs), contents)
	for path, o := range outputs {
		name := filepath.Join(project, path)
		must(w.t, os.Chmod(name, o.mode))
		must(w.t, os.Chtimes(name, o.time, o.time))
	}
	return project, r.Dir
}

// commit seals, previews, approves and commits. Its error may be that of any of it.
func (w *fixture) commit(outputs map[string]output) (attempt string, err error) {
	w.t.Helper()
	return w.commitBy(outputs, func(c restore.Candidate) (*restore.Restore, error) {
		return restore.ForRoot(context.Background(), c, w.root)
	})
}

// commitBy is commit of a restore that plan plans.
func (w *fixture) commitBy(outputs map[string]output, plan func(restore.Candidate) (*restore.Restore, error)) (attempt string, err error) {
	w.t.Helper()
	dir, runDir := w.seal(outputs)
	project, err := pathsafe.OpenRoot(dir)
	must(w.t, err)
	defer project.Close()
	run, err := verify.OpenRun(project, runDir)
	must(w.t, err)
	defer run.Close()
	r, err := plan(restore.Candidate{Runs: []*verify.Run{run}})
	if err != nil {
		return "", err
	}
	defer r.Close()
	approved, err := restoretest.Approve(r, preview.Origin{})
	if err != nil {
		return "", err
	}
	in, err := w.tryToEnter(staging.Automatic)
	must(w.t, err)
	defer in.leave()
	err = action.Commit(context.Background(), in.Root, approved, action.Watch{})
	return in.Commit(), err
}

func (w *fixture) mustCommit(contents map[string]string) string {
	w.t.Helper()
	attempt, err := w.commit(plainly(contents))
	must(w.t, err)
	return attempt
}

// chain are the ids of the commits that can be undone, the oldest first.
func (w *fixture) chain() []string {
	w.t.Helper()
	store := w.savepoints()
	defer store.Close()
	all, err := store.List(w.root)
	must(w.t, err)
	ids := []string{}
	for _, sp := range all {
		ids = append(ids, sp.Attempt())
	}
	must(w.t, store.VerifyChain(w.root, ""))
	waiting, err := store.Pending(w.root)
	must(w.t, err)
	if len(waiting) > 0 {
		w.t.Errorf("prepared, and no commit runs: %q", waiting)
	}
	return ids
}

var errKilled = errors.New("the process was killed")

func unixTime(sec int64) time.Time { return time.Unix(sec, 123) }
