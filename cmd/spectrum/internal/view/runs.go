package view

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
)

// Runs is the view of a runs directory: each run that is there is a
// directory of the view, and is verified when somebody first enters it.
type Runs struct {
	RunsOptions
	dir     string        // absolute, as it was given; from then on its handle counts
	runs    *pathsafe.Dir // the directory
	real    string        // its path when it was opened
	status  *status
	queues  queues
	ended   chan struct{} // closed when no verdict is needed any more
	working sync.WaitGroup

	mu     sync.Mutex
	looked map[string]*run // the runs that somebody looked up
	moved  sync.Once       // for the log
}

var _ fusefs.Shelf = (*Runs)(nil)

// RunsOptions are what a view of a runs directory needs beside it.
type RunsOptions struct {
	Project     *pathsafe.Dir // the project root; the caller closes it, after the view
	ProjectRoot string        // its path
	Marks       Marks
	Log         *slog.Logger

	// Rejected returns REJECTED.json for an error that is a verdict on a run.
	Rejected func(error) (text []byte, isVerdict bool)
}

// OpenRuns opens a runs directory, of which the path is absolute.
func OpenRuns(dir string, opts RunsOptions) (*Runs, error) {
	v := &Runs{
		RunsOptions: opts, dir: dir, status: newStatus(opts.Marks),
		ended: make(chan struct{}), looked: make(map[string]*run),
	}
	v.status.runs, v.status.moved, v.status.shown = v.states, v.hasMoved, v.accepted
	if err := v.openRuns(); err != nil {
		return nil, err
	}
	return v, nil
}

// openRuns opens the runs directory, once: whoever can exchange it later does not get
// anything of another directory shown.
func (v *Runs) openRuns() (err error) {
	if v.runs, err = pathsafe.OpenRoot(v.dir); err == nil {
		v.real, err = v.runs.RealPath()
	}
	if err == nil {
		_, err = v.Names()
	}
	if err == nil {
		return nil
	}
	if v.runs != nil {
		v.runs.Close()
	}
	if errno := syscall.Errno(0); errors.As(err, &errno) {
		err = errno // the path is named already
	}
	return fmt.Errorf("runs directory %q: %w", v.dir, err)
}

// hasMoved reports whether the path of the runs directory leads to another one now, or
// nowhere. The view stays with the one that it was mounted with.
func (v *Runs) hasMoved() bool {
	real, err := v.runs.RealPath()
	return err != nil || real != v.real
}

// Close ends what is still verified.
func (v *Runs) Close() {
	close(v.ended)
	v.working.Wait()
	v.runs.Close()
}

// Mount mounts the view. Runs are verified when somebody enters them.
func (v *Runs) Mount(mountpoint string, opts fusemount.Options) (*fusemount.View, error) {
	tree, err := fusefs.NewTree(func(func(fusefs.File) bool) {}, slices.Values([]fusefs.File{
		v.guarded(StatusFile, v.status.json), v.guarded(shownFile, v.status.shownJSON),
	}))
	if err != nil {
		return nil, err
	}
	v.status.watch(&opts)
	opts.Shelf = v
	return fusemount.Mount(tree, mountpoint, opts)
}

// guarded is a file with metadata of every run that was entered: it is for those
// who may read all of them.
func (v *Runs) guarded(name string, content fusefs.Live) fusefs.File {
	return fusefs.File{
		Path: name, Mode: 0o444, ModTime: v.status.since, Source: fusefs.GuardedLive{Live: content, Perm: v.readers},
	}
}

// readers is who may read every run that was entered, and the list of them.
func (v *Runs) readers() fs.FileMode {
	v.mu.Lock()
	runs := slices.Collect(maps.Values(v.looked))
	v.mu.Unlock()
	perm := readable(v.Perm())
	for _, r := range runs {
		perm &= r.readers()
	}
	return perm
}

// Names lists the runs that are there now.
func (v *Runs) Names() ([]string, error) {
	if v.hasMoved() {
		v.moved.Do(func() {
			v.Log.Warn("the runs directory was moved or replaced: the view stays with the one that it was mounted with; mount again for the other", "runs directory", v.dir)
		})
	}
	all, err := v.runs.Names()
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // one that was removed has none
		return nil, err
	}
	return slices.DeleteFunc(all, func(name string) bool { return !v.isRun(name) }), nil
}

// isRun reports whether a run of this name is there now.
func (v *Runs) isRun(name string) bool {
	if !isRunName(name) {
		return false
	}
	st, err := v.runs.Lstat(name)
	return err == nil && st.Mode.IsDir()
}

