package action

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Derive seals the approved part of each run of a candidate, with the key of the host and
// under the run's own id, in the directory place. It returns the run directories: a candidate
// of its own, which is verified and planned as a whole. Sealed is called after each run.
func Derive(ctx context.Context, approval *preview.Approval, host Host, place string, sealed func(run string)) (runDirs []string, err error) {
	parts, err := approval.Parts()
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		dir := filepath.Join(place, part.RunID)
		opts := bundle.KnownOptions{RunDir: dir, Outputs: part.Outputs, Constraints: part.Constraints, Blocks: part.Blocks, Key: host.Key, BuildID: host.BuildID}
		if part.Changes != nil {
			opts.Extra = map[string][]byte{bundle.ChangesFile: part.Changes}
		}
		_, err := bundle.SealKnown(ctx, opts)
		if err != nil {
			return nil, fmt.Errorf("sealing what is approved of %s: %w", part.Text, err)
		}
		sealed(part.Text)
		runDirs = append(runDirs, dir)
	}
	return runDirs, nil
}
