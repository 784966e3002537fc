package preview

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// ErrUnsettled means that the restore root, or what leads to it, changed while it was looked
// at.
var ErrUnsettled = machine.Disturbed("the restore root changes while it is examined")

// Preview is a restore as it was shown. It does not change.
type Preview struct {
	restore   *restore.Restore
	request   Request
	block     Block
	decided   *deciding
	canonical []byte
	id        string
	witness   witness
	names     map[string]sight     // what was at the paths of the plan
	held      []quarantine.Finding // what holds the candidate in quarantine
}

// New makes the preview of a restore, unless the operator's trust forbids that:
// the error is then [ErrRevoked] or [ErrQuarantined]. The restore stays the
// caller's to close.
func New(ctx context.Context, r *restore.Restore, q Request) (*Preview, error) {
	if err := checkTrust(r.Plan(), q.Trust); err != nil {
		return nil, err
	}
	if q.Asked.Replace != r.Replaces() && !r.Plan().IsChangeSet() {
		return nil, errors.New("internal error: the restore and the request differ in what is replaced")
	}
	name := q.Origin.RestoreRoot
	before, err := observe(ctx, r, name)
	if err != nil {
		return nil, fmt.Errorf("looking at restore root %q: %w", name, err)
	}
	d, err := decide(ctx, r, &q, before)
	if err != nil {
		return nil, err
	}
	after, err := observe(ctx, r, name)
	if err == nil && !after.equals(&before) {
		err = ErrUnsettled
	}
	if err != nil {
		return nil, fmt.Errorf("looking at restore root %q: %w", name, err)
	}
	root, err := after.rootState(r.Root(), name)
	if err != nil {
		return nil, err
	}
	p := &Preview{restore: r, request: q, block: d.block(root), decided: d, witness: witness{after.witness, q.Attempts}, names: after.names}
	if p.canonical, err = canonjson.Marshal(p.block); err != nil {
		return nil, err
	}
	p.id = identity(p.canonical)
	p.held = p.block.Findings
	return p, nil
}

// FindingsOf are what the rules of protocol section 12 have against the candidate
// of a restore that [New] has rejected for want of trust, in their order, with the
// reason of that refusal among them.
func FindingsOf(ctx context.Context, r *restore.Restore, q Request, why error) ([]quarantine.Finding, error) {
	d, err := decide(ctx, r, &q, observed{})
	if err != nil {
		return nil, err
	}
	trust := quarantine.Finding{Rule: quarantine.ConflictsWithInstructions, Detail: strconv.QuoteToGraphic(why.Error())}
	return append([]quarantine.Finding{trust}, d.quarantined()...), nil
}

// identity is the preview_id of a canonical decision block.
func identity(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// ID is the preview's identity: 64 lower-case hex digits, the same wherever and
// whenever the same candidate is compared with the same state with the same
// questions.
func (p *Preview) ID() string { return p.id }

// Source names the candidate; see [SourceID].
func (p *Preview) Source() string { return p.block.SourceID }

// BundleRoots are the roots of the candidate's bundles, in chain order.
func (p *Preview) BundleRoots() []string {
	var roots []string
	for _, run := range p.block.Candidate.Runs {
		roots = append(roots, run.BundleRoot)
	}
	return roots
}

// Findings are what the rules of protocol section 12 have against the candidate,
// in their order.
func (p *Preview) Findings() []quarantine.Finding {
	return slices.Clone(p.block.Findings)
}

// HeldBy returns the preview as it is shown while these marks of the quarantine store
// hold its candidate: a release covers findings, and a vague approval is a mark that is
// not a finding. A preview from [New] is shown as if its findings held it. The identity is
// the same: what is approved does not depend on marks, and a commit looks at them anew.
func (p *Preview) HeldBy(marks []quarantine.Mark) *Preview {
	shown := *p
	shown.held = []quarantine.Finding{}
	for _, m := range marks {
		if !slices.Contains(shown.held, m.Finding) {
			shown.held = append(shown.held, m.Finding)
		}
	}
	return &shown
}

// ClaimsAreUnusable reports whether the change set or the block table of a run cannot be used: then
// nothing of that run is proposed.
func (p *Preview) ClaimsAreUnusable() bool {
	return slices.ContainsFunc(p.decided.claims, func(c claims) bool { return c.unusable() })
}

// Recommended is the statement that approves the safest part of the proposal, or
// "" when there is no such part.
func (p *Preview) Recommended() string { return p.block.Approval.Statement }

// JSON is the decision block as canonical JSON, with two members more, which the identity
// does not bind: "preview_id", and "quarantine", what holds the candidate (see
// [Preview.HeldBy]). Each is inserted where the order of names puts it. (No string in JSON
// can hold the text before which it is inserted: its quotes would be escaped.)
func (p *Preview) JSON() ([]byte, error) {
	held, err := canonjson.Marshal(p.held)
	if err != nil {
		return nil, err
	}
	const afterID, afterHeld = `"privacy_review":`, `"reference_only_items":`
	raw := bytes.Replace(p.canonical, []byte(afterID), []byte(`"preview_id":"`+p.id+`",`+afterID), 1)
	return bytes.Replace(raw, []byte(afterHeld), []byte(`"quarantine":`+string(held)+`,`+afterHeld), 1), nil
}
