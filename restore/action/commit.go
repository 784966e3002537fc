package action

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"golang.org/x/sys/unix"
)

// Watch has the callbacks of a commit. Its functions may be nil.
type Watch struct {
	// Progress receives each phase's name and how many more bytes of it are done.
	Progress func(phase string, bytes int64)
	// Leftover receives the name of a staging directory that could not be removed
	// though the restore is complete, and why. The next one to enter the root
	// removes it.
	Leftover func(name string, err error)
	// Reason is why, in the operator's words, for the audit log; "" for none.
	Reason string
	// LeftOut receives what a replaced file had and the file in its place was not given, once the
	// restore is complete.
	LeftOut func(staging.LeftOut)
	// Kept is called for a replaced file that stays in the root, since another process has
	// written to it, or has it open for writing; for an undone commit also for a file at whose
	// name another process has put a newer entry.
	Kept func(staging.Kept)
}

// Commit carries an approved restore out in the root that was entered for it. nil
// means that everything, both artifacts of every bundle included, is in place
// and durable. The error is a [*restore.Failure]; unless its code is
// [restore.RollbackFailed] the restore root is as it was.
func Commit(ctx context.Context, in *Root, approved *preview.Approved, watch Watch) error {
	if !approved.Take() {
		return restore.Internal(restore.Execute, errors.New("no approval, or it was already used"))
	}
	r := approved.Restore()
	if err := r.Blocked(); err != nil {
		return err
	}
	if err := in.check(r.Root()); err != nil {
		phase := restore.Preflight
		if in.isHeld() {
			phase = restore.Execute
		}
		return restore.Internal(phase, err)
	}
	change, err := changeOf(r)
	if err != nil {
		return restore.Internal(restore.Execute, err)
	}
	if err := room(r, &change, in.entry.State); err != nil {
		return restore.Internal(restore.Execute, err)
	}
	change.Progress = watch.Progress
	rec := &commitRecord{preview: approved.PreviewID(), reason: watch.Reason}
	if rec.draft, err = draftOf(approved); err != nil {
		return restore.Internal(restore.Execute, err)
	}
	if rec.scope, err = scopeOf(in.dir, &change); err != nil {
		return restore.Internal(restore.Execute, err)
	}
	rec.replaces, rec.gone = targetsOf(r), goneOf(r)
	if err := in.commit(ctx, change, rec, watch); err != nil {
		var e *staging.Error
		if errors.As(err, &e) {
			watch.kept(e.Kept)
		}
		in.halt(err)
		return in.history.failed(rec.failureOf(err), err)
	}
	return nil
}

// commit carries out a change. Its beginning and its end are recorded, whatever the outcome;
// the savepoint is published while the journal exists.
func (r *Root) commit(ctx context.Context, change staging.Change, rec *commitRecord, watch Watch) (err error) {
	if err := r.copyUpReplaced(ctx, &change, rec); err != nil {
		return err
	}
	tx, err := r.lock.PlanLocked(ctx, change)
	if err != nil {
		return err
	}
	defer tx.Abort(&err)
	if err := r.history.beginCommit(tx.Attempt(), rec); err != nil {
		r.lock.Yield() // nothing was written
		return err
	}
	if err := tx.Begin(); err != nil {
		return err
	}
	if err := tx.Stage(ctx, nil); err != nil {
		return err
	}
	if err := tx.Move(ctx); err != nil {
		return err
	}
	if err := r.verifyIdentical(ctx, rec); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	left := r.history.endCommit(tx.Attempt())
	if left == nil {
		left = tx.Close()
	}
	if left != nil && watch.Leftover != nil {
		watch.Leftover(tx.Staging(), left)
	}
	for _, l := range tx.LeftOut() {
		if watch.LeftOut != nil {
			watch.LeftOut(l)
		}
	}
	watch.kept(tx.Kept())
	return nil
}

func (w *Watch) kept(all []staging.Kept) {
	for _, k := range all {
		if w.Kept != nil {
			w.Kept(k)
		}
	}
}

