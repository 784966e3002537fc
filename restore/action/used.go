package action

import (
	"fmt"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/staging"
)

// UsedPreviews has the previews that were used up.
type UsedPreviews interface {
	// Used reports whether the preview with an ID was used up.
	Used(id string) (bool, error)
}

// CheckUsed rejects a preview that a commit has used which has ended, as the log has it, or was
// rejected before it was logged, and names that commit: that the preview is stale by now too, or its
// candidate damaged, says less. Any other is not rejected here: what is unfinished or at work in the
// root is looked at first, and a preview that was used is never approved again.
func CheckUsed(record *preview.Record, all UsedPreviews, read ReadLog) error {
	used, err := all.Used(record.ID())
	if err != nil || !used {
		return err
	}
	actions, _ := read.actions("") // of a damaged log, the entries before the damage
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
	left, err := LeftoversAt(path)
	return err == nil && len(left) == 0
}

// HasUnfinished reports whether the restore root at a path has the staging directory of a commit: the
// commit is at work there, or was killed.
func HasUnfinished(path, commit string) bool {
	left, _ := LeftoversAt(path)
	return slices.ContainsFunc(left, func(name string) bool {
		attempt, kind := staging.AttemptOf(name)
		return attempt == commit && kind == staging.KindCommit
	})
}

// LeftoversAt is [staging.Leftovers] of the restore root at a path.
func LeftoversAt(path string) ([]string, error) {
	dir, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	return staging.Leftovers(dir)
}
