package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// restic holds the view against restic mount, which checks what it reads as well: one big
// file by cat, and many small ones by tar.
func (b *bench) restic(ctx context.Context) ([]row, error) {
	if _, err := exec.LookPath("restic"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: restic: skipped, since there is no restic: apt-get install restic")
		return nil, nil
	}
	big := set{name: "restic-big", n: 1, size: b.sizes.bigMiB * mib}
	rows, err := b.againstRestic(ctx, big, fmt.Sprintf("cat of %d MiB", b.sizes.bigMiB), func(s set) task {
		return func(ctx context.Context, root string) error {
			return runCommand(ctx, "", "cat", filepath.Join(root, s.file(0)))
		}
	})
	if err != nil {
		return nil, err
	}
	small := set{name: "restic-small", n: b.sizes.small, size: smallSize}
	more, err := b.againstRestic(ctx, small, fmt.Sprintf("tar c of %d files of 8 KiB", small.n), func(s set) task {
		return func(ctx context.Context, root string) error { return tarAll(ctx, root, s) }
	})
	return append(rows, more...), err
}

// tarAll makes a tar of everything below data. Its stdout is a pipe: GNU tar does not read
// what it is to write to /dev/null.
func tarAll(ctx context.Context, root string, s set) error {
	said, err := output(ctx, "tar", "cf", "-", "-C", root, "data")
	if want := int64(s.n) * int64(s.size); err == nil && said.bytes < want {
		err = fmt.Errorf("a tar of %q has %d bytes, want %d", root, said.bytes, want)
	}
	return err
}

// againstRestic measures first reads on fresh mounts. restic is given the best of cases: its
// repository is in the page cache, its own cache on the same disk is filled, and it has opened the snapshot before the clock starts.
func (b *bench) againstRestic(ctx context.Context, s set, name string, do func(set) task) (rows []row, err error) {
	err = b.withSet(ctx, s, func(s set) error {
		if err := resticBackup(ctx, s); err != nil {
			return err
		}
		read := work{warm: func() error { return readTree(s.project) }, do: do(s)}
		if _, err := read.fresh(s, b.mountRestic, nil)(ctx, 0); err != nil { // fills restic's cache
			return err
		}
		p, err := interleave(ctx, min(b.rounds, slowRounds),
			read.fresh(s, b.mountSpectrum, nil), read.fresh(s, b.mountRestic, nil))
		if err == nil {
			rows = []row{timed(name+": restic mount", p, 5, false)}
		}
		return err
	})
	return rows, err
}

// resticCommand prepares restic with repository, cache and password of s, whatever the
// environment says of others.
func resticCommand(ctx context.Context, s set, args ...string) *exec.Cmd {
	cmd := command(ctx, s.project, "restic", append(args, "--quiet")...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "RESTIC_") })
	cmd.Env = append(cmd.Env,
		"RESTIC_REPOSITORY="+filepath.Join(s.project, "restic-repository"),
		"RESTIC_CACHE_DIR="+filepath.Join(s.project, "restic-cache"),
		"RESTIC_PASSWORD=benchmark")
	return cmd
}

// resticBackup backs up the files of s into a new repository with restic's defaults.
func resticBackup(ctx context.Context, s set) error {
	for _, args := range [][]string{{"init"}, {"backup", "data"}} {
		cmd := resticCommand(ctx, s, args...)
		if err := cmd.Run(); err != nil {
			return explain(cmd, err)
		}
	}
	return nil
}

// mountRestic mounts the repository of s.
func (b *bench) mountRestic(ctx context.Context, s set) (*mounted, error) {
	m, err := b.mount("", func(mountpoint string) *exec.Cmd { return resticCommand(ctx, s, "mount", mountpoint) })
	if err != nil {
		return nil, err
	}
	m.interrupted = 130 // is what it says of itself after SIGINT
	m.root = filepath.Join(m.mountpoint, "snapshots", "latest")
	if _, err := os.ReadDir(filepath.Join(m.root, "data")); err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// readTree reads every file below root.
func readTree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return readFile(path, int(info.Size()))
	})
}
