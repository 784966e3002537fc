package savepoint

import (
	"context"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/existing"
	"github.com/spectrumfs/spectrum/verify"
)

// DriftState is how a file stands to the savepoint that it is in.
type DriftState string

// The states, in the words of the program's JSON.
const (
	Same       DriftState = "same"
	Changed    DriftState = "changed"     // another content
	Missing    DriftState = "missing"     // nothing is there
	NotRegular DriftState = "not_regular" // a link, a directory, a FIFO; or a link or a mount leads elsewhere
)

// Drift is one file.
type Drift struct {
	Path  string // beneath the restore root
	State DriftState
}

// Drift compares every file of the savepoint with what is beneath a restore root
// now, and returns them in ascending order of their paths, the same ones too. What
// is looked at, and how, is [existing.Read]'s, and so are done and the error.
func (sp Savepoint) Drift(ctx context.Context, root *pathsafe.Dir, done func(bytes int64)) ([]Drift, error) {
	if sp.listing == nil {
		return nil, nil
	}
	entries := make([]verify.Entry, 0, sp.listing.Len())
	paths := make([]pathsafe.Path, 0, sp.listing.Len())
	for e := range sp.listing.Entries() {
		entries, paths = append(entries, e), append(paths, e.Path)
	}
	files, err := existing.Read(ctx, root, paths, done)
	if err != nil {
		return nil, err
	}
	drifts := make([]Drift, len(files))
	for i, f := range files {
		drifts[i] = Drift{paths[i].String(), stateOf(f, entries[i])}
	}
	return drifts, nil
}

func stateOf(f existing.File, e verify.Entry) DriftState {
	switch {
	case f.Absent():
		return Missing
	case f.Refused != nil:
		return NotRegular
	case f.Digest != e.Digest:
		return Changed
	default:
		return Same
	}
}
