package preview

import (
	"fmt"
	"iter"
	"strings"

	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Named is a run whose signature was verified.
type Named interface {
	RunID() string  // the name of a directory, not signed
	TaskID() string // signed
}

// RunText returns what a person reads of a verified run: its name, which is that of a
// directory and not signed, and the signed task_id where that is another.
func RunText(b Named) string {
	if !IsRenamed(b) {
		return fmt.Sprintf("run %q", b.RunID())
	}
	return fmt.Sprintf("run %q (signed task_id %q)", b.RunID(), Beginning(b.TaskID()))
}

// IsRenamed reports whether the directory of a run has another name than the task_id
// that was signed, which is UTF-8.
func IsRenamed(b Named) bool {
	return strings.ToValidUTF8(b.RunID(), "\uFFFD") != b.TaskID()
}

// Tabled is a bundle that may have a signed block table.
type Tabled interface {
	Blocks() (*blocktable.Table, error)
}

// Unsigned returns which artifacts of some bundles no signature covers: PROOF.json, unless each has a
// block table that can be used. Its digest is signed with that of PROOF.json, which was compared.
func Unsigned[B Tabled](bundles iter.Seq[B]) []string {
	for b := range bundles {
		if table, err := b.Blocks(); table == nil || err != nil {
			return []string{bundle.Proof}
		}
	}
	return []string{}
}

// maxTaskID is how many bytes of a task_id are shown; the JSON has all.
const maxTaskID = 200

// Beginning returns as much of a task_id as is shown.
func Beginning(s string) string {
	if len(s) <= maxTaskID {
		return s
	}
	return strings.ToValidUTF8(s[:maxTaskID], "") + "…"
}
