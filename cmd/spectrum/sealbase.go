package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"github.com/spf13/cobra"
)

// base is what a project is compared with. The zero value is none.
type base struct {
	dir     *pathsafe.Dir    // of --base
	list    *bundle.BaseList // of --base-run and --base-git
	git     *gitbase.Base    // of --base-git
	private []string         // what is never sealed, nor compared: keys, state directories, the base itself
}

// openBase opens the base that the options name.
func (a *app) openBase(cmd *cobra.Command, opts sealOptions, project *pathsafe.Dir, root string, outputs []string) (b base, err error) {
	if b.private, err = a.privateIn(root, opts.key); err != nil {
		return b, err
	}
	switch {
	case opts.base != "":
		if b.dir, err = openBaseDir(root, opts.base); err != nil {
			return b, err
		}
		private, err := a.privateIn(opts.base, opts.key)
		if err != nil {
			b.Close()
			return base{}, err
		}
		b.private = append(appendBeneath(b.private, root, opts.base), private...)
	case opts.baseRun != "":
		var named, sealed []string
		if named, sealed, err = a.namedRuns([]string{opts.baseRun}); err == nil {
			b.list, err = signedBy(cmd.Context(), named[0], sealed[0])
		}
	case opts.baseGit != "":
		if b.git, err = a.gitBase(cmd, project, opts.baseGit, root, outputs); err == nil {
			b.list = b.git.List
		}
	}
	return b, err
}

// Close closes the directory of --base.
func (b base) Close() {
	if b.dir != nil {
		b.dir.Close()
	}
}

// over is the directory that the candidate would change, where it is not the project itself.
func (b base) over() string {
	if b.dir == nil {
		return ""
	}
	path, err := b.dir.RealPath()
	if err != nil {
		return ""
	}
	return path
}

// isGiven reports whether there is a base, so that a change set is sealed.
func (b base) isGiven() bool { return b.dir != nil || b.list != nil }

// fields are what --json has of the base.
func (b base) fields() map[string]any {
	if b.git == nil {
		return nil
	}
	return map[string]any{"base_commit": b.git.Commit}
}

// openBaseDir opens the directory of --base. One that the project is in is rejected: all that is
// beside the project would be removed.
func openBaseDir(root, path string) (*pathsafe.Dir, error) {
	const hint = "name a directory that holds the project as it was, such as a copy of it"
	real, err := realPath(path)
	if err != nil {
		return nil, refusedHint(fmt.Errorf("base: %w", err), hint)
	}
	realRoot, err := realPath(root)
	switch {
	case err != nil:
		return nil, err
	case real == realRoot:
		return nil, refusedHint(fmt.Errorf("base %q: it is the project itself", path), hint)
	case pathsafe.IsWithin(realRoot, real):
		return nil, refusedHint(fmt.Errorf("base %q: it contains the project %q", path, root), hint)
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	base, err := pathsafe.OpenRoot(abs)
	if err != nil {
		return nil, refusedHint(fmt.Errorf("base: %w", err), hint)
	}
	return base, nil
}

// signedBy returns what a run has signed, of which no output is read. sealed is the bundle root that
// it must have; "" for any.
func signedBy(ctx context.Context, path, sealed string) (*bundle.BaseList, error) {
	run, err := verify.OpenRun(nil, path)
	if err != nil {
		return nil, err
	}
	defer run.Close()
	run.Expect(sealed)
	listing, err := verify.List(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	if _, isChanges, _ := bundle.ChangesClaim(listing.TaskSpec()); isChanges {
		return nil, refusedHint(fmt.Errorf("base: run %q is a change set itself, so it does not have the whole project", listing.RunID()), "name a run of the whole project, or with --base DIR a copy of it")
	}
	list := &bundle.BaseList{}
	for e := range listing.Entries() {
		list.Files = append(list.Files, bundle.BaseFile{Known: bundle.Known{Path: e.Path, Digest: e.Digest}})
	}
	return list, nil
}

// restricted reports whether a preview proposes a file only on request, because of its name or of
// its declared scope.
func (a *app) restricted(claims map[string]any) func(path string) bool {
	var scopes scope.Map
	if raw, err := canonjson.Marshal(claims); err == nil {
		if value, err := canonjson.Parse(raw); err == nil {
			scopes, _ = scope.ParseMap(value) // a preview reports the error
		}
	}
	secrets := a.secrets()
	return func(path string) bool {
		_, secret := secrets.Match(path)
		declared, ok := scopes.Of(path)
		return secret || ok && !slices.Contains(scope.Defaults(), declared)
	}
}

// appendBeneath appends a path relative to a project root, and the path of a link that leads to it:
// the base of a change set has neither.
func appendBeneath(private []string, root, path string) []string {
	realRoot, err := realPath(root)
	if err != nil {
		return private
	}
	real, err := realPath(path)
	if err != nil {
		return private
	}
	above, err := realPath(filepath.Dir(filepath.Clean(path)))
	if err != nil {
		return private
	}
	for _, at := range []string{real, filepath.Join(above, filepath.Base(path))} {
		if rel, err := filepath.Rel(realRoot, at); err == nil && rel != "." && filepath.IsLocal(rel) && !slices.Contains(private, rel) {
			private = append(private, rel)
		}
	}
	return private
}

// changedText describes a change set.
func changedText(n bundle.Counts) string {
	text := fmt.Sprintf("%s new, %s changed, %s removed", number(n.New), number(n.Changed), number(n.Removed))
	if n.Carried > 0 {
		text += fmt.Sprintf("; it includes %s, because a bundle needs at least one file", numberOf(n.Carried, "unchanged file"))
	}
	return text
}
