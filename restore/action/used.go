package action

import (
	"fmt"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/staging"
)

// CheckUsed rejects a preview that a commit has used which has ended, as the actions of the log have
// it, or was rejected before it was logged, and names that commit: that the preview is stale by now
// too, or its candidate damaged, says less. Any other is not rejected here: what is unfinished or at
// work in the root is looked at first, and a preview that was used is never approved again.
func CheckUsed(record *preview.Record, actions []*audit.Action) error {
	by := ""
	for _, c := range actions {
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
