package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

type mountFunc func(context.Context, set) (*mounted, error)

// view holds the first and the second sequential read of one big file through the view
// against the same through the loopback. Passthrough is for the record: a view that checks
// every byte cannot let the kernel read past it.
func (b *bench) view(ctx context.Context) (rows []row, err error) {
	size := b.sizes.viewMiB * mib
	err = b.withSet(ctx, "view", 1, size, func(s set) error {
		first, second, err := b.viewAgainst(ctx, s, b.mountLoopback, size)
		if err != nil {
			return err
		}
		rows = []row{
			timed("first read of the view: go-fuse loopback", first, 0.5, false),
			timed("second read of the view: go-fuse loopback", second, 0.9, false),
		}
		first, second, err = b.viewAgainst(ctx, s, b.mountPassthrough, size)
		if err != nil {
			return err
		}
		rows = append(rows,
			timed("first read: the same, kernel passthrough", first, 0, false),
			timed("second read: the same, kernel passthrough", second, 0, false))
		return nil
	})
	return rows, err
}

func (b *bench) viewAgainst(ctx context.Context, s set, other mountFunc, size int) (first, second pair, err error) {
	first, err = interleave(ctx, b.rounds, // which keeps the first reads
		readTwice(s, b.mountSpectrum, size, &second.ours),
		readTwice(s, other, size, &second.theirs))
	return first, second, err
}

// readTwice gives the timing of the first read after a fresh mount, and adds that of the
// second to seconds. The source is read before, so that it comes from the cache.
func readTwice(s set, mount mountFunc, size int, seconds *[]time.Duration) timing {
	return func(ctx context.Context, _ int) (first time.Duration, err error) {
		if err := readFile(filepath.Join(s.project, s.file(0)), size); err != nil {
			return 0, err
		}
		m, err := mount(ctx, s)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, m.close()) }()
		read := func() error { return readFile(filepath.Join(m.mountpoint, s.file(0)), size) }
		if first, err = clock(read); err != nil {
			return 0, err
		}
		second, err := clock(read)
		*seconds = append(*seconds, second)
		return first, err
	}
}

// readFile reads a file of size bytes from beginning to end.
func readFile(path string, size int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, mib)
	total := 0
	for {
		n, err := f.Read(buf)
		total += n
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	if total != size {
		return fmt.Errorf("%q has %d bytes, not %d", path, total, size)
	}
	return nil
}
