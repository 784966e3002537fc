package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/internal/inorder"
)

// wrong reads packs, and returns those whose bytes are not theirs, also when they are read once more.
func (s *Store) wrong(ctx context.Context, packs []pack) ([]id, error) {
	isWrong := make([]bool, len(packs))
	err := inorder.Each(ctx, uploads, len(packs), func() struct{} { return struct{}{} }, func(_ struct{}, i int) error {
		isWrong[i] = true
		for n := 0; n < 2 && isWrong[i]; n++ {
			content, err := s.whole(ctx, packs[i].id.key(), maxPack)
			_, isLong := errors.AsType[longError](err)
			if errors.Is(err, fs.ErrNotExist) || isLong {
				return nil
			}
			if err != nil {
				return err
			}
			isWrong[i] = sha256.Sum256(content) != packs[i].id
		}
		return nil
	})
	var wrong []id
	for i := range packs {
		if isWrong[i] {
			wrong = append(wrong, packs[i].id)
		}
	}
	return wrong, err
}

// Distrust reads those packs of the run that a record relies on, and has it forget the ones with wrong
// bytes, so that the next push sends what is in them.
func (r *Run) Distrust(ctx context.Context, record *Record) error {
	var relied []pack
	for _, p := range r.plan.packs {
		if _, ok := record.known[p.id]; ok {
			relied = append(relied, p)
		}
	}
	wrong, err := r.store.wrong(ctx, relied)
	if err != nil {
		return err
	}
	return record.forget(wrong)
}

// distrust is Distrust for the packs of a plan that this push did not send or compare. It reports whether
// all of them are right.
func (p *push) distrust(ctx context.Context, at *plan) (bool, error) {
	var relied []pack
	for _, pack := range at.packs {
		if !p.compared[pack.id] {
			relied = append(relied, pack)
		}
	}
	wrong, err := p.wrong(ctx, relied)
	if err != nil {
		return false, err
	}
	return len(wrong) == 0, p.record.forget(wrong)
}
