package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const (
	pageSize    = 4 * kib
	randomReads = 20_000 // at most
)

// view holds reads of big files through the view against the same through the loopback: in
// order, twice; page by page at random; and by two readers at once.
func (b *bench) view(ctx context.Context) (rows []row, err error) {
	view := set{name: "view", n: viewFiles, size: b.sizes.viewMiB * mib}
	err = b.withSet(ctx, view, func(s set) error {
		for _, part := range []func(context.Context, set) ([]row, error){
			b.inOrder, b.atRandom, b.together, b.passedThrough,
		} {
			more, err := part(ctx, s)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
		return nil
	})
	return rows, err
}

// onSource is what do does on a mount of s, whose source was read.
func onSource(s set, do func(root string) error) work {
	return work{
		warm: func() error { return readAll(s.project, s) },
		do:   func(_ context.Context, root string) error { return do(root) },
	}
}

func oneFile(s set) work {
	return onSource(s, func(root string) error { return readFile(filepath.Join(root, s.file(0)), s.size) })
}

func (b *bench) inOrder(ctx context.Context, s set) ([]row, error) {
	first, second, err := oneFile(s).against(ctx, b.rounds, s, b.mountSpectrum, b.mountLoopback)
	if err != nil {
		return nil, err
	}
	return []row{
		timed("first read of the view: go-fuse loopback", first, 0.6, false),
		timed("second read of the view: go-fuse loopback", second, 0.95, false),
	}, nil
}

// passedThrough is for the record: a view that checks every byte cannot let the kernel read
// past it.
func (b *bench) passedThrough(ctx context.Context, s set) ([]row, error) {
	first, second, err := oneFile(s).against(ctx, b.rounds, s, b.mountSpectrum, b.mountPassthrough)
	if err != nil {
		return nil, err
	}
	return []row{
		timed("first read: the same, kernel passthrough", first, 0, false),
		timed("second read: the same, kernel passthrough", second, 0, false),
	}, nil
}

// atRandom reads pages that were not read before, in an order that is the same for all.
func (b *bench) atRandom(ctx context.Context, s set) ([]row, error) {
	pages := rand.New(rand.NewPCG(1, 2)).Perm(s.size / pageSize)
	pages = pages[:min(len(pages), randomReads)]
	read := onSource(s, func(root string) error { return readPages(filepath.Join(root, s.file(0)), pages) })
	p, err := interleave(ctx, b.rounds, read.fresh(s, b.mountSpectrum, nil), read.fresh(s, b.mountLoopback, nil))
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%d first reads of 4 KiB at random: go-fuse loopback", len(pages))
	return []row{timed(name, p, 0.4, false)}, nil
}

// readPages reads the given pages one by one. The kernel is asked not to read ahead: that
// would measure its guess.
func readPages(path string, pages []int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		return &os.PathError{Op: "fadvise", Path: path, Err: err}
	}
	buf := make([]byte, pageSize)
	for _, page := range pages {
		if _, err := f.ReadAt(buf, int64(page)*pageSize); err != nil {
			return err
		}
	}
	return nil
}

// together holds two readers at once, each with its file, against one reader that takes the
// two files one after the other: on the view, and for the record on the loopback. On few
// cores one reader may use all of them already.
func (b *bench) together(ctx context.Context, s set) ([]row, error) {
	ours, err := b.twoReaders(ctx, s, b.mountSpectrum)
	if err != nil {
		return nil, err
	}
	theirs, err := b.twoReaders(ctx, s, b.mountLoopback)
	if err != nil {
		return nil, err
	}
	return []row{
		timed("two readers, a file each, of the view: one reader of both", ours, 1.5, false),
		timed("two readers: the same, both on the go-fuse loopback", theirs, 0, false),
	}, nil
}

func (b *bench) twoReaders(ctx context.Context, s set, mount mountFunc) (pair, error) {
	two := onSource(s, func(root string) error { return readAtOnce(root, s) })
	one := onSource(s, func(root string) error { return readAll(root, s) })
	return interleave(ctx, b.rounds, two.fresh(s, mount, nil), one.fresh(s, mount, nil))
}

// readAtOnce reads the files of s below root, each in a goroutine of its own.
func readAtOnce(root string, s set) error {
	var group errgroup.Group
	for i := range s.n {
		group.Go(func() error { return readFile(filepath.Join(root, s.file(i)), s.size) })
	}
	return group.Wait()
}
