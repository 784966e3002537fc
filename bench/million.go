package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// The targets for a view of a million files.
const (
	beyondVerify  = 5 * time.Second
	firstList     = 50 * time.Millisecond
	bytesAFile    = 700
	readOfMillion = 1000 // files
	dirOfMillion  = 1000 // files in one directory
)

// million measures the view of very many, very small files: how long it takes to be there,
// to answer the first ls, and how much memory its server takes.
func (b *bench) million(ctx context.Context) (rows []row, err error) {
	million := set{name: "million", n: b.sizes.million, size: speckSize, perDir: dirOfMillion}
	err = b.withSet(ctx, million, func(s set) error {
		if rows, err = b.soonThere(ctx, s); err != nil {
			return err
		}
		more, err := b.bytesEach(ctx, s, b.mountSpectrum)
		rows = append(rows, more...)
		return err
	})
	return rows, err
}

// soonThere measures what a user waits for. The first, unmeasured verify warms the cache.
func (b *bench) soonThere(ctx context.Context, s set) ([]row, error) {
	verify := func() error { return b.spectrum.verify(ctx, s) }
	if err := verify(); err != nil {
		return nil, err
	}
	var root, data []time.Duration
	p, err := interleave(ctx, min(b.rounds, slowRounds),
		func(ctx context.Context, _ int) (took time.Duration, err error) {
			start := time.Now()
			m, err := b.mountSpectrum(ctx, s)
			if err != nil {
				return 0, err
			}
			took = time.Since(start)
			defer func() { err = errors.Join(err, m.close()) }()
			return took, errors.Join(ls(ctx, m.root, &root), ls(ctx, filepath.Join(m.root, "data"), &data))
		},
		func(context.Context, int) (time.Duration, error) { return clock(verify) })
	if err != nil {
		return nil, err
	}
	return []row{
		beyond(fmt.Sprintf("mount of %d files, until it is there: verify, and 5 s", s.n), p, beyondVerify),
		within("first ls of their root", root, firstList),
		within(fmt.Sprintf("first ls of their directory of %d directories", (s.n-1)/dirOfMillion+1), data, firstList),
	}, nil
}

func ls(ctx context.Context, dir string, times *[]time.Duration) error {
	took, err := clock(func() error { return list(ctx, 1, "ls", dir) })
	*times = append(*times, took)
	return err
}

// bytesEach takes the server's resident memory, also when every name was asked for and some
// of the files were read.
func (b *bench) bytesEach(ctx context.Context, s set, mount mountFunc) (rows []row, err error) {
	m, err := mount(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	idle, err := memoryNow(m)
	if err != nil {
		return nil, err
	}
	if err := list(ctx, s.n, "find", m.root); err != nil {
		return nil, err
	}
	for i := 0; i < s.n; i += max(s.n/readOfMillion, 1) {
		if err := readFile(filepath.Join(m.root, s.file(i)), s.size); err != nil {
			return nil, err
		}
	}
	used, err := memoryNow(m)
	if err != nil {
		return nil, err
	}
	peak, err := memoryPeak(m)
	return []row{
		perFile(fmt.Sprintf("memory of mount, %d files, when it is there", s.n), idle, s.n, 0),
		perFile("memory of the same, after find and some reads", used, s.n, bytesAFile),
		perFile("memory of the same, peak", peak, s.n, 0),
	}, err
}