// isRunName leaves out what the view has names for itself, and hidden
// directories, such as a run that is being sealed.
func isRunName(name string) bool {
	return !strings.HasPrefix(name, ".") && name != fusefs.LatestName
}

// Find gives the run of a name, if it is there now.
func (v *Runs) Find(name string) fusefs.Volume {
	if !v.isRun(name) {
		return nil
	}
	return v.run(name)
}

func (v *Runs) run(name string) *run {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := v.looked[name]
	if r == nil {
		r = &run{view: v, name: name, path: filepath.Join(v.dir, name), free: make(chan struct{}, 1), isLong: make(chan struct{})}
		v.looked[name] = r
	}
	return r
}

// ModTime is that of the runs directory.
func (v *Runs) ModTime() time.Time {
	st, err := v.runs.Stat()
	if err != nil {
		return time.Time{}
	}
	return st.ModTime
}

// Perm is what the runs directory and the project root grant.
func (v *Runs) Perm() fs.FileMode {
	perm, err := v.Project.Granted()
	if err != nil {
		return 0
	}
	return fs.FileMode(perm) & granted(v.runs) &^ machine.Umask()
}

// granted is what a directory grants now: nothing, if that cannot be found out.
func granted(dir *pathsafe.Dir) fs.FileMode {
	perm, err := dir.Granted()
	if err != nil {
		return 0
	}
	return fs.FileMode(perm)
}

// Latest gives the accepted run that was completed last. When it was completed
// a run itself says, so they are verified from the last one on until one is
// accepted: what it says is signed then. If that is not what it said before, the
// order was another one. A run that takes long is passed over until there is a verdict.
func (v *Runs) Latest(done <-chan struct{}) string {
	for {
		c, ok := v.newest(done)
		if !ok {
			return ""
		}
		if signed := v.claimOf(c.name); signed.completed.Equal(c.completed) {
			return c.name
		}
	}
}

// newest gives the first run that is accepted in the order of their claims.
func (v *Runs) newest(done <-chan struct{}) (claim, bool) {
	names, err := v.Names()
	if err != nil {
		return claim{}, false
	}
	claims := make([]claim, 0, len(names))
	for _, name := range names {
		claims = append(claims, v.claimOf(name))
	}
	slices.SortFunc(claims, func(a, b claim) int {
		if a.completed.Equal(b.completed) {
			return strings.Compare(b.name, a.name)
		}
		return b.completed.Compare(a.completed)
	})
	for _, c := range claims {
		run := v.run(c.name)
		if run.settledSoon(done) && !run.Spoiled() && run.isAccepted() {
			return c, true
		}
	}
	return claim{}, false
}

// claim is when a run says that it was completed.
type claim struct {
	name      string
	completed time.Time
}

// claimOf gives a run's claim: the signed one when the run is accepted. One that
// says nothing comes after all others.
func (v *Runs) claimOf(name string) claim {
	if completed, ok := v.signedCompletion(name); ok {
		return claim{name, completed}
	}
	run := verify.RunOf(v.Project, v.runs, name)
	defer run.Close()
	completed, _ := run.ClaimedCompletion()
	return claim{name, completed}
}

// signedCompletion is when an accepted run was completed.
func (v *Runs) signedCompletion(name string) (time.Time, bool) {
	v.mu.Lock()
	run := v.looked[name]
	v.mu.Unlock()
	if run == nil {
		return time.Time{}, false
	}
	return run.completed()
}

// states is what status.json says of the runs that somebody has looked up.
func (v *Runs) states() map[string]any {
	v.mu.Lock()
	runs := maps.Clone(v.looked)
	v.mu.Unlock() // a look at the artifacts may take its time
	states := make(map[string]any, len(runs))
	for name, r := range runs {
		if _, err := v.runs.Lstat(name); errors.Is(err, fs.ErrNotExist) && r.state() == runUnverified {
			continue
		}
		states[runKey(name)] = r.record()
	}
	return states
}

// accepted gives the bundle roots of the runs that are shown, in no order.
func (v *Runs) accepted() (roots []string) {
	v.mu.Lock()
	runs := slices.Collect(maps.Values(v.looked))
	v.mu.Unlock()
	for _, r := range runs {
		roots = append(roots, r.bundleRoots()...)
	}
	return roots
}

// runKey is the name of a run in status.json: quoted where JSON could not hold
// it, so that no two runs have the same.
func runKey(name string) string {
	if utf8.ValidString(name) && !strings.HasPrefix(name, `"`) {
		return name
	}
	return strconv.Quote(name)
}
