package staging

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// verify is the end of step 4: every target, and then every new directory, is looked up again
// from the root. It must be the one that was staged, with the same mode, group and access
// list; content is checked again.
func (a *attempt) verify(ctx context.Context) *Error {
	a.progress(PhaseVerify, 0)
	batches := a.batches()
	failure := parallel(context.WithoutCancel(ctx), a.workers, len(batches)+len(a.copies.dirs), func() worker {
		return &verifier{attempt: a, batches: batches}
	})
	if err := a.closeCopies(); err != nil && failure == nil {
		return fail(StepFinalize, "", err)
	}
	return failure
}

// A verifier is a worker of verify.
type verifier struct {
	*attempt
	batches [][]int
	near    pathsafe.Opener
}

func (v *verifier) close() { v.near.Close() }

// do checks the files of a batch, which are in one directory. Its path must lead to it before
// and after: so each file was at its own path when it was checked, as if that had been looked up
// as a whole.
func (v *verifier) do(ctx context.Context, turn int) *Error {
	if turn >= len(v.batches) {
		return v.dir(&v.copies.dirs[turn-len(v.batches)])
	}
	for _, i := range v.batches[turn] {
		if err := v.file(ctx, i); err != nil {
			return err
		}
	}
	err := v.root.still(&v.near)
	v.near.Close()
	step := StepVerify
	if errors.Is(err, fs.ErrNotExist) {
		step = StepMissing
	}
	return fail(step, v.copies.files[v.batches[turn][0]].path.String(), err)
}

func (v *verifier) file(ctx context.Context, i int) *Error {
	f := &v.copies.files[i]
	name := f.path.String()
	got, st, err := v.open(i)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(StepMissing, name, err)
	}
	if err != nil {
		return fail(StepVerify, name, err)
	}
	defer got.Close()
	if !f.created.is(st) {
		return fail(StepVerify, name, errReplaced)
	}
	if err := v.s.keeps(got, st, &f.created); err != nil {
		return fail(StepVerify, name, err)
	}
	err = v.s.Do("check", name, func() error { return f.Check(ctx, got) })
	if err == nil {
		v.progress(PhaseVerify, f.Size)
	}
	return fail(StepVerify, name, err)
}

// open looks up a file by its name. The copy that is still open is that file if the name leads
// to the identity of the copy: no other inode can have its number while it is open.
func (v *verifier) open(i int) (*pathsafe.File, pathsafe.Stat, error) {
	path := v.copies.files[i].path
	if i >= len(v.openCopies) || v.openCopies[i] == nil {
		return v.root.openNear(&v.near, path)
	}
	st, err := v.root.statNear(&v.near, path)
	if err != nil {
		return nil, st, err
	}
	return v.openCopies[i].Lend(nil), st, nil
}

// dir checks a directory that was moved to its place.
func (v *verifier) dir(d *copiedDir) *Error {
	name := d.path.String()
	if d.top == none {
		return nil
	}
	in, err := v.root.open(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(StepMissing, name, err)
	}
	if err != nil {
		return fail(StepVerify, name, err)
	}
	defer in.Close()
	st, err := in.StatSelf()
	if err == nil && !d.created.is(st) {
		err = errReplaced
	}
	if err != nil {
		return fail(StepVerify, name, err)
	}
	now, err := in.access()
	if err == nil {
		err = d.created.keeps(now)
	}
	return fail(StepVerify, name, err)
}
