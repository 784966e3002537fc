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

// slowRounds is how often at most is repeated what takes long.
const slowRounds = 3

type mountFunc func(context.Context, set) (*mounted, error)

// A task is something that is done below the root of a view, or of the directory beside one.
type task func(ctx context.Context, root string) error

// work is a task on a fresh mount.
type work struct {
	warm func() error // reads the source, not timed, so that it comes from the cache
	do   task
}

// against times w on fresh mounts of s by ours and by theirs in turn, and there once more.
func (w work) against(ctx context.Context, rounds int, s set, ours, theirs mountFunc) (first, second pair, err error) {
	first, err = interleave(ctx, rounds, // which keeps the first times
		w.fresh(s, ours, &second.ours),
		w.fresh(s, theirs, &second.theirs))
	return first, second, err
}

// fresh returns the timing of w on a fresh mount, and adds the time that w then takes once
// more to again, unless that is nil.
func (w work) fresh(s set, mount mountFunc, again *[]time.Duration) timing {
	return func(ctx context.Context, _ int) (first time.Duration, err error) {
		if err := w.warm(); err != nil {
			return 0, err
		}
		m, err := mount(ctx, s)
		if err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, m.close()) }()
		do := func() error { return w.do(ctx, m.root) }
		if first, err = clock(do); err != nil || again == nil {
			return first, err
		}
		second, err := clock(do)
		*again = append(*again, second)
		return first, err
	}
}

// readAll reads the files of s below root, one after the other.
func readAll(root string, s set) error {
	for i := range s.n {
		if err := readFile(filepath.Join(root, s.file(i)), s.size); err != nil {
			return err
		}
	}
	return nil
}

// readFile reads a file of size bytes from beginning to end.
func readFile(path string, size int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, min(max(size, pageSize), mib))
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

// tally counts what is written to it: a program may write less if its output is /dev/null, and
// an incomplete output is noticed.
type tally struct {
	bytes, lines int64
}

func (t *tally) Write(p []byte) (int, error) {
	t.bytes += int64(len(p))
	for _, c := range p {
		if c == '\n' {
			t.lines++
		}
	}
	return len(p), nil
}

// output runs a program and counts what it says on stdout.
func output(ctx context.Context, name string, args ...string) (tally, error) {
	var said tally
	cmd := command(ctx, "", name, args...)
	cmd.Stdout = &said
	err := explain(cmd, cmd.Run())
	return said, err
}

// list runs a program that is to say at least n lines.
func list(ctx context.Context, n int, name string, args ...string) error {
	said, err := output(ctx, name, args...)
	if err == nil && said.lines < int64(n) {
		err = fmt.Errorf("%s %q: %d lines, want %d", name, args, said.lines, n)
	}
	return err
}
