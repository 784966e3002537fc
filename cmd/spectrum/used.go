package main

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/staging"
)

// checkUsed rejects a preview that a commit has used which has ended, as the log has it, or was
// rejected before it was logged, and names that commit: that the preview is stale by now too, or its
// candidate damaged, says less. Any other goes on: what is unfinished or at work is looked at first,
// and a preview that was used is never approved again.
func checkUsed(state *statedir.Dir, record *preview.Record) error {
	used, err := state.Used(record.ID())
	if err != nil || !used {
		return err
	}
	all, _ := actionsOf(state, "") // of a damaged log what comes before the damage
	by := ""
	for _, c := range all {
		if c.Preview != record.ID() {
			continue
		}
		if c.Ended.IsZero() {
			return nil
		}
		by = ", by commit " + c.ID
	}
	if !isQuiet(record.Origin().RestoreRoot) {
		return nil
	}
	return fmt.Errorf("%w%s", preview.ErrUsed, by)
}

// isQuiet reports whether nothing is unfinished in the restore root at a path, and no command at
// work there.
func isQuiet(path string) bool {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	left, err := staging.Leftovers(dir)
	return err == nil && len(left) == 0
}

// loadRecord reads a preview that was kept, by its id or the beginning of it.
func loadRecord(state *statedir.Dir, id string) (*preview.Record, error) {
	const name = "name the ID that \"spectrum preview\" has printed, or its first 4 digits or more; or make a new preview: spectrum preview --restore-root DIR RUN_DIR..."
	if id == latest {
		return nil, refusedHint(fmt.Errorf("an approval is of one preview, so latest names none: %w", errApprovalRequired), name)
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
