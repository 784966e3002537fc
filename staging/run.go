package staging

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Run puts the files and artifacts of spec in place: all of it, durable, and
// then it returns nil; or nothing of it, and then the error is an [*Error]. A
// cancelled ctx stops it before the first move; afterwards it finishes.
func Run(ctx context.Context, spec Spec) error { return run(ctx, spec, &seam{}) }

func run(ctx context.Context, spec Spec, s *seam) error {
	a, err := begin(spec, s)
	if err != nil {
		return err
	}
	defer a.close()
	if err := a.commit(ctx); err != nil {
		err.Rollback = a.rollback()
		return err
	}
	return nil
}

// An attempt is one commit under way.
type attempt struct {
	spec  Spec
	s     *seam
	root  dir // its own handle, which holds the lock
	plan  *plan
	stage dir // the staging directory, once it is made
	id    string

	stageMark    mark
	manifestMark mark
	holdMark     mark // of the directory for artifacts below staging
	artifacts    []prepared
}

// Names below the root and below staging. No target begins with this prefix
// (decision D10).
const (
	stagePrefix    = ".spectrum06_staging_"
	manifestPrefix = ".spectrum06_chain_"
	probeName      = ".spectrum06_probe"
	probeMoved     = ".spectrum06_probe_moved"
	holdName       = ".spectrum06_artifacts"
	asidePrefix    = ".spectrum06_aside_"
)

func (a *attempt) stageName() string    { return stagePrefix + a.id }
func (a *attempt) manifestName() string { return manifestPrefix + a.id + ".json" }

// begin is step 1: lock the root and look at every target. It writes nothing.
func begin(spec Spec, s *seam) (*attempt, *Error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fail(StepBegin, "", err)
	}
	own, err := dir{spec.Root, s}.open(pathsafe.Path{})
	if err != nil {
		return nil, fail(StepBegin, "", err)
	}
	a := &attempt{spec: spec, s: s, root: own, id: id.String()}
	if err := a.look(); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

func (a *attempt) look() *Error {
	err := a.root.lock()
	if errors.Is(err, pathsafe.ErrLocked) {
		err = fmt.Errorf("another commit is at work in this root: %w", err)
	}
	if err != nil {
		return fail(StepBegin, "", err)
	}
	p, failure := makePlan(a.root, &a.spec)
	a.plan = p
	return failure
}

// close gives up the lock and all handles.
func (a *attempt) close() {
	for i := range a.artifacts {
		a.artifacts[i].close()
	}
	a.stage.close()
	a.root.close()
}

// commit is what follows, each step with its own sync point at its end.
func (a *attempt) commit(ctx context.Context) *Error {
	for _, step := range []func(context.Context) *Error{
		a.openStage,  // 2
		a.stageFiles, // 3
		a.persist,    // 4
		a.finalize,   // 5: the first move, from here on ctx does not count
		a.verify,     // 6
		a.publish,    // 7
		a.cleanUp,    // 8
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *attempt) progress(phase string, bytes int64) {
	if a.spec.Progress != nil {
		a.spec.Progress(phase, bytes)
	}
}
