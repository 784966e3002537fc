package staging

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Run puts the files and artifacts of spec in place: all of it, durable, and
// then it returns nil; or nothing of it, and then the error is an [*Error]. A
// cancelled ctx stops it before the first move; afterwards it finishes.
//
// The root has to be clean: call [Session.Recover] first.
func (l *Session) Run(ctx context.Context, spec Spec) error {
	if err := spec.validate(); err != nil {
		return err
	}
	id, err := uuid.NewRandom()
	if err != nil {
		return fail(StepBegin, "", err)
	}
	a := &attempt{
		s: l.s, log: l.Log, key: l.key, id: id.String(), kind: KindCommit, root: l.root, lock: l.lock,
		stageName: stagePrefix + id.String(), leftover: spec.Leftover, spec: spec,
	}
	if spec.Manifest != nil {
		path, err := pathsafe.Parse(manifestPrefix + a.id + ".json")
		if err != nil {
			return fail(StepBegin, "", err)
		}
		a.swaps = append(a.swaps, swapping{path: path, since: phaseIntent, name: manifestStaged, comes: true})
	}
	err = l.lookAndHold(ctx, func() (failure *Error) { // step 1
		a.plan, failure = makePlan(a.root, &a.spec, a.swaps)
		return failure
	})
	if err != nil {
		return err
	}
	a.swaps = a.plan.swaps
	for i := range spec.Artifacts {
		a.swaps = append(a.swaps, swapping{path: spec.Artifacts[i].Path, since: phaseCommitted, name: strconv.Itoa(i), comes: true})
	}
	return a.drive(
		ctx,
		a.open,       // 2
		a.openPlan,   //
		a.stageFiles, // 3
		a.persist,    // 4
		a.moveTops,   // 5: the first move, from here on ctx does not count
		a.verify,     // 6
		a.publish,    // 7
	)
}

// firstArtifact is the index of the first swap that is an artifact, the number of swaps if
// there is none.
func (a *attempt) firstArtifact() int { return len(a.swaps) - len(a.spec.Artifacts) }

// writeManifest makes the chain manifest in staging, so that its identity is
// known before it stands beside it.
func (a *attempt) writeManifest() error {
	if a.spec.Manifest == nil {
		return nil
	}
	m := &a.swaps[0].mark
	f, err := a.stage.create(manifestStaged, ownFile)
	m.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	err = a.fill(f, m, a.spec.Manifest)
	if err == nil {
		a.swaps[0].fresh = m.being(0)
		err = a.s.syncFile(f)
	}
	return errors.Join(err, a.s.closeFile(f))
}

// openPlan puts the chain manifest beside the staging directory, durably, and makes the
// directories below: first that for artifacts, so that its name is durable by PREPARED.
// After COMMITTED its absence says that all of them were placed.
func (a *attempt) openPlan(context.Context) *Error {
	if a.spec.Manifest != nil {
		m := &a.swaps[0]
		err := a.stage.rename(m.name, a.root, m.path.Base())
		if err == nil {
			err = errors.Join(a.stage.sync(), a.root.sync())
		}
		if err != nil {
			return fail(StepStage, m.path.String(), err)
		}
	}
	if len(a.spec.Artifacts) > 0 {
		err := a.stage.mkdirOwn(holdName)
		if err == nil {
			err = a.openParts()
		}
		if err != nil {
			return fail(StepStage, holdName, err)
		}
	}
	return a.makeDirs()
}

// makeDirs makes the directories of the plan below staging. One that exists beneath
// the root already gives the group and the access list to what is made in it that the
// real one gives: what is moved there later has them as if it had been made there.
func (a *attempt) makeDirs() *Error {
	at, real := cache{base: a.news}, cache{base: a.root}
	defer at.close()
	defer real.close()
	entered := map[pathsafe.Path]bool{}
	for i := range a.swaps {
		entered[parent(a.swaps[i].path)] = true
	}
	for i := range a.plan.dirs {
		d := &a.plan.dirs[i]
		perm := uint32(ownDir)
		if d.top != none {
			perm = a.spec.dirPerm(d.path)
		}
		in, err := at.open(parent(d.path))
		if err == nil {
			err = makeDir(in, d.path.Base(), perm, &d.mark)
		}
		if err == nil && (d.top != none || entered[d.path]) {
			err = a.dress(d, &at, &real)
		}
		if err != nil {
			return fail(StepStage, d.path.String(), err)
		}
	}
	return nil
}

