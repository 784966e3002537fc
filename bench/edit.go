package main

import (
	"context"
	"os"
	"path/filepath"
	"time"
)

// An edit of many small files: these few are new, these few are changed.
const newFiles, changedFiles = 3, 2

// edits measures a commit of which a few files are new or changed, and all the others are in the root
// already, against verify of all of them: as a run of all with --replace, and as a change set.
func (b *bench) edits(ctx context.Context) (rows []row, err error) {
	all := set{name: "all", n: b.sizes.small, size: smallSize}
	err = b.withSet(ctx, all, func(s set) error {
		base := filepath.Join(b.restores(), "base")
		if err := before(ctx, s, base); err != nil {
			return err
		}
		change := s
		change.name = "change"
		if err := b.spectrum.run(ctx, s.project, "seal", "--key", b.spectrum.key, "--project-root", s.project,
			"--run-dir", change.runDir(), "--base", base, "data"); err != nil {
			return err
		}
		for _, one := range []struct {
			name  string
			run   set
			flags []string
		}{{"as a whole run with --replace", s, []string{"--replace"}}, {"as a change set", change, nil}} {
			p, err := interleave(ctx, b.rounds,
				func(ctx context.Context, _ int) (time.Duration, error) {
					return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
						if err := before(ctx, s, root); err != nil {
							return 0, err
						}
						id, err := b.spectrum.preview(ctx, one.run, root, one.flags...)
						if err != nil {
							return 0, err
						}
						return clock(func() error { return b.spectrum.commit(ctx, id) })
					})
				},
				func(ctx context.Context, _ int) (time.Duration, error) {
					return clock(func() error { return b.spectrum.verify(ctx, s) })
				})
			if err != nil {
				return err
			}
			rows = append(rows, timed("commit of an edit, "+one.name+": verify of all", p, 0.66, false))
		}
		return nil
	})
	return rows, err
}

// before makes what a set was before its edit, durably.
func before(ctx context.Context, s set, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := runCommand(ctx, "", "cp", "-a", s.data(), dir); err != nil {
		return err
	}
	for i := range newFiles + changedFiles {
		path := filepath.Join(dir, s.file(i%s.n))
		if i < newFiles {
			if err := os.RemoveAll(path); err != nil {
				return err
			}
		} else if err := os.WriteFile(path, []byte("before\n"), 0o644); err != nil {
			return err
		}
	}
	return runCommand(ctx, "", "sync", "-f", dir)
}
