package main

import (
	"context"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/internal/overlay"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/ignore"
)

// maxSeen is the size of the largest file that is read while a command runs.
const maxSeen = 64 << 20

// watch reads the earlier version of what the command changes as soon as the command changes it,
// because other processes may change it until the command ends. It returns a function that ends the
// watch and returns what was read. A missed file is read when the layer is sealed, and is rejected
// by name if it has changed by then.
func (r *running) watch() (stop func() map[string]bundle.BaseFile) {
	seen, hasher := map[string]bundle.BaseFile{}, blockhash.NewHasher()
	rules, err := ignore.New(r.lower, r.opts.exclude)
	if err != nil {
		return func() map[string]bundle.BaseFile { return nil }
	}
	ctx, cancel := context.WithCancel(context.Background())
	read := func(rel string, st pathsafe.Stat) error {
		path, err := pathsafe.Found(rel)
		if err != nil || !st.Mode.IsRegular() || st.Size > maxSeen || st.ChangeTime.After(r.layer.Since) {
			return nil
		}
		if _, known := seen[rel]; known {
			return nil
		}
		if base, err := r.layer.ReadBase(ctx, r.upper, path, hasher); err == nil {
			seen[rel] = base
		}
		return nil
	}
	isLeft := func(rel string, isDir bool) bool {
		by, err := rules.Match(rel, isDir)
		return err != nil || by != "" || filepath.Base(rel) == ".git" || strings.HasPrefix(rel, ".git/") || strings.Contains(rel, "/.git/") || rel == runsDirs[0] || rel == runsDirs[1]
	}
	end, err := overlay.Watch(r.changed(), func(rel string, isDir bool) {
		path, err := pathsafe.Found(rel)
		if err != nil || isLeft(rel, isDir) || ctx.Err() != nil {
			return
		}
		below, err := r.lower.StatPath(path, pathsafe.NoLinks)
		if err != nil || !below.Mode.IsDir() || isDir && !isOpaque(r.upper, path) {
			_ = read(rel, below) // which reads regular files only
			return
		}
		dir, err := r.lower.OpenParent(path, len(path.Components()))
		if err != nil {
			return
		}
		defer dir.Close()
		_ = dir.WalkReadable(ctx, func(under string, st pathsafe.Stat) error {
			at := rel + "/" + under
			if isLeft(at, st.Mode.IsDir()) {
				if st.Mode.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			return read(at, st)
		}, func(string) {})
	})
	if err != nil {
		cancel()
		return func() map[string]bundle.BaseFile { return nil }
	}
	return func() map[string]bundle.BaseFile {
		cancel()
		end()
		return seen
	}
}
