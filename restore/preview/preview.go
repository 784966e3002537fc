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

// ErrUnsettled reports that the restore root, or the way to it, changed while it was examined.
var ErrUnsettled = machine.Disturbed("the restore root changes while it is examined")

// Preview is a restore as it is shown to the operator. It is immutable.
type Preview struct {
	restore   *restore.Restore
	request   Request
	block     Block
	decided   *deciding
	canonical []byte
	id        string
	witness   witness
	names     map[string]sight     // what was at the paths of the plan
	held      []quarantine.Finding // findings that hold the candidate in quarantine
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

// FindingsOf returns the findings of the rules of protocol section 12 about a candidate that [New] rejected
// for lack of trust, in the order of the rules. The reason why New rejected it is the first.
func FindingsOf(ctx context.Context, r *restore.Restore, q Request, why error) ([]quarantine.Finding, error) {
	d, err := decide(ctx, r, &q, observed{})
	if err != nil {
		return nil, err
	}
	trust := quarantine.Finding{Rule: quarantine.ConflictsWithInstructions, Detail: strconv.QuoteToGraphic(why.Error())}
	return append([]quarantine.Finding{trust}, d.quarantined()...), nil
}

// identity returns the preview_id of a canonical decision block.
func identity(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// ID returns the preview's identity, 64 lower-case hex digits. It is equal on every machine and at any time
// for the same candidate, state and request.
func (p *Preview) ID() string { return p.id }

// Source returns the ID of the candidate; see [SourceID].
func (p *Preview) Source() string { return p.block.SourceID }

// BundleRoots returns the roots of the candidate's bundles, in chain order.
func (p *Preview) BundleRoots() []string {
	var roots []string
	for _, run := range p.block.Candidate.Runs {
		roots = append(roots, run.BundleRoot)
	}
	return roots
}

// Findings returns the findings of the rules of protocol section 12, in the order of the rules.
func (p *Preview) Findings() []quarantine.Finding {
	return slices.Clone(p.block.Findings)
}

// HeldBy returns the preview with these marks of the quarantine store in place of its findings: a release
// removes findings, and a vague approval adds a mark that is not a finding. The identity stays the same,
// because an approval does not depend on marks; a commit reads them again.
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

// ClaimsAreUnusable reports whether the change set or the block table of a run cannot be used. Then nothing
// of that run is proposed.
func (p *Preview) ClaimsAreUnusable() bool {
	return slices.ContainsFunc(p.decided.claims, func(c claims) bool { return c.unusable() })
}

// Recommended returns the statement that approves the safest part of the proposal; "" if there is no such
// part.
func (p *Preview) Recommended() string { return p.block.Approval.Statement }

// JSON returns the decision block as canonical JSON, with two more members, which the identity does not bind:
// "preview_id", and "quarantine" with the findings that hold the candidate (see [Preview.HeldBy]). Each is
// inserted in the order of names. (The text before which it is inserted cannot be in a JSON string, where its
// quotes would be escaped.)
func (p *Preview) JSON() ([]byte, error) {
	held, err := canonjson.Marshal(p.held)
	if err != nil {
		return nil, err
	}
	const afterID, afterHeld = `"privacy_review":`, `"reference_only_items":`
	raw := bytes.Replace(p.canonical, []byte(afterID), []byte(`"preview_id":"`+p.id+`",`+afterID), 1)
	return bytes.Replace(raw, []byte(afterHeld), []byte(`"quarantine":`+string(held)+`,`+afterHeld), 1), nil
}