// dress has a directory below staging give what the real one gives, or notes what a
// new one has got.
func (a *attempt) dress(d *plannedDir, at, real *cache) error {
	made, err := at.open(d.path)
	if err != nil {
		return err
	}
	if d.top != none {
		d.mark.access, err = made.access()
		return err
	}
	target, err := real.open(d.path)
	if err != nil {
		return err
	}
	if d.mark.access, err = target.access(); err != nil {
		return err
	}
	return made.bequeathLike(d.mark.access)
}

// fill writes a file that is not one of the spec, and marks it.
func (a *attempt) fill(f *os.File, m *mark, data []byte) error {
	st, err := a.s.identify(f)
	if err != nil {
		return err
	}
	m.see(st, anySize)
	if err := a.s.write(f, data); err != nil {
		return err
	}
	if st.Perm&0o400 == 0 { // the umask took it, and it has to be read back
		if err := a.s.chmod(f, st.Perm|0o400); err != nil {
			return err
		}
	}
	m.size = int64(len(data))
	m.access, err = a.s.access(f)
	return err
}

// moveTops is step 5: each top is moved to its place, never over anything, and
// then the directories it moved into become durable. The directory that it moves into
// has to give to what is made in it what it gave when that was staged; of several tops
// in a row it is asked once.
func (a *attempt) moveTops(ctx context.Context) *Error {
	if err := ctx.Err(); err != nil {
		return fail(StepStage, a.stageName, err)
	}
	a.progress(PhaseFinalize, 0)
	from, to := cache{base: a.news}, cache{base: a.root}
	defer from.close()
	defer to.close()
	var homes []pathsafe.Path
	for i := range a.swaps {
		s := &a.swaps[i]
		if s.since != phasePrepared {
			continue
		}
		up := parent(s.path)
		source, err := from.open(up)
		var target dir
		if err == nil {
			target, err = to.open(up)
		}
		if err == nil && up != (pathsafe.Path{}) && (len(homes) == 0 || homes[len(homes)-1] != up) {
			err = a.bequeathsStill(up, target)
		}
		if err == nil {
			homes = append(homes, up)
			err = source.rename(s.path.Base(), target, s.path.Base())
		}
		if err != nil {
			return fail(StepFinalize, s.path.String(), err)
		}
	}
	// First the directories that were left, then those that were entered: the other way
	// round btrfs may come back from a power cut with a file under both names.
	return fail(StepFinalize, "", syncDirs(homes, a.news, a.root))
}

func (a *attempt) bequeathsStill(up pathsafe.Path, in dir) error {
	now, err := in.access()
	if err != nil {
		return err
	}
	d, ok := a.plan.find(up)
	if ok && !now.Value().Bequeaths(a.plan.dirs[d].mark.access.Value()) {
		return fmt.Errorf("the directory that it goes to: %w", errAccess)
	}
	return nil
}

// publish is step 7. All artifacts are durable in staging before the journal
// says COMMITTED, and that it does before the first of them gets its name: so a
// full disk is met before, and whoever sees an artifact sees a commit that no
// crash takes back.
func (a *attempt) publish(context.Context) *Error {
	a.progress(PhasePublish, 0)
	if err := a.makeArtifacts(); err != nil {
		return err
	}
	if err := a.enterCommitted(); err != nil {
		return fail(StepPublish, a.stageName, err)
	}
	return a.place()
}

// makeArtifacts makes them all in the directory for artifacts, durably. It gives to what is
// made in it what the directory gives that the artifact goes to; of several in a row that
// is asked once.
func (a *attempt) makeArtifacts() *Error {
	if len(a.spec.Artifacts) == 0 {
		return nil
	}
	at := cache{base: a.root}
	defer at.close()
	few := len(a.spec.Artifacts) <= few
	for i := range a.spec.Artifacts {
		s := &a.swaps[a.firstArtifact()+i]
		err := error(nil)
		if i == 0 || parent(s.path) != parent(a.spec.Artifacts[i-1].Path) {
			err = a.inherit(s, &at)
		}
		if err == nil {
			err = a.makeArtifact(s, &a.spec.Artifacts[i], few)
		}
		if err != nil {
			return fail(StepPublish, s.path.String(), err)
		}
	}
	if !few {
		return fail(StepPublish, holdName, a.root.syncFS())
	}
	return fail(StepPublish, holdName, a.hold.sync())
}

