package main

import (
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/ignore"
)

// leftOut is what a seal left out.
type leftOut []bundle.LeftOut

// reasons are the words for why, in the order of the table in docs/guide.md.
var reasons = []struct {
	why  bundle.Why
	text string
}{
	{bundle.History, "never sealed from a directory"},
	{bundle.ForRestore, "reserved for a restore"},
	{bundle.Private, "a key or the state directory"},
	{bundle.Excluded, "--exclude"},
	{bundle.Ignored, ignore.File},
	{bundle.Special, "--skip-special"},
	{gitbase.Ignored, "ignored by git"},
	{gitbase.Repository, "a git repository or submodule"},
	{gitbase.Unlisted, "not listed by git"},
	{gitbase.Sparse, "not checked out by git"},
}

// say prints what was left out.
func (l leftOut) say(a *app) {
	for _, reason := range reasons {
		for _, group := range l {
			if group.Why == reason.why {
				a.say("left out (%s): %s", reason.text, group)
			}
		}
	}
}

// counts is how much was left out, for programs: those of git where there is something.
func (l leftOut) counts() map[string]int {
	counts := map[string]int{}
	for _, reason := range reasons {
		if !strings.HasPrefix(string(reason.why), "git_") {
			counts[string(reason.why)] = 0
		}
	}
	for _, group := range l {
		counts[string(group.Why)] += len(group.Paths)
	}
	return counts
}

// privateIn returns the paths beneath a project root of the key and of the state directory.
func (a *app) privateIn(root, namedKey string) (private []string, err error) {
	root, err = realPath(root)
	if err != nil {
		return nil, err
	}
	state, err := a.statePath()
	if err != nil && namedKey == "" {
		return nil, err
	}
	for _, path := range []string{namedKey, state} {
		if path == "" {
			continue
		}
		real, err := realPath(path)
		if err != nil {
			return nil, err
		}
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) {
			private = append(private, rel)
		}
	}
	return private, nil
}
