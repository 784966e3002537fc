package staging

import (
	"context"

	"github.com/google/uuid"
)

// An attempt is one commit under way, or what is known of one that was killed.
type attempt struct {
	spec  Spec
	s     *seam
	log   Log // the session's; may be nil
	root  dir // the session's
	key   []byte
	plan  *plan
	stage dir // the staging directory, once it is made
	id    string
	phase phase

	stageMark     mark
	manifestMark  mark
	manifestCheck check // of one that comes from a journal
	holdMark      mark  // of the directory for artifacts below staging
	artifacts     []prepared
	revived       bool  // made from a journal
	cause         error // why it goes back though it was committed
}

// Names below the root and below staging. No target begins with this prefix
// (decision D10).
const (
	stagePrefix     = ".spectrum06_staging_"
	manifestPrefix  = ".spectrum06_chain_"
	manifestStaged  = ".spectrum06_manifest" // until it is moved beside staging
	holdName        = ".spectrum06_artifacts"
	asidePrefix     = ".spectrum06_aside_"
	asideFile       = asidePrefix + "f" // and the index of the file
	asideArtifact   = asidePrefix + "a" // and the index of the artifact
	asideOfManifest = asidePrefix + "m"
)

func (a *attempt) stageName() string    { return stagePrefix + a.id }
func (a *attempt) manifestName() string { return manifestPrefix + a.id + ".json" }

// begin is step 1: look at every target. It writes nothing.
func (l *Session) begin(spec Spec) (*attempt, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fail(StepBegin, "", err)
	}
	a := &attempt{spec: spec, s: l.s, log: l.Log, root: l.root, key: l.key, id: id.String()}
	a.artifacts = artifactsOf(spec.Artifacts)
	p, failure := makePlan(a.root, &a.spec)
	if failure != nil {
		return nil, failure
	}
	a.plan = p
	return a, nil
}

// close gives up all handles.
func (a *attempt) close() { a.stage.close() }

// commit is what follows, each step with its own sync point at its end.
func (a *attempt) commit(ctx context.Context) *Error {
	for _, step := range []func(context.Context) *Error{
		a.openStage,  // 2
		a.stageFiles, // 3
		a.persist,    // 4
		a.finalize,   // 5: the first move, from here on ctx does not count
		a.verify,     // 6
		a.publish,    // 7
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finish is step 8. The restore is complete and stays so, whatever becomes of
// this: what is left over the next session removes.
func (a *attempt) finish() {
	err := a.completed()
	if err == nil {
		err = a.cleanUp()
	}
	if err != nil && a.spec.Leftover != nil {
		a.spec.Leftover(a.stageName(), err)
	}
}

// completed tells the log.
func (a *attempt) completed() error {
	if a.log == nil {
		return nil
	}
	return a.log.Completed(a.id, KindCommit)
}

func (a *attempt) progress(phase string, bytes int64) {
	if a.spec.Progress != nil {
		a.spec.Progress(phase, bytes)
	}
}
