package main

import (
	"fmt"
	"path/filepath"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/staging"
)

// tellStanding names what a recovery has kept of other processes, and what it could not remove.
func (a *app) tellStanding(root string, o *staging.Outcome) {
	var lines []string
	for _, k := range o.Kept {
		lines = append(lines, keptLine(root, k))
	}
	a.tellFew(lines)
	a.tellFew(leftLines(stayedOf(o)))
}

// keptLine returns where a kept entry that another process put or changed at a name is, and why.
func keptLine(root string, k staging.Kept) string {
	what := "was changed by another process meanwhile; what it had is kept in"
	switch {
	case k.Earlier:
		what = "was kept by an earlier recovery, which was killed, in"
	case k.Old:
		what = "has a newer file of another process, which stays; the file that was there is kept in"
	case k.Open || k.Undone:
		what = "may be open for writing by another process, so it is kept in"
	}
	return fmt.Sprintf("%s %s %s", shortPath(k.Path.String()), what, shellQuote(filepath.Join(root, k.At)))
}

// keptFields are the same for --json.
func keptFields(root string, all []staging.Kept) []any {
	fields := []any{}
	for _, k := range all {
		fields = append(fields, map[string]any{"at": jsonText(filepath.Join(root, k.At)), "path": jsonText(k.Path.String())})
	}
	return fields
}

// stayedOf are the old entries that a completed rollback or restore has not removed.
func stayedOf(o *staging.Outcome) (left []action.Left) {
	for _, s := range o.Stayed {
		left = append(left, action.Left{Path: s.Path.String(), Why: s.Why.Error()})
	}
	return left
}
