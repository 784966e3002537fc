package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// loadRecord reads a preview that was kept, by its id or the beginning of it.
func loadRecord(state *statedir.Dir, id string) (*preview.Record, error) {
	const name = "name the ID that \"spectrum preview\" has printed, or its first 4 digits or more; \"spectrum status\" lists the open ones"
	if id == latest {
		return nil, refusedHint(fmt.Errorf("an approval names one preview by its ID, so latest is not accepted: %w", errApprovalRequired), name)
	}
	if len(id) < least && hexdigits.Only(id) {
		return nil, refusedHint(fmt.Errorf("%q is too short for the ID of a preview, which requires at least %d digits: %w", id, least, errApprovalRequired), name)
	}
	if found, err := state.FindPreview(id, least); err == nil {
		id = found
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, refusedHint(err, "name more digits of the id")
	}
	raw, err := state.LoadPreview(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refusedHint(fmt.Errorf("there is no preview %q: %w", id, errApprovalRequired), name)
	}
	if err != nil {
		return nil, err
	}
	return preview.ParseRecord(raw, id)
}
