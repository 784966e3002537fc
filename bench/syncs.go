package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// The files of the section on syncs.
const (
	syncFiles = 1000
	syncSize  = 4 * kib
)

// syncs holds one syncfs against an fsync of every file, for files that were all written
// before: the choice that package staging makes above a few files.
func (b *bench) syncs(ctx context.Context) ([]row, error) {
	measure := func(sync func(dir *os.File, files []*os.File) error) timing {
		return func(context.Context, int) (time.Duration, error) { return b.written(sync) }
	}
	p, err := interleave(ctx, b.rounds, measure(syncWhole), measure(syncEach))
	if err != nil {
		return nil, err
	}
	return []row{timed(fmt.Sprintf("syncfs after %d files of 4 KiB: fsync of each", syncFiles), p, 1, true)}, nil
}

func syncWhole(dir *os.File, _ []*os.File) error { return unix.Syncfs(int(dir.Fd())) }

func syncEach(dir *os.File, files []*os.File) error {
	for _, f := range files {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return dir.Sync()
}

// written writes the files and returns the time that it takes to make them durable.
func (b *bench) written(sync func(dir *os.File, files []*os.File) error) (took time.Duration, err error) {
	path, err := os.MkdirTemp(b.work, "sync-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(path)) }()
	dir, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	if err := unix.Syncfs(int(dir.Fd())); err != nil { // earlier writes are not measured
		return 0, err
	}
	files := make([]*os.File, syncFiles)
	for i := range files {
		if files[i], err = os.Create(filepath.Join(path, fmt.Sprint(i))); err != nil {
			return 0, err
		}
		defer files[i].Close()
		if _, err := files[i].Write(make([]byte, syncSize)); err != nil {
			return 0, err
		}
	}
	return clock(func() error { return sync(dir, files) })
}
