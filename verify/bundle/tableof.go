package bundle

import (
	"context"
	"fmt"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blocktable"
)

// TableOf reads known outputs and returns their block table, with the present attributes of their
// files, or nil if it would exceed the maximum size. It follows links as the verification does. It
// returns an error for a file with other bytes than the known ones. It calls hashed, unless nil,
// concurrently with the number of further bytes read.
func TableOf(ctx context.Context, project *pathsafe.Dir, known []Known, hashed func(bytes int64)) (*blocktable.Table, error) {
	outputs, err := knownOutputs(known)
	if err != nil {
		return nil, err
	}
	read := make([]output, len(outputs))
	for i, o := range outputs {
		read[i] = output{path: o.path}
	}
	if err := hashAll(ctx, SealOptions{Project: project, Blocks: true, Hashed: hashed, links: pathsafe.LinksUnder}, read); err != nil {
		return nil, err
	}
	for i, o := range outputs {
		if read[i].size != o.size || read[i].digest != o.digest {
			return nil, fmt.Errorf("output %q is not the file that was signed", o.path)
		}
	}
	return tableOf(project, pathsafe.LinksUnder, read)
}
