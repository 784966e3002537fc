package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// writeManifest makes the chain manifest in staging, so that its identity is known before it
// is moved beside it.
func (a *attempt) writeManifest() error {
	if a.manifest == nil {
		return nil
	}
	m := &a.swaps[0].created
	f, err := a.stage.Create(manifestStaged, ownFile)
	m.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return err
	}
	err = a.writeWhole(f, m, a.manifest)
	if err == nil {
		a.swaps[0].fresh = m.identity(0)
		err = a.s.SyncFile(f)
	}
	return errors.Join(err, a.s.CloseFile(f))
}

// openPlan puts the chain manifest beside the staging directory, durably, and makes the
// directories below: first the one for artifacts, so that its name is durable by PREPARED.
// After COMMITTED its absence means that all of them were placed.
func (a *attempt) openPlan() *Error {
	if a.manifest != nil {
		m := &a.swaps[0]
		err := a.stage.rename(m.name, a.root, m.path.Base())
		if err == nil {
			err = errors.Join(a.stage.Sync(), a.root.Sync())
		}
		if err != nil {
			return fail(StepStage, m.path.String(), err)
		}
	}
	if a.artifacts > 0 {
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

// makeDirs makes the directories of the copies below staging. The copy of an existing directory
// passes on the same group and access list as the real one, so that an entry made in it has
// them as if it had been made at its name.
func (a *attempt) makeDirs() *Error {
	at, real := cache{base: a.news}, cache{base: a.root}
	defer at.close()
	defer real.close()
	entered := map[pathsafe.Path]bool{}
	for i := range a.swaps {
		entered[parent(a.swaps[i].path)] = true
	}
	for i := range a.copies.dirs {
		d := &a.copies.dirs[i]
		perm := uint32(ownDir)
		if d.top != none {
			perm = a.dirPerm(d.path)
		}
		in, err := at.open(parent(d.path))
		if err == nil {
			err = makeDir(in, d.path.Base(), perm, &d.created)
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
func (a *attempt) dress(d *copiedDir, at, real *cache) error {
	made, err := at.open(d.path)
	if err != nil {
		return err
	}
	if d.top != none {
		d.created.access, err = made.access()
		return err
	}
	target, err := real.open(d.path)
	if err != nil {
		return err
	}
	if d.created.access, err = target.access(); err != nil {
		return err
	}
	return made.bequeathLike(d.created.access)
}

// writeWhole writes a file that is not a copy, and records its identity.
func (a *attempt) writeWhole(f *os.File, m *created, data []byte) error {
	st, err := a.s.Identify(f)
	if err != nil {
		return err
	}
	m.see(st, anySize)
	if err := a.s.Write(f, data); err != nil {
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

// trees returns how many trees the caller makes.
func (a *attempt) trees() (n int) {
	for i := range a.swaps {
		if a.swaps[i].tree {
			n++
		}
	}
	return n
}

// makeTrees calls fill to make the trees.
func (a *attempt) makeTrees(ctx context.Context, fill func(ctx context.Context, dir *pathsafe.Dir) error) *Error {
	trees := a.trees()
	if trees == 0 {
		return nil
	}
	if fill == nil {
		return fail(StepStage, "", errors.New("New has a tree, but fill is nil"))
	}
	if err := ctx.Err(); err != nil {
		return fail(StepStage, "", err)
	}
	if err := a.s.Do("stage", a.stageName, func() error { return fill(ctx, a.news.H) }); err != nil {
		return fail(StepStage, "", err)
	}
	names, err := a.news.Names()
	if err == nil && len(names) != trees {
		err = fmt.Errorf("staged %d entries, want %d", len(names), trees)
	}
	return fail(StepStage, "", err)
}
