package main

import (
	"fmt"
	"path/filepath"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

// gitBase reads what a project was in a revision of its git repository.
func (a *app) gitBase(cmd *cobra.Command, project *pathsafe.Dir, revision, root string, outputs []string) (*gitbase.Base, error) {
	real, err := realPath(root)
	if err != nil {
		return nil, err
	}
	base, err := gitbase.Read(cmd.Context(), gitbase.Options{Project: project, Root: real, Revision: revision, Outputs: outputs})
	if err != nil {
		return nil, gitError(real, err)
	}
	for _, output := range outputs {
		if output != bundle.Whole && !base.Knows(output) && !isThere(filepath.Join(root, output)) {
			return nil, usage(cmd, "output %q is neither in the project nor in %s; a revision is named with an equals sign: --base-git=%s", output, revision, output)
		}
	}
	if base.Commit == "" {
		a.say("base: the repository has no commit yet, so everything is new")
	} else {
		a.say("base: commit %s (%s)", base.Commit, visible.Quote(revision))
	}
	return base, nil
}

// gitError is an error of the git repository of a project, with the next step.
func gitError(root string, err error) error {
	if hint := gitHint(root, err); hint != "" {
		return refusedHint(fmt.Errorf("base: %w", err), hint)
	}
	return err
}
