package quarantine

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Record is what is known of one candidate.
type Record struct {
	Candidate
	Marks []Mark `json:"marks"` // in the order in which they came
}

// Held are the marks that hold the candidate, in the order of section 12, and of
// one rule in the byte order of their details.
func (r Record) Held() []Mark {
	return inOrder(slices.DeleteFunc(slices.Clone(r.Marks), func(m Mark) bool { return !m.Held() }))
}

// inOrder sorts marks as [Record.Held] has them.
func inOrder(marks []Mark) []Mark {
	slices.SortFunc(marks, func(a, b Mark) int {
		return cmp.Or(slices.Index(rules, a.Rule)-slices.Index(rules, b.Rule), strings.Compare(a.Detail, b.Detail))
	})
	return marks
}

// version is a record in its file.
type version struct {
	Record
	Version int64 `json:"version"` // 0 when there is no file
}

// The bounds of a record: its marks, and its bytes.
const (
	maxMarks  = 256
	maxRecord = 16 << 20
)

// next is the file of the version that follows, in which no more marks are kept
// than there may be: the oldest that hold nothing are forgotten.
func (v version) next() (version, []byte, error) {
	v.Version++
	for len(v.Marks) > maxMarks {
		i := slices.IndexFunc(v.Marks, func(m Mark) bool { return !m.Held() })
		if i < 0 {
			return version{}, nil, fmt.Errorf("candidate %s would be held by more than %d marks", v.Source, maxMarks)
		}
		v.Marks = slices.Delete(slices.Clone(v.Marks), i, i+1)
	}
	raw, err := canonjson.Marshal(v)
	if err == nil && len(raw) > maxRecord {
		err = fmt.Errorf("the record of candidate %s would have %d bytes; at most %d", v.Source, len(raw), maxRecord)
	}
	if err != nil {
		return version{}, nil, err
	}
	return v, raw, nil
}

// parse reads a file. What it accepts prints as the very same bytes.
func parse(raw []byte) (version, error) {
	value, err := canonjson.Parse(raw)
	if err != nil {
		return version{}, err
	}
	var v version
	if err := json.Unmarshal(value.Append(nil), &v); err != nil {
		return version{}, err
	}
	if again, err := canonjson.Marshal(v); err != nil || !bytes.Equal(again, raw) {
		return version{}, errors.New("it is not in the form of a record")
	}
	if err := v.check(); err != nil {
		return version{}, err
	}
	return v, nil
}

// check requires the members of a record that was written here.
func (v *version) check() error {
	if len(v.Marks) == 0 || len(v.Marks) > maxMarks {
		return fmt.Errorf("it has %d marks", len(v.Marks))
	}
	for _, path := range append([]string{v.RestoreRoot}, v.RunDirs...) {
		if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, `"/`) && (path == v.RestoreRoot || !isAddress(path)) {
			return fmt.Errorf("path %q is not absolute", path)
		}
	}
	seen := map[Finding]bool{}
	for _, m := range v.Marks {
		if err := m.check(); err != nil {
			return err
		}
		if counts := m.Held() || !m.Rule.sticky(); counts && seen[m.Finding] {
			return fmt.Errorf("it marks the same finding of %s twice", m.Rule)
		} else if counts {
			seen[m.Finding] = true
		}
	}
	return nil
}

// check requires a mark to be in one state.
func (m Mark) check() error {
	if err := m.Finding.check(); err != nil {
		return err
	}
	times := []time.Time{m.Since}
	if m.Cleared != nil {
		times = append(times, *m.Cleared)
	}
	if r := m.Released; r != nil {
		times = append(times, r.Time)
		if err := checkReason(r.Reason); err != nil {
			return err
		}
	}
	switch {
	case slices.ContainsFunc(times, func(t time.Time) bool { return t.Location() != time.UTC }):
		return fmt.Errorf("a time of %s is not in UTC", m.Rule)
	case m.Cleared != nil && (m.Released != nil || m.Rule.sticky()):
		return fmt.Errorf("the mark of %s is cleared, but marks of this rule cannot be cleared", m.Rule)
	case m.Released != nil && m.Released.Operator == "":
		return fmt.Errorf("the mark of %s has no release", m.Rule)
	}
	return nil
}

// update holds what was found and clears what was not.
func (r *Record) update(found []Finding, now time.Time) (changes []Change) {
	r.Marks = slices.Clone(r.Marks)
	for i, m := range r.Marks {
		if m.Held() && !m.Rule.sticky() && !slices.Contains(found, m.Finding) {
			r.Marks[i].Cleared = &now
			changes = append(changes, Change{Clears, r.Candidate, r.Marks[i]})
		}
	}
	for _, f := range found {
		changes = append(changes, r.hold(f, now)...)
	}
	return changes
}

// hold has a finding hold the candidate, unless it does or a release covers it.
func (r *Record) hold(f Finding, now time.Time) []Change {
	mark := Mark{Finding: f, Since: now}
	covers := func(m Mark) bool { return m.Finding == f && (m.Held() || !f.Rule.sticky()) }
	switch i := slices.IndexFunc(r.Marks, covers); {
	case i < 0:
		r.Marks = append(r.Marks, mark)
	case r.Marks[i].Cleared == nil:
		return nil
	default:
		r.Marks[i] = mark
	}
	return []Change{{Holds, r.Candidate, mark}}
}

// release ends all that holds.
func (r *Record) release(by Release) (changes []Change) {
	for i, m := range r.Marks {
		if m.Held() {
			r.Marks[i].Released = &by
			changes = append(changes, Change{Releases, r.Candidate, r.Marks[i]})
		}
	}
	return changes
}
