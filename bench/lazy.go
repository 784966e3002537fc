package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// The targets of lazy views. What the block table adds to sealing is BenchmarkSeal of verify/bundle: the
// command always writes one.
const (
	lazyThere = 5 * time.Second
	lazyReads = 0.9
)

// lazy measures a view that is mounted before its outputs are read: how long it takes to be there with
// very many files, and its memory; and its first reads beside those of a verified view.
func (b *bench) lazy(ctx context.Context) (rows []row, err error) {
	for _, part := range []struct {
		set set
		do  func(context.Context, set) ([]row, error)
	}{
		{set{name: "many", n: b.sizes.million, size: speckSize, perDir: dirOfMillion}, b.lazyAtOnce},
		{set{name: "reads", n: viewFiles, size: b.sizes.viewMiB * mib}, b.lazyRead},
	} {
		err := b.withSet(ctx, part.set, func(s set) error {
			more, err := part.do(ctx, s)
			rows = append(rows, more...)
			return err
		})
		if err != nil {
			return rows, err
		}
	}
	return rows, nil
}

func (b *bench) mountLazy(ctx context.Context, s set) (*mounted, error) {
	return b.mount("fuse.spectrum", func(mountpoint string) *exec.Cmd {
		return b.spectrum.command(ctx, "", "mount", "--lazy", s.runDir(), mountpoint)
	})
}

// lazyAtOnce measures the time to the first ls. The first, unmeasured verify warms the cache.
func (b *bench) lazyAtOnce(ctx context.Context, s set) ([]row, error) {
	verify := func() error { return b.spectrum.verify(ctx, s) }
	if err := verify(); err != nil {
		return nil, err
	}
	p, err := interleave(ctx, min(b.rounds, slowRounds),
		func(ctx context.Context, _ int) (took time.Duration, err error) {
			start := time.Now()
			m, err := b.mountLazy(ctx, s)
			if err != nil {
				return 0, err
			}
			defer func() { err = errors.Join(err, m.close()) }()
			err = list(ctx, 1, "ls", m.root)
			return time.Since(start), err
		},
		func(context.Context, int) (time.Duration, error) { return clock(verify) })
	if err != nil {
		return nil, err
	}
	memory, err := b.bytesEach(ctx, s, b.mountLazy)
	return append([]row{
		timed(fmt.Sprintf("mount --lazy of %d files, until ls of its root: verify", s.n), p, 0, false),
		within("the same, by itself", p.ours, lazyThere),
	}, memory...), err
}

// lazyRead holds reads of a lazy view against those of a verified one, which has hashed the files
// before.
func (b *bench) lazyRead(ctx context.Context, s set) ([]row, error) {
	first, second, err := oneFile(s).against(ctx, b.rounds, s, b.mountLazy, b.mountSpectrum)
	if err != nil {
		return nil, err
	}
	return []row{
		timed("first read of a lazy view: a verified view", first, lazyReads, false),
		timed("second read of a lazy view: the same", second, 0, false),
	}, nil
}
