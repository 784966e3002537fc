package main

import (
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// TestCounts: what was to go and stays is not counted as removed; what is zero is left out.
func TestCounts(t *testing.T) {
	r := countsReport()
	const want = "2 removed (4 files), 1 created (3 files), 1 replaced, metadata of 1, 2 left, 1 kept"
	if got := r.counts().String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.changes, r.left, r.done = r.changes[4:5], nil, action.Done{}
	if got := r.counts().String(); got != "1 replaced" {
		t.Errorf("%q", got)
	}
	if got := (&rollbackReport{}).counts().String(); got != "no name differs" {
		t.Errorf("%q", got)
	}
}

// TestStayingNamesAreNotRemoved: names that stay are not named as removed.
func TestStayingNamesAreNotRemoved(t *testing.T) {
	r := countsReport()
	lines := r.named()
	if len(lines) != 4 || !strings.HasPrefix(lines[1], "created new: ") && !strings.HasPrefix(lines[2], "created new: ") || lines[0] != "removed gone: file, 3 bytes" || lines[3] != "replaced other: file, 3 bytes, by file, 3 bytes" {
		t.Errorf("%q", lines)
	}
}

// countsReport is of a rollback that has done some of everything.
func countsReport() *rollbackReport {
	file := action.Content{Type: snapshot.File, Names: 1, Files: 1, Bytes: 3}
	dir := action.Content{Type: snapshot.Dir, Names: 4, Files: 3, Bytes: 9}
	return &rollbackReport{
		changes: []action.Change{
			{Path: "gone", Kind: action.Removed, Old: file},
			{Path: "dir", Kind: action.Removed, Old: dir},
			{Path: "stays", Kind: action.Removed, Old: dir},
			{Path: "new", Kind: action.Created, New: dir},
			{Path: "other", Kind: action.Replaced, Old: file, New: file},
			{Path: "mode", Kind: action.Adjusted, Old: dir, New: dir},
		},
		left: []action.Left{{Path: "stays", Why: "busy"}, {Path: "elsewhere", Why: "a socket"}},
		done: action.Done{Kept: []staging.Kept{{At: "spectrum-kept/x"}}},
	}
}
