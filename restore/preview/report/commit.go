package report

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// Commit returns the Restore Commit Report for people, as Markdown.
func Commit(o *preview.Outcome) []byte {
	var b bytes.Buffer
	out := &reporter{w: &b} // a buffer takes everything
	out.line("# Restore Commit Report\n")
	out.line("## 1. Approved Restoration Scope\n")
	out.line("| Scope | Approved? | Notes |\n|---|---:|---|")
	for _, s := range o.Scopes {
		out.row(string(s.Scope), preview.Answer(s.Approved), s.Notes)
	}
	out.line("\n## 2. Items Restored\n")
	out.line("| Restore ID | Item | Scope | Result |\n|---|---|---|---|")
	for _, i := range o.Restored {
		result := i.Result
		if i.Before != "" {
			result += fmt.Sprintf(", before: %.8s, mode %s", strings.TrimPrefix(i.Before, "sha256:"), i.Mode)
		}
		if i.Before != "" && i.SHA256 != "" {
			result += fmt.Sprintf("; now: %.8s", strings.TrimPrefix(i.SHA256, "sha256:"))
		}
		out.row(i.ID, Quote(i.Path), string(i.Scope), result)
	}
	out.line("\n## 3. Items Not Restored\n")
	if out.some(len(o.NotRestored), "| Item | Reason |\n|---|---|") {
		for _, i := range o.NotRestored {
			why := string(i.Label)
			if i.Reason != "" {
				why += "; " + text(i.Reason)
			}
			out.row(i.ID+" "+Quote(i.Path), why)
		}
	}
	out.conflicts("\n## 4. Conflicts Resolved\n", "Resolution", o.Resolved)
	out.conflicts("\n## 5. Conflicts Still Open\n", "Current Handling", o.Open)
	out.line("\n## 6. Updated Working Context\n")
	are, they := "are", "They come"
	if o.Context.Files == 1 {
		are, they = "is", "It comes"
	}
	out.line("%s (%s) %s in place under %s. %s from candidate %s.",
		visible.Count(o.Context.Files, "file"), visible.Count(int(o.Context.Bytes), "byte"), are, Quote(o.RestoreRoot), they, o.SourceID)
	var added []string
	for _, name := range o.Added {
		added = append(added, Quote(name))
	}
	if removed := removedBy(o); removed > 0 {
		out.line("%s %s removed; the directories that %s in are kept.", visible.Count(removed, "file"), was(removed), theyWere(removed))
	}
	out.line("SPECTRUM-06 adds %s: %s. Only these files and the directories above them were changed.",
		visible.Count(len(added), "file"), strings.Join(added, ", "))
	out.line("\n## 7. New Savepoint Generated\n")
	if o.ParentID == preview.Unknown {
		out.line("The savepoint that holds this report. It is the first of this restore root.")
	} else {
		out.line("The savepoint that holds this report. Its parent is %s.", o.ParentID)
	}
	out.line("\nApproved with: %s", text(o.Statement))
	out.line("preview_id %s", o.PreviewID)
	return b.Bytes()
}

// removedBy counts the files that were removed.
func removedBy(o *preview.Outcome) (n int) {
	for _, i := range o.Restored {
		if i.SHA256 == "" && i.Before != "" {
			n++
		}
	}
	return n
}

func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func theyWere(n int) string {
	if n == 1 {
		return "it was"
	}
	return "they were"
}

// some writes the head of a table, or that it has no rows.
func (r *reporter) some(rows int, head string) bool {
	if rows == 0 {
		r.line("None.")
		return false
	}
	r.line("%s", head)
	return true
}

func (r *reporter) conflicts(title, column string, list []preview.Settled) {
	r.line("%s", title)
	if !r.some(len(list), "| Conflict ID | Type | Item | "+column+" |\n|---|---|---|---|") {
		return
	}
	for _, c := range list {
		r.row(c.ID, string(c.Type), Quote(c.Path), text(c.Resolution))
	}
}
