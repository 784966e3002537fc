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

// RunText returns a verified run in words: the name of its directory, which is not signed, and the signed
// task_id if that differs.
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

// Unsigned returns the artifacts of some bundles that no signature covers: PROOF.json, unless each bundle has
// a usable block table. A block table is signed with the digest of PROOF.json, which was compared.
func Unsigned[B Tabled](bundles iter.Seq[B]) []string {
	for b := range bundles {
		if table, err := b.Blocks(); table == nil || err != nil {
			return []string{bundle.Proof}
		}
	}
	return []string{}
}

// maxTaskID is the number of bytes of a task_id that are shown; the JSON has all.
const maxTaskID = 200

// Beginning returns the part of a task_id that is shown.
func Beginning(s string) string {
	if len(s) <= maxTaskID {
		return s
	}
	return strings.ToValidUTF8(s[:maxTaskID], "") + "…"
}
