package view

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// rejectedFile is all that the directory of a rejected run holds.
const rejectedFile = "REJECTED.json"

// runState is how far a run has got in a view of many.
type runState string

const (
	runUnverified runState = "unverified"
	runVerifying  runState = "verifying"
	runAccepted   runState = "accepted"
	runAttested   runState = "attested" // in a lazy view, in the place of accepted
	runRejected   runState = "rejected"
	runChanged    runState = "changed" // it was accepted, but its artifacts are others now
)

// run is one run of a [Runs]. There is one verdict on it as long as
// the view lives.
type run struct {
	view *Runs
	name string
	path string
	free chan struct{} // holds a token while a verification runs

	mu        sync.Mutex
	now       runState // "" is unverified
	tree      *fusefs.Tree
	shown     *shownRun // of an accepted run
	rejection []byte
	allowed   fs.FileMode // which users may read all of it, with tree
	looked    time.Time   // when its artifacts were last found to be intact

	size       atomic.Int64  // bytes of its outputs, the most that were ever listed
	isLong     chan struct{} // closed when they are more than "latest" waits for
	longOnce   sync.Once
	background chan struct{} // closed when a verification without a reader ends; nil for none
}

var _ fusefs.Volume = (*run)(nil)

// shownRun is what an accepted run shows.
type shownRun struct {
	scene *Scene
	lazy  *Lazy // nil if the run was read as a whole
}

func (s *shownRun) state() runState {
	if s.lazy != nil {
		return runAttested
	}
	return runAccepted
}

// ModTime is that of the run directory.
func (r *run) ModTime() time.Time {
	st, err := r.view.runs.Lstat(r.name)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime
}

// Perm is what the run directory grants, and what all of the view does.
func (r *run) Perm() fs.FileMode {
	dir, err := r.view.runs.OpenDirAcross(r.name)
	if err != nil {
		return 0
	}
	defer dir.Close()
	return r.view.Perm() & granted(dir)
}

// readers returns which users may read all of a run, once it is verified: before that only its name
// is shown.
func (r *run) readers() fs.FileMode {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tree == nil {
		return 0o444
	}
	return r.allowed
}

func (r *run) state() runState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == "" {
		return runUnverified
	}
	return r.now
}

func (r *run) isAccepted() bool { return isAccepted(r.state()) }

func isAccepted(state runState) bool { return state == runAccepted || state == runAttested }

// Tree returns the tree of the run's directory: that of a view of the run alone, or the reason why
// there is none.
func (r *run) Tree(done <-chan struct{}) (*fusefs.Tree, error) {
	select {
	case r.free <- struct{}{}:
		defer func() { <-r.free }()
	case <-done:
		return nil, context.Canceled
	}
	if tree := r.known(); tree != nil {
		return tree, nil
	}
	for {
		bytes := r.size.Load()
		in := r.view.queues.of(bytes)
		if !in.enter(bytes, done) {
			return nil, context.Canceled
		}
		tree, err := r.settle(done, in)
		in.leave()
		if !errors.Is(err, errOtherQueue) {
			return tree, err
		}
	}
}

// settledSoon reports whether the run is verified. It waits for that, unless the run is a long one.
// The verification continues when readers stop waiting.
func (r *run) settledSoon(done <-chan struct{}) bool {
	if r.known() != nil {
		return true
	}
	select {
	case <-r.goOn():
	case <-r.isLong:
	case <-done:
	}
	return r.known() != nil
}

// goOn verifies the run for as long as the view lives. The channel is closed at the end.
func (r *run) goOn() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.background != nil {
		return r.background
	}
	ended := make(chan struct{})
	r.background = ended
	r.view.working.Go(func() {
		_, _ = r.Tree(r.view.ended)
		r.mu.Lock()
		r.background = nil
		r.mu.Unlock()
		close(ended)
	})
	return ended
}

// errOtherQueue means that a run is larger than those that are verified where it was begun.
var errOtherQueue = errors.New("the run is larger than it was")

// listed records the size of a run before it is hashed, and ends its verification if it belongs
// into another queue: it releases its resources while it waits.
func (r *run) listed(bytes int64, in *queue, end context.CancelCauseFunc) {
	if bytes > r.size.Load() {
		r.size.Store(bytes)
	}
	if bytes > longRun {
		r.longOnce.Do(func() { close(r.isLong) })
	}
	if r.view.queues.of(r.size.Load()) != in {
		end(errOtherQueue)
	}
}

func (r *run) known() *fusefs.Tree {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tree
}

// settle verifies the run. An error means that there is no verdict.
func (r *run) settle(done <-chan struct{}, in *queue) (*fusefs.Tree, error) {
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	go func() {
		select {
		case <-done:
			end(nil)
		case <-ctx.Done():
		}
	}()
	r.set(runVerifying, nil, nil)
	shown, tree, err := r.verify(ctx, func(_ int, bytes int64) { r.listed(bytes, in, end) })
	if cause := context.Cause(ctx); errors.Is(cause, errOtherQueue) {
		return nil, cause
	}
	reason, isVerdict := r.view.Rejected(err)
	switch {
	case err == nil:
		for b := range shown.scene.Bundles() {
			if preview.IsRenamed(b) {
				r.view.Log.Warn("the name of a directory is not signed", "run", r.name, "task_id", b.TaskID())
			}
		}
		r.set(shown.state(), tree, shown)
		return tree, nil
	case !isVerdict || ctx.Err() != nil:
		r.set(runUnverified, nil, nil)
		return nil, err
	}
	r.view.Log.Warn("a run was rejected", "run", r.name, "error", err)
	return r.reject(reason)
}

