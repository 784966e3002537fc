package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// names holds walks over many files against the same through the loopback. The first walk
// is the one that counts; in the second much comes from the kernel's own cache of names.
func (b *bench) names(ctx context.Context) (rows []row, err error) {
	err = b.withSet(ctx, set{name: "names", n: b.sizes.tiny, size: tinySize}, func(s set) error {
		for _, walk := range []struct {
			name string
			args []string
		}{{"find", nil}, {"ls", []string{"-lR"}}} {
			more, err := b.walked(ctx, s, walk.name, walk.args...)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
		return nil
	})
	return rows, err
}

// walked measures a program that names everything below its last argument.
func (b *bench) walked(ctx context.Context, s set, name string, args ...string) ([]row, error) {
	walk := work{
		warm: func() error { return statAll(s.project) },
		do: func(ctx context.Context, root string) error {
			return list(ctx, s.n, name, append(args[:len(args):len(args)], root)...)
		},
	}
	first, second, err := walk.against(ctx, b.rounds, s, b.mountSpectrum, b.mountLoopback)
	if err != nil {
		return nil, err
	}
	whole := strings.Join(append([]string{name}, args...), " ")
	return []row{
		timed(fmt.Sprintf("first %s of %d files: go-fuse loopback", whole, s.n), first, 1, false),
		timed("second "+whole+": the same", second, 0, false),
	}, nil
}

// statAll brings what the kernel knows of the files below root into its cache.
func statAll(root string) error {
	return filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if err == nil {
			_, err = d.Info()
		}
		return err
	})
}
