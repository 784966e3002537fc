package staging

import (
	"context"
	"errors"
	"io/fs"
)

// verify is the end of step 4: every target, and then every new directory, is looked up again
// from the root. It must be the one that was staged, with the same mode, group and access
// list; content is checked again.
func (a *attempt) verify(ctx context.Context) *Error {
	a.progress(PhaseVerify, 0)
	v := &verifier{a}
	return parallel(context.WithoutCancel(ctx), a.workers, len(a.plan.files)+len(a.plan.dirs), func() worker { return v })
}

// A verifier is the worker of verify.
type verifier struct{ *attempt }

func (v *verifier) close() {}

func (v *verifier) do(ctx context.Context, turn int) *Error {
	if turn >= len(v.plan.files) {
		return v.dir(&v.plan.dirs[turn-len(v.plan.files)])
	}
	f := &v.plan.files[v.plan.order[turn]]
	name := f.path.String()
	got, st, err := v.root.openRegular(f.path)
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
	if err := v.s.keeps(got, &f.created); err != nil {
		return fail(StepVerify, name, err)
	}
	err = v.s.do("check", name, func() error { return f.Check(ctx, got) })
	if err == nil {
		v.progress(PhaseVerify, f.Size)
	}
	return fail(StepVerify, name, err)
}

// dir checks a directory that was moved to its place.
func (v *verifier) dir(d *plannedDir) *Error {
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
	defer in.close()
	st, err := in.statSelf()
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
