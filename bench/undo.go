package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// undo measures rollbacks, which are durable when they return: a session rollback of a
// commit against rm -r and sync -f, and the restore of a snapshot of a whole root against
// cp -a and sync -f. Both keep in a snapshot what goes, and check every byte that comes.
// A second snapshot of what has not changed stands against the first and against find, which
// looks at every file once, as does the restore of a few changed files.
func (b *bench) undo(ctx context.Context) (rows []row, err error) {
	small := set{name: "small", n: b.sizes.small, size: 8 * kib}
	err = b.withSet(ctx, small, func(s set) error {
		times, err := interleave(ctx, min(b.rounds, slowRounds), b.rollback(s), b.remove(s))
		if err == nil {
			rows = append(rows, timed("rollback of a commit of small files: rm -r, sync -f", times, 0, false))
		}
		return err
	})
	if err != nil {
		return rows, err
	}
	tiny := set{name: "tiny", n: b.sizes.tiny, size: 4 * kib}
	err = b.withSet(ctx, tiny, func(s set) error {
		times, err := interleave(ctx, min(b.rounds, slowRounds), b.restoreSnapshot(s), b.copyBack(s))
		if err == nil {
			rows = append(rows, timed("snapshot restore of tiny files: cp -a, sync -f", times, 0.5, true))
			times, err = interleave(ctx, min(b.rounds, slowRounds), b.take(s, 1), b.take(s, 0))
		}
		if err == nil {
			rows = append(rows, timed("snapshot of tiny files, unchanged: the first one", times, 10, true))
			times, err = interleave(ctx, min(b.rounds, slowRounds), b.take(s, 1), b.find(s))
		}
		if err == nil {
			rows = append(rows, timed("snapshot of tiny files, unchanged: find -printf %T@", times, 0.25, true))
			times, err = interleave(ctx, min(b.rounds, slowRounds), b.restoreChanged(s, 100), b.find(s))
		}
		if err == nil {
			rows = append(rows, timed("snapshot restore of 100 changed tiny files: find -printf %T@", times, 0.125, true))
		}
		return err
	})
	return rows, err
}

// take returns the time of a snapshot of a root of which so many were taken before, into a
// store that holds nothing else.
func (b *bench) take(s set, before int) timing {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			alone := b.spectrum
			alone.state = root + ".state"
			err := errors.Join(os.Mkdir(alone.state, 0o700), runCommand(ctx, "", "cp", "-a", s.data(), root))
			if err == nil {
				err = runCommand(ctx, "", "sync", "-f", root)
			}
			take := func() error { return alone.run(ctx, "", "snapshot", "take", root) }
			for range before {
				if err == nil {
					err = take()
				}
			}
			if err != nil {
				return 0, err
			}
			return clock(take)
		})
	}
}

// rollback commits s, and returns the time of undoing that.
func (b *bench) rollback(s set) timing {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			id, err := b.spectrum.preview(ctx, s, root)
			if err == nil {
				err = b.spectrum.commit(ctx, id)
			}
			if err != nil {
				return 0, err
			}
			undone, err := b.spectrum.lastCommit(ctx, root)
			if err != nil {
				return 0, err
			}
			return clock(func() error { return b.spectrum.run(ctx, "", "rollback", undone) })
		})
	}
}

// remove returns the time of removing a copy of s.
func (b *bench) remove(s set) timing {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			err := runCommand(ctx, "", "cp", "-a", s.data(), root)
			if err == nil {
				err = runCommand(ctx, "", "sync", "-f", root)
			}
			if err != nil {
				return 0, err
			}
			return clock(func() error {
				err := runCommand(ctx, "", "rm", "-r", filepath.Join(root, filepath.Base(s.data())))
				return errors.Join(err, runCommand(ctx, "", "sync", "-f", root))
			})
		})
	}
}

// restoreSnapshot returns the time of restoring s into a root from which it was removed.
func (b *bench) restoreSnapshot(s set) timing {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			if err := runCommand(ctx, "", "cp", "-a", s.data(), root); err != nil {
				return 0, err
			}
			id, err := b.spectrum.snapshot(ctx, root)
			if err == nil {
				err = os.RemoveAll(filepath.Join(root, filepath.Base(s.data())))
			}
			if err == nil {
				err = runCommand(ctx, "", "sync", "-f", root)
			}
			if err != nil {
				return 0, err
			}
			return clock(func() error { return b.spectrum.run(ctx, "", "snapshot", "restore", id) })
		})
	}
}

// find gives the time of reading the times of a copy of s.
func (b *bench) find(s set) timing {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			err := runCommand(ctx, "", "cp", "-a", s.data(), root)
			if err != nil {
				return 0, err
			}
			return clock(func() error { return runCommand(ctx, "", "find", root, "-printf", `%T@\n`) })
		})
	}
}

// restoreChanged gives the time of restoring a copy of s in which some files were changed.
func (b *bench) restoreChanged(s set, changed int) timing {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			if err := runCommand(ctx, "", "cp", "-a", s.data(), root); err != nil {
				return 0, err
			}
			id, err := b.spectrum.snapshot(ctx, root)
			if err == nil {
				err = change(root, changed, s.n)
			}
			if err == nil {
				err = runCommand(ctx, "", "sync", "-f", root)
			}
			if err != nil {
				return 0, err
			}
			return clock(func() error { return b.spectrum.run(ctx, "", "snapshot", "restore", id) })
		})
	}
}

// change makes some of all files in a directory longer, at equal distances.
func change(dir string, some, all int) error {
	seen := 0
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if seen++; seen%max(1, all/some) != 0 {
			return nil
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString("changed")
		return errors.Join(err, f.Close())
	})
}

func (b *bench) copyBack(s set) timing {
	return func(ctx context.Context, _ int) (time.Duration, error) {
		return b.intoEmpty(ctx, func(root string) (time.Duration, error) {
			return clock(func() error {
				err := runCommand(ctx, "", "cp", "-a", s.data(), root)
				return errors.Join(err, runCommand(ctx, "", "sync", "-f", root))
			})
		})
	}
}

// lastCommit is the id of the savepoint of a root's last commit.
func (s spectrum) lastCommit(ctx context.Context, root string) (string, error) {
	return s.lastWord(ctx, 1, "savepoint", "list", root)
}

// snapshot takes one of a root and returns its id.
func (s spectrum) snapshot(ctx context.Context, root string) (string, error) {
	return s.lastWord(ctx, 1, "snapshot", "take", root)
}

// lastWord returns the word n of the last line that a command says.
func (s spectrum) lastWord(ctx context.Context, n int, args ...string) (string, error) {
	cmd := s.command(ctx, "", args...)
	out, err := cmd.Output()
	if err != nil {
		return "", explain(cmd, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	words := strings.Fields(lines[len(lines)-1])
	if n >= len(words) {
		return "", fmt.Errorf("%q said %q", args, out)
	}
	return words[n], nil
}
