package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/restore/action"
)

// notDoneOf returns the names that were left though the snapshot has them otherwise, and why.
func notDoneOf(left []action.Left) (paths []string, why string) {
	isUnread, isFixed := false, false
	for _, l := range left {
		if l.Unread || l.Fixed != "" {
			paths = append(paths, l.Path)
		}
		isUnread, isFixed = isUnread || l.Unread, isFixed || l.Fixed != ""
	}
	switch {
	case isUnread && isFixed:
		return paths, "could not be read, or cannot be changed"
	case isFixed:
		return paths, "cannot be changed"
	}
	return paths, "could not be read"
}

// looseHint returns how to change what stays beneath a root: for immutable or append-only entries
// without these flags, for all others the text of other.
func looseHint(root string, left []action.Left, other string) string {
	var fixed []string
	others := false
	for _, l := range left {
		others = others || l.Fixed == "" && (l.Unread || l.Committed)
		if l.Fixed != "" && !slices.Contains(fixed, l.Fixed) {
			fixed = append(fixed, l.Fixed)
		}
	}
	if len(fixed) == 0 {
		return other
	}
	hint := "as root: chattr -ia"
	for _, path := range fixed[:min(len(fixed), maxNamed)] {
		hint += " " + shellQuote(filepath.Join(root, path))
	}
	if more := len(fixed) - maxNamed; more > 0 {
		hint += fmt.Sprintf(" and %s more (\"lsattr -R %s\" shows them)", number(more), shellQuote(root))
	}
	if others {
		hint += "; " + other
	}
	return hint
}
