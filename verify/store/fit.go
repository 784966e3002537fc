package store

import (
	"fmt"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// An UnfitError is a run that is not for a store: it is too large, or a file beside its artifacts cannot
// be used, so that every preview of it would be held.
type UnfitError struct {
	RunID string
	Op    string // what is not done with it: "pushed" or "fetched"
	File  string // CHANGES or BLOCKS; "" for the whole
	Err   error
}

// Error names the file.
func (e *UnfitError) Error() string {
	if e.File == "" {
		return fmt.Sprintf("run %q is not %s: %v", e.RunID, e.Op, e.Err)
	}
	return fmt.Sprintf("run %q is not %s: %s cannot be used: %v", e.RunID, e.Op, e.File, e.Err)
}

// Unwrap returns the reason.
func (e *UnfitError) Unwrap() error { return e.Err }

// checkFit requires that a store can have a bundle, and that its change set and its block table, if there
// are any, can be used.
func checkFit(b *verify.Bundle) error {
	if err := checkRunID(b.RunID()); err != nil {
		return &UnfitError{b.RunID(), "pushed", "", err}
	}
	if b.Len() > maxFiles {
		return &UnfitError{b.RunID(), "pushed", "", fmt.Errorf("it has %d outputs; a store takes at most %d in a run", b.Len(), maxFiles)}
	}
	dirs := directoriesOf(func(yield func(pathsafe.Path) bool) {
		for o := range b.Outputs() {
			if !yield(o.Path()) {
				return
			}
		}
	})
	if err := checkDirectories(dirs, b.Len()); err != nil {
		return &UnfitError{b.RunID(), "pushed", "", err}
	}
	if _, err := b.Changes(); err != nil {
		return &UnfitError{b.RunID(), "pushed", bundle.ChangesFile, err}
	}
	if _, err := b.Blocks(); err != nil {
		return &UnfitError{b.RunID(), "pushed", blocksFile, err}
	}
	return nil
}

// metadataOf is a file beside the artifacts, as it was verified; nil without.
func metadataOf(b *verify.Bundle, name string) []byte {
	if changes, _ := b.Changes(); name == bundle.ChangesFile && changes != nil {
		return changes.Bytes()
	}
	if table, _ := b.Blocks(); name == blocksFile && table != nil {
		return table.Bytes()
	}
	return nil
}