func (a *attempt) inherit(s *swapping, at *cache) error {
	in, err := at.open(parent(s.path))
	if err != nil {
		return err
	}
	like, err := in.access()
	if err != nil {
		return err
	}
	return a.hold.bequeathLike(like)
}

func (a *attempt) makeArtifact(s *swapping, art *Artifact, sync bool) error {
	f, err := a.hold.create(s.name, art.Perm)
	s.mark.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	err = a.fill(f, &s.mark, art.Data)
	s.fresh = s.mark.being(0)
	if err == nil && sync {
		err = a.s.syncFile(f)
	}
	return errors.Join(err, a.s.closeFile(f))
}

// place gives each artifact its name, in order, in one step and never over
// anything, and looks it up afresh from the root, as step 6 does with files.
func (a *attempt) place() *Error {
	if len(a.spec.Artifacts) == 0 {
		return nil
	}
	at := cache{base: a.root}
	defer at.close()
	for i := range a.spec.Artifacts {
		if err := a.placeOne(&at, i); err != nil {
			return fail(StepPublish, a.spec.Artifacts[i].Path.String(), err)
		}
	}
	if err := a.hold.sync(); err != nil { // before the directories that they entered: see moveTops
		return fail(StepPublish, holdName, err)
	}
	return fail(StepPublish, "", a.syncArtifacts())
}

func (a *attempt) placeOne(at *cache, i int) error {
	s := &a.swaps[a.firstArtifact()+i]
	to, err := at.open(parent(s.path))
	if err != nil {
		return err
	}
	err = a.hold.rename(s.name, to, s.path.Base())
	if a.revived && errors.Is(err, fs.ErrNotExist) {
		return nil // placed before the crash: what became of it since is not ours to judge
	}
	if a.revived && errors.Is(err, fs.ErrExist) {
		switch wrong := a.verifyArtifact(i); {
		case wrong == nil:
			return a.hold.unlink(s.name) // placed, and the crash has brought the old name back
		case !isMismatch(wrong):
			return wrong
		}
	}
	if err != nil {
		return err
	}
	return a.verifyArtifact(i)
}

func (a *attempt) verifyArtifact(i int) error {
	s := &a.swaps[a.firstArtifact()+i]
	f, st, err := a.root.openRegular(s.path)
	if err != nil {
		return err
	}
	defer f.Close()
	if !s.mark.is(st) {
		return errReplaced
	}
	now, err := a.s.access(f)
	if err == nil {
		err = s.mark.keeps(now)
	}
	if err != nil {
		return err
	}
	check := s.check
	if check == nil {
		data := a.spec.Artifacts[i].Data
		check = thing{Size: int64(len(data))}.with(sha256.Sum256(data)).check()
	}
	return a.s.do("check", s.path.String(), func() error { return check(context.Background(), f) })
}

func (a *attempt) syncArtifacts() error {
	var dirs []pathsafe.Path
	for i := range a.spec.Artifacts {
		dirs = append(dirs, parent(a.spec.Artifacts[i].Path))
	}
	return syncDirs(dirs, a.root)
}

// placedAll tells whether every artifact has left staging. It then stood at its
// name, and what became of it since is not ours to judge.
func (a *attempt) placedAll() (bool, error) {
	if err := a.openParts(); err != nil {
		return false, err
	}
	if a.hold.h == nil {
		return true, nil
	}
	for i := range a.swaps {
		if a.swaps[i].since != phaseCommitted {
			continue
		}
		_, err := a.hold.stat(a.swaps[i].name)
		if err == nil {
			return false, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	return true, nil
}

// forward is what is left of steps 6 and 7 for a commit that was killed.
func (a *attempt) forward(ctx context.Context) error {
	a.plan.order = byRank(a.spec.Files)
	for i := range a.spec.Files {
		if a.spec.Files[i].Check == nil {
			return errUnfit
		}
	}
	if err := a.verify(ctx); err != nil {
		return err
	}
	if err := a.place(); err != nil {
		return err
	}
	return nil
}
