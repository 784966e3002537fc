package main

import (
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/savepoint"
)

// counts are how many names a rollback or a restore has changed, and how many files are in them;
// how many stayed where something was to be done, and how many files of other processes are kept.
type counts struct {
	removed, created, replaced, adjusted tally
	left, kept                           int
}

// A tally is of names, each with all that is in it, and of the regular files there.
type tally struct{ names, files int }

func (t *tally) add(c action.Content) {
	t.names++
	t.files += c.Files
}

// text has the files where they are not as many as the names.
func (t tally) text(verb string) string {
	if t.names == t.files {
		return number(t.names) + " " + verb
	}
	return fmt.Sprintf("%s %s (%s)", number(t.names), verb, numberOf(t.files, "file"))
}

// counts returns the numbers of changes that were made, or are predicted. Entries that stay are not
// counted as changes.
func (r *rollbackReport) counts() counts {
	n := counts{left: len(r.left), kept: len(r.done.Kept)}
	stays := r.stays()
	for _, c := range r.changes {
		switch {
		case stays[c.Path]:
		case c.Kind == action.Removed:
			n.removed.add(c.Old)
		case c.Kind == action.Created:
			n.created.add(c.New)
		case c.Kind == action.Replaced:
			n.replaced.add(c.New)
		default:
			n.adjusted.names++
		}
	}
	return n
}

// String has what is not zero.
func (n counts) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		text string
	}{
		{n.removed.names, n.removed.text("removed")},
		{n.created.names, n.created.text("created")},
		{n.replaced.names, n.replaced.text("replaced")},
		{n.adjusted.names, "metadata of " + number(n.adjusted.names)},
		{n.left, number(n.left) + " left"},
		{n.kept, number(n.kept) + " kept"},
	} {
		if part.n > 0 {
			parts = append(parts, part.text)
		}
	}
	if len(parts) == 0 {
		return "no name differs"
	}
	return strings.Join(parts, ", ")
}

// fields are the same for a program.
func (n counts) fields() map[string]any {
	of := func(t tally) map[string]any { return map[string]any{"files": t.files, "names": t.names} }
	return map[string]any{
		"created": of(n.created), "kept": n.kept, "left": n.left, "metadata": n.adjusted.names, "removed": of(n.removed), "replaced": of(n.replaced),
	}
}

// stays are the names that stay where something was to be done.
func (r *rollbackReport) stays() map[string]bool {
	stays := map[string]bool{}
	for _, l := range r.left {
		stays[l.Path] = true
	}
	return stays
}

// named are lines that name what went, came and was replaced.
func (r *rollbackReport) named() (lines []string) {
	stays := r.stays()
	for _, c := range r.changes {
		switch {
		case stays[c.Path]:
		case c.Kind == action.Removed:
			lines = append(lines, oneLine(fmt.Sprintf("removed %s: %s", shortPath(c.Path), contentText(c.Old))))
		case c.Kind == action.Created:
			lines = append(lines, oneLine(fmt.Sprintf("created %s: %s", shortPath(c.Path), contentText(c.New))))
		case c.Kind == action.Replaced:
			lines = append(lines, oneLine(fmt.Sprintf("replaced %s: %s, by %s", shortPath(c.Path), contentText(c.Old), contentText(c.New))))
		}
	}
	return lines
}

// lacksSomeOf reports whether a file of a commit stays although the commit is undone.
func (r *rollbackReport) lacksSomeOf(sp savepoint.Savepoint) bool {
	if len(r.left) == 0 || sp.Listing() == nil {
		return false
	}
	stays := r.stays()
	for e := range sp.Listing().Entries() {
		if stays[e.Path.String()] {
			return true
		}
	}
	return false
}
