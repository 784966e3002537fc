package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/staging"
)

// A halftree compares the names of an attempt that halts a root with the trees before and after it:
// which one they are in, what differs from both, and where the rest is.
type halftree struct {
	*staging.Inspection
	before, after, neither int // how many names
	foreign                int // of those as neither at which something is
}

// inspect looks at what each attempt has left. What cannot be looked at is not known.
func (e *haltedError) inspect(state *statedir.Dir) {
	root, err := pathsafe.OpenRoot(e.root)
	if err != nil {
		return
	}
	defer root.Close()
	for i := range e.attempts {
		if st, err := root.Lstat(e.attempts[i].Staging); err == nil && int(st.UID) != os.Geteuid() {
			e.attempts[i].owner = int(st.UID)
		}
	}
	key, err := state.JournalKey()
	if err != nil {
		return
	}
	for i := range e.attempts {
		found, err := staging.Inspect(root, key, e.attempts[i].Staging)
		if err == nil {
			e.attempts[i].tree = countNames(found)
		}
		e.attempts[i].mount, _ = errors.AsType[*pathsafe.MountError](err)
	}
}

func countNames(found *staging.Inspection) *halftree {
	t := &halftree{Inspection: found}
	for _, n := range found.Names {
		switch n.State {
		case staging.AsBefore:
			t.before++
		case staging.AsAfter:
			t.after++
		default:
			t.neither++
			if !n.Free {
				t.foreign++
			}
		}
	}
	return t
}

// maxNamed is how many names of each kind are printed.
const maxNamed = 5

// stands describes which tree the root has, which names differ from both, and where the other
// entries are.
func (a *haltedAttempt) stands(root string) []string {
	t := a.tree
	if a.Staging == "" {
		lines := []string{"its staging directory was removed from the root, so the names that it has changed are not known"}
		if a.before != "" {
			lines = append(lines, fmt.Sprintf("what was there before is in snapshot %s: compare it with \"spectrum snapshot diff %s\"; once the root is released, \"spectrum snapshot restore %s%s\" brings it back", a.before[:shortest], a.before[:shortest], foreignOption(root), a.before[:shortest]))
		}
		return lines
	}
	if a.mount != nil {
		return []string{fmt.Sprintf("the names that it has changed cannot be determined: %s; what it has moved away is in %s", oneLine(a.mount.Error()), shellQuote(filepath.Join(root, a.Staging)))}
	}
	if t == nil {
		return []string{fmt.Sprintf("the names that it has changed are not known, since its journal cannot be read; what it has moved away is in %s", shellQuote(filepath.Join(root, a.Staging)))}
	}
	var lines []string
	all, but := numberOf(len(t.Names), "name"), ""
	if len(t.Foreign) > 0 {
		but = ", but a directory that it has made contains other files"
	}
	switch {
	case t.after == 0 && t.neither == 0:
		lines = append(lines, fmt.Sprintf("the root is as before it: all of its %s are%s", all, but))
	case t.before == 0 && t.neither == 0:
		lines = append(lines, fmt.Sprintf("the root is as after it: all of its %s are%s", all, but))
	default:
		lines = append(lines, fmt.Sprintf("the root is neither as before it nor as after it: of its %s %d are as before, %d as after, %d as neither; no other name was touched%s", all, t.before, t.after, t.neither, but))
	}
	lines = append(lines, t.named(root, "neither: ", staging.AsNeither)...)
	for _, d := range t.Replaced {
		lines = append(lines, fmt.Sprintf("%s was replaced by another directory: move the original back to this name first; \"find %s -xdev -inum %d\" finds it", shellQuote(filepath.Join(root, d.Path)), shellQuote(root), d.Inode))
	}
	lines = append(lines, firstPaths(root, "in the way of its names: ", t.InTheWay)...)
	lines = append(lines, firstPaths(root, "other files, in a directory that it has made: ", t.Foreign)...)
	if t.before+t.neither > 0 {
		lines = append(lines, t.named(root, "as after: ", staging.AsAfter)...)
	}
	if a.Kind != staging.KindCommit && a.before != "" {
		lines = append(lines, fmt.Sprintf("all that was there before is also in snapshot %s: \"spectrum snapshot restore --to DIR %s\" writes it out beside the root", a.before[:shortest], a.before[:shortest]))
	}
	return lines
}

// firstPaths has a line for each of the first paths, and one with the number of the others.
func firstPaths(root, what string, paths []string) (lines []string) {
	for _, path := range paths[:min(len(paths), maxNamed)] {
		lines = append(lines, what+shellQuote(filepath.Join(root, path)))
	}
	if more := len(paths) - maxNamed; more > 0 {
		lines = append(lines, fmt.Sprintf("%s%s; --json has all", what, numberOf(more, "more name")))
	}
	return lines
}

// named describes, for the first names in a state, where their old and new entries are.
func (t *halftree) named(root, what string, stands staging.NameState) (lines []string) {
	more := 0
	for _, n := range t.Names {
		if n.State != stands {
			continue
		}
		if len(lines) == maxNamed {
			more++
			continue
		}
		line := what + shellQuote(filepath.Join(root, n.Path))
		var others []string
		if n.Free && stands == staging.AsNeither {
			others = append(others, "nothing is there")
		}
		if n.HasOld {
			others = append(others, "what was there before: "+pathIn(root, n.Before))
		}
		if n.HasNew && stands != staging.AsAfter {
			others = append(others, "what was to be moved there: "+pathIn(root, n.After))
		}
		if len(others) > 0 {
			line += " (" + strings.Join(others, "; ") + ")"
		}
		lines = append(lines, line)
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("%s%s; --json has all", what, numberOf(more, "more name")))
	}
	return lines
}

func pathIn(root, path string) string {
	if path == "" {
		return "not found in the root"
	}
	return shellQuote(filepath.Join(root, path))
}

// maxFields is how many names the JSON has.
const maxFields = 10_000

// fields is a halftree for a program; nil where it is not known.
func (t *halftree) fields(root string) any {
	if t == nil {
		return nil
	}
	names := []any{}
	for _, n := range t.Names[:min(len(t.Names), maxFields)] {
		names = append(names, map[string]any{
			"after": pathField(root, n.After), "before": pathField(root, n.Before), "path": jsonText(n.Path),
			"stands": standsText[n.State],
		})
	}
	replaced := []any{}
	for _, d := range t.Replaced {
		replaced = append(replaced, map[string]any{"inode": strconv.FormatUint(d.Inode, 10), "path": jsonText(filepath.Join(root, d.Path))})
	}
	return map[string]any{"as_after": t.after, "as_before": t.before, "as_neither": t.neither, "foreign": jsonTexts(t.Foreign), "in_the_way": jsonTexts(t.InTheWay), "names": names, "replaced": replaced}
}

var standsText = map[staging.NameState]string{staging.AsBefore: "before", staging.AsAfter: "after", staging.AsNeither: "neither"}

func pathField(root, path string) any {
	if path == "" {
		return nil
	}
	return jsonText(filepath.Join(root, path))
}
