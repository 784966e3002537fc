package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/dropin"
	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// System is the place of the whole machine.
const System = "/etc/spectrum"

// The two directories of a place.
const (
	trusted = "trusted.d"
	revoked = "revoked.d"
)

// Status is whether the operator trusts a validator.
type Status string

// The statuses, in the words of a decision block.
const (
	Unknown  Status = "unknown"  // no validator is pinned at all
	Pinned   Status = "pinned"   // trusted
	Own      Status = "own"      // the key of this host, which has signed what it restored
	Unpinned Status = "unpinned" // others are trusted
	Revoked  Status = "revoked"  // permanently
)

// Policy is the content of the places when they were read. The zero Policy pins and revokes no
// validator.
type Policy struct {
	pinned, revoked map[string]Record
	own             string // validator_id
}

// Record is one file of a place.
type Record struct {
	ID   string // validator_id
	Note string // what the file says beside it, on one line
	Path string // of the file
}

// Load reads places. One that is missing says nothing.
func Load(places ...string) (Policy, error) {
	p := Policy{pinned: map[string]Record{}, revoked: map[string]Record{}}
	for _, place := range places {
		if err := p.add(place); err != nil {
			return Policy{}, fmt.Errorf("trust: %w", err)
		}
	}
	for _, r := range p.Pinned() {
		if err := checkStrong(r.ID); err != nil {
			return Policy{}, fmt.Errorf("trust: %w", dropin.FileError(r.Path, err))
		}
	}
	return p, nil
}

// Of returns the status of a validator.
func (p Policy) Of(id string) Status {
	_, out := p.revoked[id]
	_, in := p.pinned[id]
	switch {
	case out:
		return Revoked
	case in:
		return Pinned
	case p.own != "" && id == p.own:
		return Own
	case len(p.pinned) == 0:
		return Unknown
	}
	return Unpinned
}

// WithOwn returns the policy where a validator is the host itself, which needs no pin. A revocation
// overrides that.
func (p Policy) WithOwn(id string) Policy {
	p.own = id
	return p
}

// Untrusted returns the index of the first of these validators that is revoked, or else of the first
// that is not pinned; -1 if all are pinned.
func (p Policy) Untrusted(ids []string) int {
	if i := slices.IndexFunc(ids, func(id string) bool { return p.Of(id) == Revoked }); i >= 0 {
		return i
	}
	return slices.IndexFunc(ids, func(id string) bool { return p.Of(id) != Pinned })
}

// Reason returns why a validator was revoked; "" where that is not known.
func (p Policy) Reason(id string) string { return p.revoked[id].Note }

// Pinned are the records of the validators that are pinned, by validator_id.
// One that is revoked as well is among them.
func (p Policy) Pinned() []Record { return sorted(p.pinned) }

// Revoked are the records of the validators that are revoked, by validator_id.
func (p Policy) Revoked() []Record { return sorted(p.revoked) }

// Digest is a hash of who is pinned and who is revoked, 64 hex digits, the same
// on every machine where these are the same.
func (p Policy) Digest() string {
	h := sha256.New()
	for i, records := range [][]Record{p.Pinned(), p.Revoked()} {
		for _, r := range records {
			_, _ = fmt.Fprintln(h, [...]string{trusted, revoked}[i], r.ID)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func sorted(records map[string]Record) []Record {
	return slices.SortedFunc(maps.Values(records), func(a, b Record) int { return strings.Compare(a.ID, b.ID) })
}

// maxFile bounds a file, in bytes.
const maxFile = 4 << 10

// add reads a place.
func (p Policy) add(place string) error {
	if err := readAll(place, trusted, p.pinned); err != nil {
		return err
	}
	return readAll(place, revoked, p.revoked)
}

// readAll reads the files of a directory of a place.
func readAll(place, name string, records map[string]Record) error {
	return dropin.Read(place, name, maxFile, func(path string, raw []byte) error {
		r, err := parse(raw)
		if err != nil {
			return err
		}
		r.Path = path
		records[r.ID] = r
		return nil
	})
}

// parse reads one file.
func parse(raw []byte) (Record, error) {
	id, note, _ := bytes.Cut(raw, []byte("\n"))
	if i := bytes.IndexByte(id, ' '); i >= 0 {
		id, note = id[:i], raw[i:]
	}
	if err := CheckID(string(id)); err != nil {
		return Record{}, err
	}
	return Record{ID: string(id), Note: strings.Join(strings.Fields(string(note)), " ")}, nil
}

// CheckID returns an error for what is not a validator_id.
func CheckID(id string) error {
	if !hexdigits.Are(id, 64) {
		return fmt.Errorf("%.100q is not a validator_id (64 lower-case hex digits)", id)
	}
	return nil
}

// checkStrong rejects the validators whose signatures any process can make.
func checkStrong(id string) error {
	for key := range bundle.SmallOrderKeys() {
		if bundle.ValidatorID(key) == id {
			return fmt.Errorf("validator %s is a key of small order, whose signatures anyone can forge", id)
		}
	}
	return nil
}
