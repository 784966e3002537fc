package preview

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Outcome is the Restore Commit Report (protocol section 11): what an approved
// restore has done once it is complete. It is made before anything is written,
// and counts from the moment at which the commit is complete.
type Outcome struct {
	ArtifactType    string          `json:"artifact_type"`
	ProtocolVersion string          `json:"protocol_version"`
	PreviewID       string          `json:"preview_id"`
	SourceID        string          `json:"source_savepoint_id"`
	RestoredID      string          `json:"restored_candidate_id"` // another one for a part of the source (decision D13)
	Statement       string          `json:"approval"`
	RestoreRoot     string          `json:"restore_root"`
	ParentID        string          `json:"parent_savepoint_id"`
	Scopes          []approvedScope `json:"approved_scopes"`
	Restored        []restoredItem  `json:"items_restored"`
	NotRestored     []skippedItem   `json:"items_not_restored"`
	Resolved        []settled       `json:"conflicts_resolved"`
	Open            []settled       `json:"conflicts_open"`
	Context         workingContext  `json:"updated_working_context"`
	Added           []string        `json:"result_artifacts"` // files that the law adds
}

type approvedScope struct {
	Scope    scope.Scope `json:"scope"`
	Approved bool        `json:"approved"`
	Notes    string      `json:"notes"`
}

type restoredItem struct {
	ID     string      `json:"restore_id"`
	Path   string      `json:"item"`
	Scope  scope.Scope `json:"scope"`
	Label  label       `json:"label"`
	Result string      `json:"result"`
	SHA256 string      `json:"sha256"` // "" of what was removed
	Bytes  int64       `json:"bytes"`
	Before string      `json:"replaced_sha256,omitzero"` // of the file that was there, or was removed; a rollback brings it back
	Mode   string      `json:"replaced_mode,omitzero"`   // of that file
}

type skippedItem struct {
	ID     string `json:"restore_id"`
	Path   string `json:"item"`
	Label  label  `json:"label"`
	Reason string `json:"reason"`
}

type settled struct {
	ID         string       `json:"conflict_id"`
	Type       conflictType `json:"type"`
	Path       string       `json:"item"`
	Resolution string       `json:"resolution"`
}

type workingContext struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// CandidateCompleted is the member of a savepoint's constraints that says when
// the candidate was completed that it was made of; RFC 3339, or missing.
const CandidateCompleted = "candidate_completed_at"

// Completed is when the candidate was completed that the operator looked at. For one whose
// date is unknown or in the future it is what the active savepoint has, so that no such
// candidate hides that a later one is stale; the zero time where nothing is known.
func (a *Approved) Completed() time.Time {
	d := a.approval.preview.decided
	completed, undated := completedOf(d.plan)
	if undated > 0 || d.future {
		return d.request.Current.Completed
	}
	return completed
}

// Outcome says what the approved restore does when all of it is in place.
func (a *Approved) Outcome() *Outcome {
	p := a.approval.preview
	o := &Outcome{
		ArtifactType: "restore_commit", ProtocolVersion: p.block.ProtocolVersion, PreviewID: p.id,
		SourceID: p.block.SourceID, RestoredID: SourceID(a.restore.Plan()), Statement: a.approval.statement.String(),
		RestoreRoot: p.block.Root.Path, ParentID: p.block.CurrentID,
		Restored: []restoredItem{}, NotRestored: []skippedItem{}, Resolved: []settled{}, Open: []settled{},
	}
	for run := range a.restore.Plan().Runs() {
		o.Added = append(o.Added, run.Target(restore.ManifestName), run.Target(restore.ReportName))
	}
	a.approval.fillItems(o)
	a.approval.fillScopes(o)
	a.approval.fillConflicts(o)
	return o
}

