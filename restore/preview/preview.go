package preview

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Preview is a restore as it was shown. It does not change.
type Preview struct {
	restore   *restore.Restore
	block     block
	canonical []byte
	id        string
}

// New makes the preview of a restore, unless the operator's trust forbids that:
// the error is then [ErrRevoked] or [ErrQuarantined]. An origin without a nonce
// gets one. The restore stays the caller's to close.
func New(ctx context.Context, r *restore.Restore, o Origin, policy trust.Policy) (*Preview, error) {
	if err := checkTrust(r.Plan(), policy); err != nil {
		return nil, err
	}
	if o.Nonce == "" {
		o.Nonce = rand.Text()
	}
	root, err := observe(ctx, r.Root(), o.RestoreRoot)
	if err != nil {
		return nil, fmt.Errorf("looking at restore root %q: %w", o.RestoreRoot, err)
	}
	p := &Preview{restore: r, block: newBlock(r, o, seen{root, policy})}
	if p.canonical, err = canonjson.Marshal(p.block); err != nil {
		return nil, err
	}
	p.id = identity(p.canonical)
	return p, nil
}

// identity is the preview_id of a canonical decision block.
func identity(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// ID is the preview's identity: 64 lower-case hex digits.
func (p *Preview) ID() string { return p.id }

// JSON is the decision block with "preview_id" as canonical JSON.
func (p *Preview) JSON() ([]byte, error) { return p.block.withID(p.id) }

func (b block) withID(id string) ([]byte, error) {
	return canonjson.Marshal(struct {
		block
		ID string `json:"preview_id"`
	}{b, id})
}
