package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// openBase opens the directory that a project started from; nil for none.
func openBase(path string) (*pathsafe.Dir, error) {
	if path == "" {
		return nil, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	base, err := pathsafe.OpenRoot(abs)
	if err != nil {
		return nil, refusedHint(fmt.Errorf("base: %w", err), "name a directory that holds the project as it was, such as a copy of it")
	}
	return base, nil
}

// signedBy returns what a run has signed, of which no output is read; nil for none.
func signedBy(ctx context.Context, path string) ([]bundle.Known, error) {
	if path == "" {
		return nil, nil
	}
	run, err := verify.OpenRun(nil, path)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	listing, err := verify.List(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	if _, isChanges, _ := bundle.ChangesClaim(listing.TaskSpec()); isChanges {
		return nil, refusedHint(fmt.Errorf("base: run %q is a change set itself, so it does not say what the whole project was", listing.RunID()), "name a run of the whole project, or with --base DIR a copy of it")
	}
	known := make([]bundle.Known, 0, listing.Len())
	for e := range listing.Entries() {
		known = append(known, bundle.Known{Path: e.Path, Digest: e.Digest})
	}
	return known, nil
}

// restricted returns whether a preview leaves out a file of a name until it is asked for, be it since
// the name is restricted or by the scope that is declared.
func (a *app) restricted(claims map[string]any) func(path string) bool {
	var scopes scope.Map
	if raw, err := canonjson.Marshal(claims); err == nil {
		if value, err := canonjson.Parse(raw); err == nil {
			scopes, _ = scope.ParseMap(value) // what is wrong with it a preview says
		}
	}
	secrets := a.secrets()
	return func(path string) bool {
		_, secret := secrets.Match(path)
		declared, ok := scopes.Of(path)
		return secret || ok && !slices.Contains(scope.Defaults(), declared)
	}
}

// appendBeneath appends a path as one beneath a project root, where it is: the base of a change set
// is no part of it.
func appendBeneath(private []string, root, path string) []string {
	realRoot, err := realPath(root)
	if err != nil {
		return private
	}
	real, err := realPath(path)
	if err != nil {
		return private
	}
	rel, err := filepath.Rel(realRoot, real)
	if err != nil || rel == "." || rel == ".." || strings.HasPrefix(rel, "../") {
		return private
	}
	return append(private, rel)
}

// changedText says what a change set is about.
func changedText(n bundle.Counts) string {
	text := fmt.Sprintf("%d new, %d changed, %d removed", n.New, n.Changed, n.Removed)
	if n.Carried > 0 {
		text += fmt.Sprintf("; it carries %s, since a bundle needs one", numberOf(n.Carried, "unchanged file"))
	}
	return text
}