func (a *Approval) fillItems(o *Outcome) {
	approved := map[int]bool{}
	for _, n := range a.items {
		approved[n] = true
	}
	for _, i := range a.preview.decided.items {
		switch why, left := a.excluded[i.number]; {
		case approved[i.number]:
			restored := restoredItem{ID: i.ID, Path: i.Path, Scope: i.Scope, Label: operatorApproved, Result: "restored", SHA256: i.SHA256, Bytes: i.Bytes}
			switch {
			case i.Class == replaces:
				restored.Result, restored.Before, restored.Mode = "replaced", i.Before.SHA256, i.Before.Mode
			case i.Class == removes:
				restored.Result, restored.Before, restored.Mode = "removed", i.Before.SHA256, i.Before.Mode
			case i.Class == identical && i.removed:
				restored.Result = "was gone already"
			case i.Class == identical:
				restored.Result = "identical, stays as it was"
			}
			o.Restored = append(o.Restored, restored)
			if i.removed {
				continue
			}
			o.Context.Files++
			o.Context.Bytes += i.Bytes
		case left:
			o.NotRestored = append(o.NotRestored, skippedItem{i.ID, i.Path, operatorRejected, why})
		default:
			o.NotRestored = append(o.NotRestored, skippedItem{i.ID, i.Path, i.Label, i.Reason})
		}
	}
}

func (a *Approval) fillScopes(o *Outcome) {
	for _, s := range scope.All() {
		all := a.preview.decided.numbers(func(i *item) bool { return i.Scope == s })
		in := 0
		for _, r := range o.Restored {
			if r.Scope == s {
				in++
			}
		}
		notes := ""
		if len(all) > 0 {
			notes = fmt.Sprintf("%d of %d items", in, len(all))
		}
		o.Scopes = append(o.Scopes, approvedScope{s, in > 0, notes})
	}
}

func (a *Approval) fillConflicts(o *Outcome) {
	for n, c := range a.preview.block.Conflicts {
		s := settled{c.ID, c.Type, c.Path, a.decisions[n]}
		if s.Resolution == "" {
			s.Resolution = "left open: none of its items was approved"
			o.Open = append(o.Open, s)
			continue
		}
		o.Resolved = append(o.Resolved, s)
	}
}

// JSON is the report as canonical JSON.
func (o *Outcome) JSON() ([]byte, error) { return canonjson.Marshal(o) }

// Markdown is the report for people.
func (o *Outcome) Markdown() []byte {
	var b bytes.Buffer
	out := &reporter{w: &b} // a buffer takes everything
	out.line("# Restore Commit Report\n")
	out.line("## 1. Approved Restoration Scope\n")
	out.line("| Scope | Approved? | Notes |\n|---|---:|---|")
	for _, s := range o.Scopes {
		out.row(string(s.Scope), answer(s.Approved), s.Notes)
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
			out.row(i.ID+" "+Quote(i.Path), joined(string(i.Label), text(i.Reason)))
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
		count(o.Context.Files, "file"), count(int(o.Context.Bytes), "byte"), are, Quote(o.RestoreRoot), they, o.SourceID)
	var added []string
	for _, name := range o.Added {
		added = append(added, Quote(name))
	}
	if removed := o.removed(); removed > 0 {
		out.line("%s that stood there %s removed; the directories that %s in are kept.", count(removed, "file"), was(removed), theyWere(removed))
	}
	out.line("SPECTRUM-06 adds %s: %s. Beside these files and the directories that lead to them nothing else was changed.",
		count(len(added), "file"), strings.Join(added, ", "))
	out.line("\n## 7. New Savepoint Generated\n")
	if o.ParentID == unknown {
		out.line("The savepoint that holds this report. It is the first of this restore root.")
	} else {
		out.line("The savepoint that holds this report. Its parent is %s.", o.ParentID)
	}
	out.line("\nApproved with: %s", text(o.Statement))
	out.line("preview_id %s", o.PreviewID)
	return b.Bytes()
}

// removed counts the files that were removed.
func (o *Outcome) removed() (n int) {
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

func (r *reporter) conflicts(title, column string, list []settled) {
	r.line("%s", title)
	if !r.some(len(list), "| Conflict ID | Type | Item | "+column+" |\n|---|---|---|---|") {
		return
	}
	for _, c := range list {
		r.row(c.ID, string(c.Type), Quote(c.Path), text(c.Resolution))
	}
}
