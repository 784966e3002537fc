package snapshot

import (
	"fmt"
	"slices"
	"strings"
)

// A Break is a snapshot that the chain of its root does not hold to the one before it.
type Break struct {
	Header  Header // the later one
	Missing string // ID of the one before it, where that is not there: it was pruned, or deleted
	Why     string
}

// Breaks returns where the chains of these snapshots, as [Store.Survey] returns them, do not
// hold. A manifest that is damaged is still there, as far as its name is. Only a record of
// what was pruned can tell whether a missing one was.
func Breaks(all []Header, damaged []*DamageError) []Break {
	type link struct {
		root     string
		sequence int64
	}
	sequences, first := map[string]int64{}, map[link]string{}
	for _, h := range all {
		sequences[h.ID] = h.Sequence
	}
	for _, d := range damaged {
		if sequence, id, err := parseName(d.Path[strings.LastIndexByte(d.Path, '/')+1:]); err == nil {
			sequences[id] = sequence
		}
	}
	var breaks []Break
	for _, h := range all {
		at := link{h.Root, h.Sequence}
		if other, twice := first[at]; twice {
			breaks = append(breaks, Break{Header: h, Why: fmt.Sprintf("snapshot %s has the same number %d", other, h.Sequence)})
			continue
		}
		first[at] = h.ID
		sequence, there := sequences[h.Previous]
		switch {
		case h.Previous != "" && !there:
			breaks = append(breaks, Break{Header: h, Missing: h.Previous, Why: fmt.Sprintf("the one before it, %s, is missing", h.Previous)})
		case h.Previous != "" && sequence != h.Sequence-1:
			breaks = append(breaks, Break{Header: h, Why: fmt.Sprintf("it has number %d, and the one before it number %d", h.Sequence, sequence)})
		}
	}
	return slices.Clip(breaks)
}
