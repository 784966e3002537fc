package preview

import (
	"fmt"
	"time"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Outcome is the Restore Commit Report (protocol section 11): the effects of an approved restore. It is made
// before anything is written, and is true once the commit is complete.
type Outcome struct {
	ArtifactType    string          `json:"artifact_type"`
	ProtocolVersion string          `json:"protocol_version"`
	PreviewID       string          `json:"preview_id"`
	SourceID        string          `json:"source_savepoint_id"`
	RestoredID      string          `json:"restored_candidate_id"` // differs from the source if a part is restored
	Statement       string          `json:"approval"`
	RestoreRoot     string          `json:"restore_root"`
	ParentID        string          `json:"parent_savepoint_id"`
	Scopes          []approvedScope `json:"approved_scopes"`
	Restored        []restoredItem  `json:"items_restored"`
	NotRestored     []skippedItem   `json:"items_not_restored"`
	Resolved        []Settled       `json:"conflicts_resolved"`
	Open            []Settled       `json:"conflicts_open"`
	Context         workingContext  `json:"updated_working_context"`
	Added           []string        `json:"result_artifacts"` // files that SPECTRUM-06 adds
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
	Label  Label       `json:"label"`
	Result string      `json:"result"`
	SHA256 string      `json:"sha256"` // "" of what was removed
	Bytes  int64       `json:"bytes"`
	Before string      `json:"replaced_sha256,omitzero"` // of the replaced or removed file, which a rollback restores
	Mode   string      `json:"replaced_mode,omitzero"`   // of that file
}

type skippedItem struct {
	ID     string `json:"restore_id"`
	Path   string `json:"item"`
	Label  Label  `json:"label"`
	Reason string `json:"reason"`
}

// Settled is a conflict with the decision on it.
type Settled struct {
	ID         string       `json:"conflict_id"`
	Type       ConflictType `json:"type"`
	Path       string       `json:"item"`
	Resolution string       `json:"resolution"`
}

type workingContext struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// CandidateCompleted is the member of a savepoint's constraints with the completion time of its candidate;
// RFC 3339, or missing.
const CandidateCompleted = "candidate_completed_at"

// Completed returns the completion time of the previewed candidate. If that is unknown or in the future, it
// returns the time of the active savepoint, so that such a candidate does not hide that a later one is stale;
// the zero time if neither is known.
func (a *Approved) Completed() time.Time {
	d := a.approval.preview.decided
	completed, undated := completedOf(d.plan)
	if undated > 0 || d.future {
		return d.request.Current.Completed
	}
	return completed
}

// Outcome returns the report of the approved restore.
func (a *Approved) Outcome() *Outcome {
	p := a.approval.preview
	o := &Outcome{
		ArtifactType: "restore_commit", ProtocolVersion: p.block.ProtocolVersion, PreviewID: p.id,
		SourceID: p.block.SourceID, RestoredID: SourceID(a.restore.Plan()), Statement: a.approval.statement.String(),
		RestoreRoot: p.block.Root.Path, ParentID: p.block.CurrentID,
		Restored: []restoredItem{}, NotRestored: []skippedItem{}, Resolved: []Settled{}, Open: []Settled{},
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
		switch why, left := a.excluded[i.Number]; {
		case approved[i.Number]:
			restored := restoredItem{ID: i.ID, Path: i.Path, Scope: i.Scope, Label: OperatorApproved, Result: "restored", SHA256: i.SHA256, Bytes: i.Bytes}
			switch {
			case i.Class == Replaces:
				restored.Result, restored.Before, restored.Mode = "replaced", i.Before.SHA256, i.Before.Mode
			case i.Class == Removes:
				restored.Result, restored.Before, restored.Mode = "removed", i.Before.SHA256, i.Before.Mode
			case i.Class == Identical && i.Removed:
				restored.Result = "was gone already"
			case i.Class == Identical:
				restored.Result = "identical, stays as it was"
			}
			o.Restored = append(o.Restored, restored)
			if i.Removed {
				continue
			}
			o.Context.Files++
			o.Context.Bytes += i.Bytes
		case left:
			o.NotRestored = append(o.NotRestored, skippedItem{i.ID, i.Path, OperatorRejected, why})
		default:
			o.NotRestored = append(o.NotRestored, skippedItem{i.ID, i.Path, i.Label, i.Reason})
		}
	}
}

func (a *Approval) fillScopes(o *Outcome) {
	for _, s := range scope.All() {
		all := a.preview.decided.numbers(func(i *Item) bool { return i.Scope == s })
		in := 0
		for _, r := range o.Restored {
			if r.Scope == s {
				in++
			}
		}
		notes := ""
		if len(all) > 0 {
			notes = fmt.Sprintf("%s of %s", visible.Number(in), visible.Count(len(all), "item"))
		}
		o.Scopes = append(o.Scopes, approvedScope{s, in > 0, notes})
	}
}

func (a *Approval) fillConflicts(o *Outcome) {
	for n, c := range a.preview.block.Conflicts {
		s := Settled{c.ID, c.Type, c.Path, a.decisions[n]}
		if s.Resolution == "" {
			s.Resolution = "left open: none of its items was approved"
			o.Open = append(o.Open, s)
			continue
		}
		o.Resolved = append(o.Resolved, s)
	}
}

// JSON returns the report as canonical JSON.
func (o *Outcome) JSON() ([]byte, error) { return canonjson.Marshal(o) }
