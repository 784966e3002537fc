package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/statecheck"
	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/audit"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/trust"
)

// namesValidator is the next step where a validator was to be named.
const namesValidator = "a validator_id is 64 hex digits, as \"spectrum keygen\" prints it; \"spectrum trust list\" lists the pinned and revoked validators"

// leastSeen is how many digits name a validator that is neither pinned nor revoked: no key
// with the same first digits can be made on purpose.
const leastSeen = 16

// A validator is an argument of a command, with what is known about it here.
type validator struct {
	id     string
	state  *statedir.Dir
	place  string // of the operator
	policy trust.Policy
	seen   map[string][]sighting // of all validators; nil where it was not needed
}

// openValidator finds the validator of an id, or of the first digits of it. The caller closes the
// state directory.
func (a *app) openValidator(id string) (v *validator, err error) {
	v = &validator{id: id}
	if v.state, err = a.openState(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.state.Close())
			v = nil
		}
	}()
	if v.place, err = v.state.TrustPlace(); err != nil {
		return nil, err
	}
	if v.policy, err = loadTrust(v.state); err != nil {
		return nil, err
	}
	if len(id) < least || len(id) >= 64 || !hexdigits.Only(id) {
		return v, nil // a whole one, or none, which package trust rejects
	}
	v.seen = seenValidators(v.state)
	known := maps.Clone(v.seen)
	for _, r := range slices.Concat(v.policy.Pinned(), v.policy.Revoked()) {
		known[r.ID] = nil
	}
	var found []string
	for other := range known {
		if strings.HasPrefix(other, id) {
			found = append(found, other)
		}
	}
	slices.Sort(found)
	if len(found) == 1 && v.policy.Of(found[0]) != trust.Pinned && v.policy.Of(found[0]) != trust.Revoked && len(id) < leastSeen {
		return v, refusedHint(fmt.Errorf("%d digits are too few: anyone can make a key whose validator_id begins with %s", len(id), id),
			fmt.Sprintf("compare all of it, %s, with that of the validator that is meant, and give %d digits or more", found[0], leastSeen))
	}
	switch len(found) {
	case 0:
		return v, refusedHint(fmt.Errorf("no validator that begins with %s has signed what was previewed or committed here, or is pinned or revoked", id), "give all 64 digits of its validator_id, as the signer's \"spectrum keygen\" has printed it")
	case 1:
		v.id = found[0]
		return v, nil
	}
	return v, refusedHint(fmt.Errorf("%d validators begin with %s", len(found), id), "give more digits of the one that is meant: "+strings.Join(found[:min(len(found), maxSightings)], ", "))
}

// A sighting is something that a validator has signed.
type sighting struct {
	at   time.Time
	text string
}

// maxSightings is how many of them are shown.
const maxSightings = 5

// seenValidators returns what each validator has signed of the previews, commits and savepoints
// that are kept, the newest first. What cannot be read is left out.
func seenValidators(state *statedir.Dir) map[string][]sighting {
	seen := map[string][]sighting{}
	commits := map[string]*audit.Action{}
	all, _ := actionsOf(state, "")
	for _, c := range all {
		if c.IsCommit() && c.Preview != "" && c.State == audit.Done {
			commits[c.Preview] = c
		}
	}
	previews, _ := state.Previews()
	for _, p := range previews {
		raw, err := state.LoadPreview(p.ID)
		if err != nil {
			continue
		}
		record, err := preview.ParseRecord(raw, p.ID)
		if err != nil {
			continue
		}
		for _, run := range record.Signed() {
			s := sighting{p.At, fmt.Sprintf("preview %s of run %q for %q", p.ID[:shortest], run.RunID, record.Origin().RestoreRoot)}
			if c := commits[p.ID]; c != nil {
				s = sighting{c.Began, fmt.Sprintf("commit %s of run %q in %q", c.ID[:shortest], run.RunID, record.Origin().RestoreRoot)}
			}
			seen[run.ValidatorID] = append(seen[run.ValidatorID], s)
		}
	}
	if store, err := statecheck.Savepoints(state); err == nil {
		defer store.Close()
		found, _ := store.Survey("")
		for _, sp := range found.Standing {
			seen[sp.ValidatorID()] = append(seen[sp.ValidatorID()], sighting{sp.Created(), fmt.Sprintf("savepoint %s of %q", sp.ID()[:shortest], sp.Root())})
		}
	}
	for _, of := range seen {
		slices.SortStableFunc(of, func(a, b sighting) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.text, b.text)) })
	}
	return seen
}

// groupLines are the first lines of [validator.lines], which have the id.
const groupLines = 3

// lines are the id of the validator in groups, for a terminal of 40 columns too, and what it has
// signed of what is kept here.
func (v *validator) lines() []string {
	lines := []string{"validator", "  " + inGroups(v.id[:len(v.id)/2]), "  " + inGroups(v.id[len(v.id)/2:])}
	of := v.seen[v.id]
	if len(of) == 0 {
		return append(lines, "no preview or commit that is kept here shows anything signed by it")
	}
	lines = append(lines, "it has signed, the newest first:")
	for n, s := range of {
		if n == maxSightings {
			lines = append(lines, fmt.Sprintf("  and %d more", len(of)-n))
			break
		}
		lines = append(lines, fmt.Sprintf("  %s  %s", s.at.UTC().Format("2006-01-02 15:04 UTC"), oneLine(s.text)))
	}
	return lines
}

// inGroups is a text in groups of eight characters, to be compared by eye.
func inGroups(text string) string {
	var groups []string
	for group := range slices.Chunk([]byte(text), 8) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, " ")
}
