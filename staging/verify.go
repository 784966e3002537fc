package staging

import (
	"context"
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/internal/machine"
)

// verify is step 6: every target is looked up afresh from the root, must be
// the very file that was staged, and is checked again.
func (a *attempt) verify(ctx context.Context) *Error {
	a.progress(PhaseVerify, 0)
	v := &verifier{a, context.WithoutCancel(ctx)}
	return parallel(a.spec.Workers, len(a.spec.Files), func() worker { return v })
}

// A verifier is the worker of step 6. It lives as long as one call of verify,
// whose ctx it has.
type verifier struct {
	*attempt
	ctx context.Context
}

func (v *verifier) close() {}

func (v *verifier) do(turn int) *Error {
	i := v.plan.order[turn]
	f := &v.spec.Files[i]
	name := f.Path.String()
	got, st, err := v.root.openRegular(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(StepMissing, name, err)
	}
	if err != nil {
		return fail(StepVerify, name, err)
	}
	defer got.Close()
	if !v.plan.files[i].mark.is(st) {
		return fail(StepVerify, name, errReplaced)
	}
	err = v.s.do("check", name, func() error { return f.Check(v.ctx, got) })
	if err == nil {
		v.progress(PhaseVerify, f.Size)
	}
	return fail(StepVerify, name, err)
}

var errReplaced = machine.Disturbed("is not what this commit put there")
