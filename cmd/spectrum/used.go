package main

import (
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// checkUsed rejects a preview that was approved before, and names the commit that used it where
// the log has it: that it is stale by now too says less. One whose commit has not ended goes on,
// so that this is ended first.
func checkUsed(state *statedir.Dir, record *preview.Record) error {
	used, err := state.Used(record.ID())
	if err != nil || !used {
		return err
	}
	all, _ := actionsOf(state, "") // of a damaged log what comes before the damage
	for _, c := range slices.Backward(all) {
		if c.Preview != record.ID() {
			continue
		}
		if c.Ended.IsZero() {
			return nil
		}
		return fmt.Errorf("%w, by commit %s", preview.ErrUsed, c.ID)
	}
	return preview.ErrUsed
}
