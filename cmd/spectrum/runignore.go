package main

import (
	"fmt"
	"path/filepath"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/ignore"
)

// checkIgnore reads the .spectrumignore of the directory itself: better now than after hours.
// Those beneath are read when the changes are sealed.
func (r *running) checkIgnore() error {
	rules, err := ignore.New(r.lower, r.opts.exclude)
	if err == nil {
		err = rules.Enter("", r.lower)
	}
	there := func(rel string) string { return filepath.Join(r.dir, rel) }
	if hint := ignoreHint(err, there, "then run again"); hint != "" {
		return refusedHint(fmt.Errorf("the directory to run over: %w", err), hint)
	}
	return err
}

// ignorePath returns where a .spectrumignore is: in what the command changed, or in the directory.
func (r *running) ignorePath(rel string) string {
	path, err := pathsafe.Found(rel)
	if err != nil {
		return filepath.Join(r.dir, rel)
	}
	if dir, err := r.upper.OpenParent(path, len(path.Components())-1); err == nil {
		defer dir.Close()
		if _, err := dir.Lstat(path.Base()); err == nil {
			return filepath.Join(r.changed(), rel)
		}
	}
	return filepath.Join(r.dir, rel)
}
