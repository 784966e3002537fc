package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// commitRows measures an approved commit, which is durable when it returns: against cp -a
// followed by sync -f, and against the plain restore, which is not durable.
func (b *bench) commitRows(ctx context.Context, s set) ([]row, error) {
	copied, err := b.commitAgainst(ctx, s, func(ctx context.Context, s set, root string) error {
		err := runCommand(ctx, "", "cp", "-a", s.data(), root)
		return errors.Join(err, runCommand(ctx, "", "sync", "-f", root))
	})
	if err != nil {
		return nil, err
	}
	plain, err := b.commitAgainst(ctx, s, plainRestore)
	if err != nil {
		return nil, err
	}
	return []row{
		timed("commit "+s.name+": cp -a, sync -f", copied, 0.5, true),
		timed("commit "+s.name+": plain loop, one thread, no sync", plain, 3, false),
	}, nil
}

func (b *bench) commitAgainst(ctx context.Context, s set, other func(ctx context.Context, s set, root string) error) (pair, error) {
	ours := func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			id, err := b.spectrum.preview(ctx, s, root)
			if err != nil {
				return 0, err
			}
			return clock(func() error { return b.spectrum.commit(ctx, id) })
		})
	}
	theirs := func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			return clock(func() error { return other(ctx, s, root) })
		})
	}
	return interleave(ctx, b.rounds, ours, theirs)
}

// intoEmpty calls f with an empty restore root. Data of earlier work is synced first, so that
// f does not pay for it. The root is removed with the set:
// ext4 avoids inodes that were freed a moment ago, and searches long for others.
func (b *bench) intoEmpty(ctx context.Context, f func(root string) (time.Duration, error)) (time.Duration, error) {
	root, err := os.MkdirTemp(b.restores(), "root-")
	if err != nil {
		return 0, err
	}
	if err := runCommand(ctx, "", "sync", "-f", root); err != nil {
		return 0, err
	}
	return f(root)
}

func (b *bench) restores() string { return filepath.Join(b.work, "restores") }
