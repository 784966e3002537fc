package preview

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// ErrForged reports a record that does not fit its identity.
var ErrForged = errors.New("the record does not fit its preview id")

// witness detects changes of a restore root after a preview. It has a meaning on this machine only, so the
// identity does not bind it.
type witness struct {
	Root     string `json:"restore_root"` // see observe
	Attempts int64  `json:"attempts"`
}

// kept is the content of a record: the decision block, and the input for making the preview again.
type kept struct {
	Asked   Requested `json:"asked"`
	Origin  Origin    `json:"origin"`
	Block   string    `json:"preview"` // the decision block in canonical form
	Witness witness   `json:"witness"`
	// Names has the entries at the paths of the plan, to name the changed ones; the witness detects changes.
	Names map[string]sight `json:"names"`
}

// Record is a kept preview: what was shown, and the input for making it again. It approves nothing.
type Record struct {
	id   string
	kept kept
}

// Keep returns the record of a preview for [ParseRecord]: a line of canonical JSON, and the hash of that line.
func (p *Preview) Keep() ([]byte, error) {
	line, err := canonjson.Marshal(kept{p.request.Asked, p.request.Origin, string(p.canonical), p.witness, p.names})
	if err != nil {
		return nil, err
	}
	return []byte(string(line) + "\n" + identity(line) + "\n"), nil
}

// ParseRecord reads what [Preview.Keep] wrote for the preview with this identity:
// exactly that, byte for byte. The error is [ErrForged].
func ParseRecord(raw []byte, id string) (*Record, error) {
	line, sum, _ := bytes.Cut(raw, []byte("\n"))
	if string(sum) != identity(line)+"\n" {
		return nil, ErrForged
	}
	r := &Record{id: id}
	if err := json.Unmarshal(line, &r.kept, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForged, err)
	}
	again, err := canonjson.Marshal(r.kept)
	if err != nil || !bytes.Equal(again, line) || identity([]byte(r.kept.Block)) != id {
		return nil, ErrForged
	}
	return r, nil
}

// ID returns the identity of the preview.
func (r *Record) ID() string { return r.id }

// Origin returns the location of the candidate.
func (r *Record) Origin() Origin { return r.kept.Origin }

// Asked returns what the operator requested.
func (r *Record) Asked() Requested { return r.kept.Asked }

// Source returns the ID of the candidate; see [SourceID].
func (r *Record) Source() string { return r.shown().Source }

// A Signed is a run of a candidate, and the validator that signed it.
type Signed struct {
	RunID       string `json:"run_id"`
	ValidatorID string `json:"validator_id"`
}

// Signed returns the runs that were shown, in chain order.
func (r *Record) Signed() []Signed { return r.shown().Candidate.Runs }

// Attempts returns the number of commits that had begun in the restore root before the preview. Another
// commit makes the preview stale.
func (r *Record) Attempts() int64 { return r.kept.Witness.Attempts }

// Recommended returns the statement that the preview recommends, or "".
func (r *Record) Recommended() string { return r.shown().Approval.Statement }

// recorded has the members of the decision block that a record returns.
type recorded struct {
	Source   string `json:"source_savepoint_id"`
	Approval struct {
		Statement string `json:"statement"`
	} `json:"approval"`
	Candidate struct {
		Runs []Signed `json:"runs"`
	} `json:"candidate"`
	Conflicts []struct {
		ID       string   `json:"conflict_id"`
		Path     string   `json:"item"`
		Items    []string `json:"restore_ids"`
		Decision string   `json:"operator_decision"`
	} `json:"conflicts"`
	DoNotRestore []struct {
		ID    string `json:"restore_id"`
		Class Class  `json:"class"`
	} `json:"do_not_restore_items"`
}

// Pending is an undecided conflict of a preview.
type Pending struct {
	ID, Path string // Path: see [Conflict]
	Diverged string // ID of the item, if that has diverged; else ""
}

// Pending returns the conflicts that are not decided, in the order of the register.
func (r *Record) Pending() []Pending {
	var open []Pending
	b := r.shown()
	var diverged []string
	for _, i := range b.DoNotRestore {
		if i.Class == Diverged {
			diverged = append(diverged, i.ID)
		}
	}
	for _, c := range b.Conflicts {
		if c.Decision == Undecided {
			p := Pending{ID: c.ID, Path: c.Path}
			if n := slices.IndexFunc(c.Items, func(id string) bool { return slices.Contains(diverged, id) }); n >= 0 {
				p.Diverged = c.Items[n]
			}
			open = append(open, p)
		}
	}
	return open
}

func (r *Record) shown() (b recorded) {
	_ = json.Unmarshal([]byte(r.kept.Block), &b) // its hash is the identity: we wrote it
	return b
}