func (r *run) set(state runState, tree *fusefs.Tree, shown *shownRun) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now, r.tree, r.shown, r.looked = state, tree, shown, time.Now()
	if tree != nil {
		r.allowed = readable(r.Perm())
	}
	if shown != nil {
		r.allowed &= shown.scene.privatePerm()
	}
}

// verify plans the run as a view of it alone would.
func (r *run) verify(ctx context.Context, listed func(files int, bytes int64)) (*shownRun, *fusefs.Tree, error) {
	run := verify.RunOf(r.view.Project, r.view.runs, r.name)
	defer run.Close()
	candidate := restore.Candidate{Runs: []*verify.Run{run}, Watch: verify.Watch{Reread: true, Listed: listed}}
	shown, files, err := r.view.show(ctx, candidate)
	if err != nil {
		return nil, nil, err
	}
	origin := preview.Origin{ProjectRoot: r.view.ProjectRoot, RunDirs: []string{r.path}}
	above := func(string) fs.FileMode { return granted(r.view.runs) }
	control := candidateFiles(origin, shown.scene, shown.lazy != nil, r.view.status.since, above)
	tree, err := treeOf(shown.scene, files, control, r.Perm())
	return shown, tree, err
}

// show verifies a candidate, or in a lazy view only what is signed, and lists its files.
func (v *Runs) show(ctx context.Context, c restore.Candidate) (*shownRun, iter.Seq[fusefs.File], error) {
	if v.Lazy {
		attested, err := restore.ForLazyView(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		lazy := newLazy(attested, ProjectOutputs{}, v.blocks, v.wholes)
		return &shownRun{lazy.scene, lazy}, lazy.Files(), nil
	}
	plan, err := restore.ForView(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	return &shownRun{SceneOf(plan), nil}, Files(plan), nil
}

// reject shows the verdict, and nothing else.
func (r *run) reject(reason []byte) (*fusefs.Tree, error) {
	granted := r.Perm()
	shown := append(visible.AppendJSON(nil, bytes.TrimSuffix(reason, []byte("\n"))), '\n')
	files := []fusefs.File{directoryFile("", granted), heldFile(rejectedFile, string(shown), readable(granted), time.Now())}
	tree, err := fusefs.NewTree(slices.Values(files), nil)
	if err != nil {
		return nil, err
	}
	r.set(runRejected, tree, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rejection = reason
	return tree, nil
}

// lookAgainAfter is how long a run's artifacts count as intact without a look.
const lookAgainAfter = time.Second

// Spoiled reports whether the artifacts of an accepted run have changed. The run is not verified
// again: a new mount is required. If the check fails it reports false: every read is checked
// anyway.
func (r *run) Spoiled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isAccepted(r.now) || time.Since(r.looked) < lookAgainAfter {
		return r.now == runChanged
	}
	r.looked = time.Now()
	for b := range r.shown.scene.Bundles() {
		if err := b.ArtifactsIntact(); err != nil && !verify.IsMachineFault(err) {
			r.view.Log.Error("a run changed after it was verified and is no longer read", "run", r.name, "task_id", b.TaskID(), "error", err)
			r.now = runChanged
		}
	}
	return r.now == runChanged
}

// completed is when the run was completed, if it is accepted.
func (r *run) completed() (completed time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !isAccepted(r.now) {
		return time.Time{}, false
	}
	for b := range r.shown.scene.Bundles() {
		completed = b.Completed()
	}
	return completed, true
}

// bundleRoots is the one of the run's bundle, once it was accepted.
func (r *run) bundleRoots() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shown == nil {
		return nil
	}
	return r.shown.scene.BundleRoots()
}

// record is the entry of the run in status.json.
func (r *run) record() map[string]any {
	r.Spoiled() // so that a change is reported even without readers
	state := r.state()
	r.mu.Lock()
	defer r.mu.Unlock()
	record := map[string]any{"state": string(state)}
	if r.shown != nil {
		record["files"], record["bytes"] = r.shown.scene.Files(), r.shown.scene.Bytes()
		for b := range r.shown.scene.Bundles() {
			record["task_id"], record["bundle_root"], record["rolled_back"] = b.TaskID(), b.Root(), r.view.status.marks.have(b.Root())
		}
		if r.shown.lazy != nil {
			record["attested"] = r.shown.lazy.record()
		}
	}
	if value, err := canonjson.Parse(r.rejection); err == nil {
		object, _ := value.Object()
		code, _ := object.Get("code")
		record["code"], _ = code.Text()
	}
	return record
}
