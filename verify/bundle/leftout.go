package bundle

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// Whole is the output that represents the project root.
const Whole = "."

// Why is the reason for which [Seal] leaves out an entry of a directory.
type Why string

// The reasons.
const (
	History    Why = "history"  // .git, and the run directories in CONTRACTS/_runs or LAW/CONTRACTS/_runs
	ForRestore Why = "reserved" // a name at the top that a restore keeps for itself
	Private    Why = "private"  // [SealOptions.Private]
	Excluded   Why = "excluded" // [SealOptions.Exclude]
	Ignored    Why = "ignored"  // a file named [ignore.File]
	Special    Why = "special"  // not a regular file, with [SealOptions.SkipSpecial]
)

// LeftOut lists the paths that were left out for one reason.
type LeftOut struct {
	Why   Why
	Kind  string   // for Special: "a symbolic link", "a FIFO", "a socket", "a special file"
	Paths []string // in ascending order; a directory includes everything in it
}

// leftOut is one of them.
type leftOut struct {
	path string
	why  Why
	kind string
}

// group sorts the left-out paths by reason and kind.
func group(found []leftOut) []LeftOut {
	slices.SortFunc(found, func(a, b leftOut) int {
		return cmp.Or(strings.Compare(string(a.why), string(b.why)), strings.Compare(a.kind, b.kind), strings.Compare(a.path, b.path))
	})
	var groups []LeftOut
	for _, one := range slices.Compact(found) {
		last := len(groups) - 1
		if last < 0 || groups[last].Why != one.why || groups[last].Kind != one.kind {
			groups = append(groups, LeftOut{one.why, one.kind, nil})
			last++
		}
		groups[last].Paths = append(groups[last].Paths, one.path)
	}
	return groups
}

// A SpecialError lists entries that are not regular files.
type SpecialError struct{ Found []LeftOut } // not empty, one for each kind

func (e *SpecialError) Error() string {
	if len(e.Found) == 1 && len(e.Found[0].Paths) == 1 {
		return fmt.Sprintf("output %q is %s; only regular files can be sealed", e.Found[0].Paths[0], e.Found[0].Kind)
	}
	kinds := make([]string, len(e.Found))
	for i, f := range e.Found {
		kinds[i] = f.String()
	}
	return "only regular files can be sealed, and there are " + strings.Join(kinds, "; ")
}

// maxPaths is how many paths [LeftOut.String] names.
const maxPaths = 10

// String returns the number and the first of the paths: 2 symbolic links: "a", "b".
func (l LeftOut) String() string {
	var b strings.Builder
	what := "name"
	if l.Kind != "" {
		_, what, _ = strings.Cut(l.Kind, " ")
	}
	plural := "s"
	if len(l.Paths) == 1 {
		plural = ""
	}
	fmt.Fprintf(&b, "%d %s%s: ", len(l.Paths), what, plural)
	for i, path := range l.Paths[:min(len(l.Paths), maxPaths)] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", path)
	}
	if more := len(l.Paths) - maxPaths; more > 0 {
		fmt.Fprintf(&b, ", and %d more", more)
	}
	return b.String()
}

func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	case fs.ModeSocket:
		return "a socket"
	default:
		return "a special file"
	}
}
