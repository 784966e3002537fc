package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"
)

// commitAgainstCopy measures an approved commit, which is durable when it returns, against
// cp -a followed by sync -f.
func (b *bench) commitAgainstCopy(ctx context.Context, s set) (pair, error) {
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
			return clock(func() error {
				err := runCommand(ctx, "", "cp", "-a", s.data(), root)
				return errors.Join(err, runCommand(ctx, "", "sync", "-f", root))
			})
		})
	}
	return interleave(ctx, b.rounds, ours, theirs)
}

// intoEmpty hands an empty restore root to f. What earlier work left to be written to the
// disk is written first, so that nobody pays for another. The root is removed with the set:
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
