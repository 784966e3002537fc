package verify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Listing is the content that a bundle's signature covers. It does not describe the outputs as
// they are, and nothing can be restored from it: that requires a [Bundle]. Only [List] makes
// one; the zero Listing is empty.
type Listing struct {
	runID       string
	root        string
	validatorID string
	taskSpec    canonjson.Object
	entries     []declaration
}

// Entry is one output as it was signed.
type Entry struct {
	Path   pathsafe.Path
	Digest [sha256.Size]byte
}

// List verifies what was signed, without the outputs: phases 1 to 8 and 10 of SPECTRUM-05. Instead
// of phase 9 it rejects an output whose path or hash is malformed, with the code that [Strict] has
// for it. The run needs no project root. It returns a [*Reject], unless no verdict was reached; on
// an error there is no listing.
func List(ctx context.Context, run *Run) (*Listing, error) {
	e := examination{run: run, listing: true}
	if err := e.examine(ctx); err != nil {
		return nil, err
	}
	return &Listing{
		runID:       run.id,
		root:        e.root,
		validatorID: e.key.validatorID,
		taskSpec:    e.artifacts[bundle.TaskSpec].object,
		entries:     e.entries,
	}, nil
}

// checkForms replaces phase 9 if outputs are not read.
func (e *examination) checkForms() error {
	for i := range e.entries {
		d := &e.entries[i]
		if _, err := pathsafe.Parse(d.name); err != nil {
			return d.missing(err)
		}
		if !wellFormedHash(d.text()) {
			return d.mismatch("")
		}
	}
	return nil
}

// Root is the bundle root, 64 lower-case hex digits.
func (l *Listing) Root() string { return l.root }

// ValidatorID is the identity that signed, 64 lower-case hex digits.
func (l *Listing) ValidatorID() string { return l.validatorID }

// RunID is the final component of the run directory's path.
func (l *Listing) RunID() string { return l.runID }

// TaskSpec is the whole of TASK_SPEC.json.
func (l *Listing) TaskSpec() canonjson.Object { return l.taskSpec }

// Len is the number of entries.
func (l *Listing) Len() int { return len(l.entries) }

// Entries yields the signed entries in ascending order of the path's bytes.
func (l *Listing) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := range l.entries {
			if !yield(l.entries[i].entry()) {
				return
			}
		}
	}
}

// entry is a declaration whose form was checked.
func (d *declaration) entry() Entry {
	path, _ := pathsafe.Parse(d.name)
	return Entry{path, d.digest()}
}

// digest is the signed hash, whose form was checked.
func (d *declaration) digest() (digest [sha256.Size]byte) {
	_, _ = hex.Decode(digest[:], []byte(strings.TrimPrefix(d.text(), bundle.HashPrefix)))
	return digest
}
