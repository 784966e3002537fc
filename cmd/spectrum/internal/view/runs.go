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
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
)

// Runs is the view of a runs directory: each run is a directory of the view, and is verified when
// it is first entered.
type Runs struct {
	RunsOptions
	dir     string        // absolute, as it was given; after opening, its handle counts
	runs    *pathsafe.Dir // the directory
	real    string        // its path when it was opened
	status  *status
	queues  queues
	blocks  *blocktable.Cache // of all runs, if the view is lazy
	wholes  *blockhash.Cache  // the same for runs without a block table
	ended   chan struct{}     // closed when no verdict is needed any more
	working sync.WaitGroup

	mu     sync.Mutex
	looked map[string]*run // the runs that were looked up
	moved  sync.Once       // for the log
}

var _ fusefs.VolumeSet = (*Runs)(nil)

// RunsOptions are what a view of a runs directory needs beside it.
type RunsOptions struct {
	Project     *pathsafe.Dir // the project root; the caller closes it, after the view
	ProjectRoot string        // its path
	Marks       Marks
	Log         *slog.Logger
	Lazy        bool // each block is checked when it is read, and only what is signed before

	// Rejected returns REJECTED.json for an error that is a verdict on a run.
	Rejected func(error) (text []byte, isVerdict bool)
}

// OpenRuns opens a runs directory, of which the path is absolute.
func OpenRuns(dir string, opts RunsOptions) (*Runs, error) {
	v := &Runs{
		RunsOptions: opts, dir: dir, status: newStatus(opts.Marks),
		ended: make(chan struct{}), looked: make(map[string]*run),
		blocks: blocktable.NewCache(lazyCache), wholes: blockhash.NewCache(blockCache),
	}
	v.status.runs, v.status.moved, v.status.shown = v.states, v.hasMoved, v.accepted
	if err := v.openRuns(); err != nil {
		return nil, err
	}
	return v, nil
}

// openRuns opens the runs directory, once: a process that exchanges it later cannot have another
// directory shown.
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

// Mount mounts the view. Runs are verified when they are first entered.
func (v *Runs) Mount(mountpoint string, opts fusemount.Options) (*fusemount.View, error) {
	tree, err := fusefs.NewTree(func(func(fusefs.File) bool) {}, slices.Values([]fusefs.File{
		v.guarded(StatusFile, v.status.json), v.guarded(shownFile, v.status.shownJSON),
	}))
	if err != nil {
		return nil, err
	}
	v.status.watch(&opts)
	opts.VolumeSet, opts.Unsized = v, v.Lazy
	return fusemount.Mount(tree, mountpoint, opts)
}

// guarded is a file with metadata of every entered run: only users that may read all of them can
// read it.
func (v *Runs) guarded(name string, content fusefs.Live) fusefs.File {
	return fusefs.File{
		Path: name, Mode: 0o444, ModTime: v.status.since, Source: fusefs.GuardedLive{Live: content, Perm: v.readers},
	}
}

// readers returns which users may read every entered run, and the list of the runs.
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
			v.Log.Warn("the runs directory was moved or replaced; the view still shows the original; mount again to show the new one", "runs directory", v.dir)
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

// Find returns the run of a name, if it exists now.
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

// Latest returns the accepted run that was completed last. The completion time is the run's own
// claim, so runs are verified from the last one on until one is accepted: its claim is signed then.
// If that differs from the claim before, the order is updated. A run that takes long is skipped
// until it is verified.
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

// newest returns the first accepted run in the order of their claims.
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

// claim is the completion time that a run states.
type claim struct {
	name      string
	completed time.Time
}

// claimOf returns a run's claim: the signed one if the run is accepted. A run without a claim comes
// last.
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

// states are the entries of the runs in status.json that were looked up.
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

// accepted returns the bundle roots of the shown runs, in no order.
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