// changeOf describes the plan as a change of the restore root.
func changeOf(r *restore.Restore) (staging.Change, error) {
	change := staging.Change{Kind: staging.KindCommit, Swaps: make([]staging.Swap, 0, r.Plan().Files())}
	var artifacts []staging.Swap
	rank := 0
	for run := range r.Plan().Runs() {
		made, err := addRun(&change, r, run, rank)
		if err != nil {
			return staging.Change{}, err
		}
		artifacts = append(artifacts, made...)
		rank++
	}
	slices.SortFunc(change.Swaps, func(a, b staging.Swap) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	for _, path := range r.Plan().Removes() {
		if there := r.Target(path.String()); there != nil { // else it is gone already
			change.Swaps = append(change.Swaps, staging.Swap{Path: path, Old: oldOf(there)})
		}
	}
	change.Swaps = append(change.Swaps, artifacts...)
	perms := map[string]uint32{}
	for _, d := range r.Plan().Dirs() {
		perms[d.Path] = uint32(d.Perm)
	}
	change.DirPerm = func(path pathsafe.Path) uint32 { return perms[path.String()] }
	var err error
	if r.Plan().IsChain() {
		change.Manifest, err = chainManifest(r.Plan())
	}
	return change, err
}

// addRun adds one bundle's files, and returns its artifacts. Its rank is its place in the
// chain: the outer order of failures is that of the chain (section 8.4.2).
func addRun(change *staging.Change, r *restore.Restore, run *restore.Run, rank int) (artifacts []staging.Swap, err error) {
	if dir := run.Dir(); dir != "" {
		path, err := pathsafe.Parse(dir)
		if err != nil {
			return nil, err
		}
		change.Absent = append(change.Absent, path)
	}
	for o := range run.Bundle().Outputs() {
		path, err := pathsafe.Parse(run.Target(o.Path().String()))
		if err != nil {
			return nil, err
		}
		there := r.Target(path.String())
		if there != nil && there.Identical { // verifyIdentical reads it
			continue
		}
		file, err := fileOf(path, o, run.Perm(o), rank)
		if err != nil {
			return nil, err
		}
		change.Swaps = append(change.Swaps, staging.Swap{Path: path, Old: oldOf(there), New: file})
	}
	for _, a := range run.Artifacts() {
		path, err := pathsafe.Parse(a.Path)
		if err != nil {
			return nil, err
		}
		artifacts = append(artifacts, staging.Swap{Path: path, Old: oldOf(r.Target(a.Path)), New: &staging.Artifact{Data: []byte(a.Data), Perm: uint32(a.Perm)}})
	}
	return artifacts, nil
}

// fileOf describes one output. That a copy has the signed size is for staging
// to see; it is right when every block of it checks.
func fileOf(path pathsafe.Path, o verify.Output, perm fs.FileMode, rank int) (*staging.File, error) {
	f := &staging.File{
		Size: o.Size(), Perm: uint32(perm), ModTime: o.ModTime(), Rank: rank,
		Open: func(near *pathsafe.Opener) (staging.Source, error) {
			src, err := o.OpenNear(near)
			if err != nil {
				return nil, exchangedSource(err)
			}
			return src, nil
		},
		Check: func(ctx context.Context, copied io.ReaderAt) error { return o.Check(copied).Check(ctx) },
	}
	text, _ := strings.CutPrefix(o.Hash(), "sha256:")
	if n, err := hex.Decode(f.SHA256[:], []byte(text)); err != nil || n != len(f.SHA256) {
		return nil, fmt.Errorf("%q was verified with the hash %q", path, o.Hash())
	}
	return f, nil
}

// errExchanged reports that a source that was verified is gone, or that something else is in its place. No
// copy of that has the signed hash.
var errExchanged = errors.New("the source is not the file that was verified")

// exchangedSource returns an error of a source that cannot be opened, with [errExchanged] unless the machine
// is the reason.
func exchangedSource(err error) error {
	for _, gone := range []error{fs.ErrNotExist, unix.ENOTDIR, pathsafe.ErrNotRegular, pathsafe.ErrSymlink, pathsafe.ErrEscape, pathsafe.ErrCrossesMount} {
		if errors.Is(err, gone) {
			return fmt.Errorf("%w: %w", errExchanged, err)
		}
	}
	return err
}

// chainManifest records the intended order of bundle restores (step C.6).
func chainManifest(p *restore.Plan) ([]byte, error) {
	var ids, roots []string
	for run := range p.Runs() {
		ids, roots = append(ids, run.Bundle().RunID()), append(roots, run.Bundle().Root())
	}
	return canonjson.Marshal(map[string]any{"bundle_roots": roots, "chain_root": p.ChainRoot(), "run_ids": ids})
}

// steps assigns each step of a transaction its code and phase (section 8.3). A
// step that is not here has no code of its own.
var steps = map[staging.Step]restore.Code{
	staging.StepConflict: restore.TargetPathExists,
	staging.StepCheck:    restore.StagingHashMismatch,
	staging.StepFinalize: restore.FinalizeFailed,
	staging.StepMissing:  restore.OutputMissingAfterRestore,
	staging.StepVerify:   restore.HashMismatchAfterRestore,
	staging.StepPublish:  restore.ResultArtifactWriteFailed,
}

// failureOf returns the failure of a transaction with its code, phase and cause.
func failureOf(err error) error {
	var e *staging.Error
	if !errors.As(err, &e) {
		return restore.Internal(restore.Execute, err)
	}
	failure := restore.Internal(restore.Execute, e)
	code, ok := steps[e.Step]
	if errors.Is(e.Err, errExchanged) {
		code, ok = restore.StagingHashMismatch, true
	}
	if ok {
		failure = restore.Fail(code, e.Path, e.Err)
	}
	if e.Rollback != nil {
		return failure.RolledBackBadly(e.Rollback)
	}
	return failure
}
