package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// bench is one run: the binary under test and the directory of the data.
type bench struct {
	options
	spectrum spectrum
	work     string
}

// A section makes its own data and removes it, so that the data of two sections never take
// up the disk, or the cache, together.
type section struct {
	name string
	run  func(*bench, context.Context) ([]row, error)
}

func sections() []section {
	return []section{
		{"big", (*bench).big},
		{"small", (*bench).small},
		{"preview", (*bench).previews},
		{"edit", (*bench).edits},
		{"view", (*bench).view},
		{"lazy", (*bench).lazy},
		{"names", (*bench).names},
		{"restic", (*bench).restic},
		{"memory", (*bench).memory},
		{"syncs", (*bench).syncs},
		{"undo", (*bench).undo},
		{"million", (*bench).million}, // last: a file system is long not itself after it
	}
}

func sectionNames() []string {
	var names []string
	for _, s := range sections() {
		names = append(names, s.name)
	}
	return names
}

// chosen returns the sections that -only names, in the order of sections.
func chosen(only string) ([]section, error) {
	if only == "" {
		return sections(), nil
	}
	names := strings.Split(only, ",")
	for _, name := range names {
		if !slices.Contains(sectionNames(), name) {
			return nil, fmt.Errorf("no section %q", name)
		}
	}
	return slices.DeleteFunc(sections(), func(s section) bool {
		return !slices.Contains(names, s.name)
	}), nil
}

// measureAll returns the rows that were measured, also with an error.
func measureAll(ctx context.Context, opts options) (rows []row, err error) {
	todo, err := chosen(opts.only)
	if err != nil {
		return nil, err
	}
	if err := checkSpace(opts.dir, opts.sizes.need(opts.rounds), opts.sizes.files(opts.rounds)); err != nil {
		return nil, err
	}
	b, err := newBench(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	for _, s := range todo {
		fmt.Fprintf(os.Stderr, "bench: %s\n", s.name)
		more, err := s.run(b, ctx)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", s.name, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

func newBench(ctx context.Context, opts options) (*bench, error) {
	work, err := os.MkdirTemp(opts.dir, "spectrum-bench-")
	if err != nil {
		return nil, err
	}
	b := &bench{options: opts, work: work, spectrum: spectrum{
		bin:   opts.bin,
		key:   filepath.Join(work, "key.pem"),
		state: filepath.Join(work, "state"),
	}}
	if err := b.spectrum.keygen(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(work))
	}
	return b, nil
}

// withSet makes and seals s in a project of its own and hands it to f, and removes it
// afterwards, with all that was restored from it.
func (b *bench) withSet(ctx context.Context, s set, f func(set) error) (err error) {
	s.project = filepath.Join(b.work, s.name)
	defer func() { err = errors.Join(err, os.RemoveAll(s.project), os.RemoveAll(b.restores())) }()
	if err := os.Mkdir(b.restores(), 0o755); err != nil {
		return err
	}
	if err := s.write(ctx); err != nil {
		return err
	}
	if err := b.spectrum.seal(ctx, s); err != nil {
		return err
	}
	return f(s)
}
