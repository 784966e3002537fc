package preview

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync/atomic"

	"github.com/spectrumfs/spectrum/restore"

	"github.com/go-json-experiment/json"
)

// Statement is the approval of a whole preview (protocol section 10).
const Statement = "Approved: commit the restore preview exactly as proposed."

// Why an approval is not accepted.
var (
	// ErrVague: the statement is not an explicit approval.
	ErrVague = errors.New("the statement is not an explicit approval")
	// ErrStale: the candidate or the restore root changed after the preview.
	ErrStale = errors.New("the preview is stale")
	// ErrUsed: the preview was approved before; each is good for one commit.
	ErrUsed = errors.New("the preview was used before")
	// ErrForged: a record is not the one that its identity was computed from.
	ErrForged = errors.New("the record does not fit its preview id")
)

// Record is a preview that was kept. It says what was shown, and how to make
// it again; it approves nothing.
type Record struct {
	id        string
	canonical []byte // the decision block
	origin    Origin
}

// ParseRecord reads what [Preview.JSON] wrote for the preview with this
// identity: exactly that, byte for byte.
func ParseRecord(raw []byte, id string) (*Record, error) {
	canonical, ok := withoutID(raw, id)
	if !ok || identity(canonical) != id {
		return nil, ErrForged
	}
	var fields struct {
		Origin Origin `json:"origin"`
	}
	if err := json.Unmarshal(canonical, &fields); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForged, err)
	}
	return &Record{id, canonical, fields.Origin}, nil
}

// withoutID undoes what block.withID does to the canonical form: in the order
// of keys the identity stands right before the items. (No string in JSON can
// hold the same text: its quotes would be escaped.)
func withoutID(raw []byte, id string) ([]byte, bool) {
	const next = `"proposed_restorations":`
	before, after, ok := bytes.Cut(raw, []byte(`"preview_id":"`+id+`",`+next))
	return slices.Concat(before, []byte(next), after), ok
}

// Origin says how to make the preview again.
func (r *Record) Origin() Origin { return r.origin }

// Ledger remembers which previews were used.
type Ledger interface {
	// Use marks a preview as used, durably, and fails with an error that is
	// fs.ErrExist when it was used before.
	Use(id string) error
}

// Approved is a restore that the operator approved exactly as it was shown.
// Only [Record.Approve] makes one.
type Approved struct {
	restore *restore.Restore
	id      string
	taken   atomic.Bool
}

// Restore is what was approved; nil for the zero Approved.
func (a *Approved) Restore() *restore.Restore { return a.restore }

// Take says, once, that the approval may be carried out; never for the zero
// Approved.
func (a *Approved) Take() bool {
	return a.restore != nil && a.taken.CompareAndSwap(false, true)
}

// PreviewID is the identity of the preview that was approved.
func (a *Approved) PreviewID() string { return a.id }

// CheckStatement says whether a statement is an explicit approval; the error
// is [ErrVague].
func CheckStatement(statement string) error {
	if statement != Statement {
		return fmt.Errorf("%w: %q", ErrVague, statement)
	}
	return nil
}

// Approve takes the operator's statement on the recorded preview. again is the
// same preview made anew, just now: it must be the same in everything. The
// record is used up from the moment it was accepted.
func (r *Record) Approve(again *Preview, statement string, ledger Ledger) (*Approved, error) {
	if err := CheckStatement(statement); err != nil {
		return nil, err
	}
	if again.id != r.id {
		return nil, fmt.Errorf("%w: %s changed after it was made", ErrStale, r.changed(again))
	}
	err := ledger.Use(r.id)
	if errors.Is(err, fs.ErrExist) {
		err = ErrUsed
	}
	if err != nil {
		return nil, fmt.Errorf("preview %s: %w", r.id, err)
	}
	return &Approved{restore: again.restore, id: r.id}, nil
}

// changed says in words what differs between two previews.
func (r *Record) changed(again *Preview) string {
	var was block
	if err := json.Unmarshal(r.canonical, &was); err != nil {
		return "what it shows"
	}
	if was.SourceID != again.block.SourceID || !slices.Equal(was.Items, again.block.Items) {
		return "the candidate"
	}
	if was.Trust != again.block.Trust {
		return "whom you trust"
	}
	if was.Root.State != again.block.Root.State {
		return fmt.Sprintf("the restore root %q", again.block.Root.Path)
	}
	return "what it shows"
}
