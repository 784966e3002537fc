package preview

import (
	"fmt"
	"time"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// Origin says how a preview came about, so that it can be made again.
type Origin struct {
	ProjectRoot string   `json:"project_root"` // absolute
	RunDirs     []string `json:"run_dirs"`     // absolute, in chain order
	Chain       bool     `json:"chain"`
	RestoreRoot string   `json:"restore_root"` // as it was given
	Nonce       string   `json:"nonce"`        // tells previews of one state from one another
	View        *View    `json:"view"`         // the view that was looked at, if there was one
}

// View names a mounted view.
type View struct {
	Mountpoint string `json:"mountpoint"` // absolute
	ID         string `json:"view_id"`
}

// block is the decision block (protocol section 13). Its canonical form is
// what the preview's identity is computed over; the order of fields here is of
// no account.
type block struct {
	ArtifactType    string     `json:"artifact_type"`
	ProtocolVersion string     `json:"protocol_version"`
	SourceID        string     `json:"source_savepoint_id"`         // bundle root, in a chain the chain root
	CurrentID       string     `json:"current_active_savepoint_id"` // of the restore root
	Scope           []string   `json:"restore_scope"`
	Items           []item     `json:"proposed_restorations"`
	ReferenceOnly   []item     `json:"reference_only_items"`
	DoNotRestore    []item     `json:"do_not_restore_items"`
	Conflicts       []conflict `json:"conflicts"`
	Approval        approval   `json:"approval"`

	Candidate candidate `json:"candidate"`
	Trust     string    `json:"trust"` // digest of who is pinned and who is revoked
	Root      rootState `json:"restore_root"`
	Totals    totals    `json:"totals"`
	Origin    Origin    `json:"origin"`
}

// candidate is what would be restored, and who vouches for it.
type candidate struct {
	ChainRoot *string        `json:"chain_root"`
	Runs      []candidateRun `json:"runs"`
	Unsigned  []string       `json:"unsigned_artifacts"` // decision D16
}

type candidateRun struct {
	RunID       string `json:"run_id"`
	BundleRoot  string `json:"bundle_root"`
	ValidatorID string `json:"validator_id"`
	Standing    string `json:"validator_standing"` // with the operator: "unknown" or "pinned"
}

// item is one output (protocol section 8.3).
type item struct {
	ID     string `json:"restore_id"`
	Path   string `json:"item"` // beneath the restore root
	Scope  string `json:"scope"`
	Label  string `json:"label"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Mode   string `json:"mode"`     // permission bits, four octal digits
	Time   string `json:"modified"` // RFC 3339, to the nanosecond
}

// conflict is one entry of the conflict register (protocol section 8.6).
type conflict struct {
	ID         string `json:"conflict_id"`
	Type       string `json:"type"`
	Path       string `json:"item"`
	Current    string `json:"current_state"`
	Claim      string `json:"savepoint_claim"`
	Authority  string `json:"authority_comparison"`
	Risk       string `json:"risk"`
	Resolution string `json:"recommended_resolution"`
	Decision   string `json:"operator_decision"`
}

type approval struct {
	Status    string   `json:"status"`
	Required  []string `json:"required_items"`
	Statement string   `json:"statement"`
}

// rootState is the restore root as it was observed.
type rootState struct {
	Path     string   `json:"path"`
	State    string   `json:"state"`    // see observe
	Warnings []string `json:"warnings"` // decision D17
}

type totals struct {
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// The fixed words of the protocol that a first preview uses (sections 5, 7, 9).
const (
	scopeProject  = "project_state"
	labelActive   = "restore_active"
	labelConflict = "conflict_with_current_state"
	typeState     = "state_conflict"
	typeAuthority = "authority_conflict"
)

// seen is what was found beside the restore itself.
type seen struct {
	root   rootState
	policy trust.Policy
}

func newBlock(r *restore.Restore, o Origin, now seen) block {
	plan := r.Plan()
	b := block{
		ArtifactType:    "restore_preview",
		ProtocolVersion: "restore-v01",
		SourceID:        sourceID(plan),
		CurrentID:       "unknown",
		Scope:           []string{scopeProject},
		ReferenceOnly:   []item{},
		DoNotRestore:    []item{},
		Conflicts:       numbered(append(authorityOf(plan, now.policy), conflictsOf(r.Conflicts())...)),
		Candidate:       candidateOf(plan, now.policy),
		Trust:           now.policy.Digest(),
		Root:            now.root,
		Totals:          totals{plan.Files(), plan.Bytes()},
		Origin:          o,
	}
	b.Items = itemsOf(plan, b.Conflicts)
	b.Approval = approvalOf(b.Items, b.Conflicts)
	return b
}

func sourceID(p *restore.Plan) string {
	if p.IsChain() {
		return p.ChainRoot()
	}
	for run := range p.Runs() {
		return run.Bundle().Root()
	}
	return "unknown"
}

func candidateOf(p *restore.Plan, policy trust.Policy) candidate {
	c := candidate{Unsigned: []string{"PROOF.json"}}
	if p.IsChain() {
		root := p.ChainRoot()
		c.ChainRoot = &root
	}
	for run := range p.Runs() {
		b := run.Bundle()
		c.Runs = append(c.Runs, candidateRun{b.RunID(), b.Root(), b.ValidatorID(), string(policy.Of(b.ValidatorID()))})
	}
	return c
}

// itemsOf numbers the outputs in the order of the plan.
func itemsOf(p *restore.Plan, conflicts []conflict) []item {
	taken := make(map[string]bool, len(conflicts))
	for _, c := range conflicts {
		taken[c.Path] = true
	}
	items := make([]item, 0, p.Files())
	for run := range p.Runs() {
		for o := range run.Bundle().Outputs() {
			path, label := run.Target(o.Path().String()), labelActive
			if taken[path] {
				label = labelConflict
			}
			items = append(items, item{
				ID: fmt.Sprintf("R-%03d", len(items)+1), Path: path,
				Scope: scopeProject, Label: label, SHA256: o.Hash(), Bytes: o.Size(),
				Mode: fmt.Sprintf("%04o", o.Perm()), Time: o.ModTime().UTC().Format(time.RFC3339Nano),
			})
		}
	}
	return items
}

func conflictsOf(found []restore.Conflict) []conflict {
	conflicts := make([]conflict, 0, len(found))
	for _, c := range found {
		conflicts = append(conflicts, conflict{
			Type: typeState, Path: c.Path,
			Current:    c.State,
			Claim:      "the restore would create this path",
			Authority:  "current state outranks the restore candidate",
			Risk:       "a restore never overwrites: the commit will be refused with " + string(c.Failure().Code),
			Resolution: "move the existing entry away, then preview again",
			Decision:   "pending",
		})
	}
	return conflicts
}

// numbered gives conflicts their ids.
func numbered(conflicts []conflict) []conflict {
	for i := range conflicts {
		conflicts[i].ID = fmt.Sprintf("C-%03d", i+1)
	}
	return conflicts
}

func approvalOf(items []item, conflicts []conflict) approval {
	a := approval{Status: "pending", Required: []string{}, Statement: Statement}
	for _, i := range items {
		a.Required = append(a.Required, i.ID)
	}
	for _, c := range conflicts {
		a.Required = append(a.Required, c.ID)
	}
	return a
}
