package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"
)

// big holds verify and commit of four big files against openssl and cp.
func (b *bench) big(ctx context.Context) (rows []row, err error) {
	big := set{name: "big", n: bigFiles, size: b.sizes.bigMiB * mib}
	err = b.withSet(ctx, big, func(s set) error {
		openssl := func() error { return opensslPerCore(ctx, s, runtime.NumCPU()) }
		verify, err := b.verifyAgainst(ctx, s, openssl)
		if err != nil {
			return err
		}
		commit, err := b.commitRows(ctx, s)
		rows = append([]row{timed("verify big: openssl, one process per core", verify, 0.85, false)}, commit...)
		return err
	})
	return rows, err
}

// small holds verify and commit of many small files against sha256sum -c and cp.
func (b *bench) small(ctx context.Context) (rows []row, err error) {
	small := set{name: "small", n: b.sizes.small, size: smallSize}
	err = b.withSet(ctx, small, func(s set) error {
		list, err := sha256sumList(ctx, s)
		if err != nil {
			return err
		}
		check := func() error { return runCommand(ctx, s.project, "sha256sum", "--check", "--quiet", list) }
		verify, err := b.verifyAgainst(ctx, s, check)
		if err != nil {
			return err
		}
		commit, err := b.commitRows(ctx, s)
		rows = append([]row{timed("verify small: sha256sum -c", verify, 1, true)}, commit...)
		return err
	})
	return rows, err
}

// verifyAgainst measures verify against other. The first, unmeasured run of each warms the
// cache.
func (b *bench) verifyAgainst(ctx context.Context, s set, other func() error) (pair, error) {
	verify := func() error { return b.spectrum.verify(ctx, s) }
	for _, warm := range []func() error{verify, other} {
		if err := warm(); err != nil {
			return pair{}, err
		}
	}
	return interleave(ctx, b.rounds,
		func(context.Context, int) (time.Duration, error) { return clock(verify) },
		func(context.Context, int) (time.Duration, error) { return clock(other) })
}

// opensslPerCore hashes the files of s by cores processes at once, each with its share.
func opensslPerCore(ctx context.Context, s set, cores int) error {
	group, ctx := errgroup.WithContext(ctx)
	for core := range min(s.n, cores) {
		args := append([]string{"dgst", "-sha256"}, share(s, core, cores)...)
		group.Go(func() error { return runCommand(ctx, s.project, "openssl", args...) })
	}
	return group.Wait()
}

// share returns the files of s that are the given core's.
func share(s set, core, cores int) []string {
	var files []string
	for i := core; i < s.n; i += cores {
		files = append(files, s.file(i))
	}
	return files
}

// sha256sumList writes the list that sha256sum -c takes, and returns its path.
func sha256sumList(ctx context.Context, s set) (string, error) {
	var names bytes.Buffer
	for i := range s.n {
		names.WriteString(s.file(i) + "\x00")
	}
	cmd := command(ctx, s.project, "xargs", "-0", "sha256sum")
	cmd.Stdin = &names
	out, err := cmd.Output()
	if err != nil {
		return "", explain(cmd, err)
	}
	list := filepath.Join(s.project, "sha256sums")
	return list, os.WriteFile(list, out, 0o644)
}
