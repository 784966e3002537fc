package quarantine_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"pgregory.net/rapid"
)

// model is what a store must know of a candidate, in words.
type model struct {
	computed map[string]bool // what was found the last time, and is not released
	released map[string]bool // what a release covers
	sticky   map[string]bool // what holds until it is released
	known    bool            // there is a record
}

// held is what must hold the candidate when this is found.
func (m *model) held(found []string) (held []string) {
	for _, f := range found {
		if !m.released[f] {
			held = append(held, f)
		}
	}
	for f := range m.sticky {
		held = append(held, f)
	}
	return sorted(held)
}

// sorted is marks as a store has them: the details of these tests put the rules in
// order.
func sorted(words []string) []string {
	slices.SortFunc(words, func(a, b string) int { return slices.Index(universe, a) - slices.Index(universe, b) })
	return slices.Compact(words)
}

// universe is all that can be found, in the order of section 12.
var universe = []string{
	"source_unknown_high_impact x", "conflicts_with_instructions x", "conflicts_with_instructions y", "artifact_status rejected", "unresolved_authority x",
	"approval_vague ok", "approval_vague sure",
}

const computed = 5 // so many of the universe are computed

// machine runs a store against models.
type machine struct {
	path   string
	store  *quarantine.Store
	models map[string]*model
	logged []string
	full   bool // nothing can be logged
}

var errFull = errors.New("disk full")

func (m *machine) log(c quarantine.Change) error {
	if m.full {
		return errFull
	}
	m.logged = append(m.logged, changeWords([]quarantine.Change{c})...)
	return nil
}

func (m *machine) reopen(t *rapid.T) {
	if m.store != nil {
		_ = m.store.Close()
	}
	var err error
	if m.store, err = quarantine.Open(m.path, m.log); err != nil {
		t.Fatal(err)
	}
	m.logged = nil
}

func (m *machine) pick(t *rapid.T) (quarantine.Candidate, *model) {
	digit := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "candidate")
	return candidate(digit), m.models[digit]
}

// begin draws whether what is done now can be logged.
func (m *machine) begin(t *rapid.T) {
	m.full, m.logged = rapid.IntRange(0, 3).Draw(t, "full") == 0, nil
}

// did requires a call to have logged these changes, or to have failed for the log.
func (m *machine) did(t *rapid.T, err error, changes []string) bool {
	if m.full && len(changes) > 0 {
		if !errors.Is(err, errFull) {
			t.Fatalf("not logged, and %v", err)
		}
		return false
	}
	slices.Sort(changes)
	slices.Sort(m.logged)
	if err != nil || !slices.Equal(m.logged, changes) {
		t.Fatalf("logged %q, %v; want %q", m.logged, err, changes)
	}
	return true
}

func (m *machine) judge(t *rapid.T) {
	c, model := m.pick(t)
	found := rapid.SliceOfN(rapid.SampledFrom(universe[:computed]), 0, 6).Draw(t, "found")
	var changes []string
	for _, f := range sorted(slices.Clone(found)) {
		if !model.released[f] && !model.computed[f] {
			changes = append(changes, "hold "+f)
		}
	}
	for f := range model.computed {
		if !slices.Contains(found, f) {
			changes = append(changes, "clear "+f)
		}
	}
	want := model.held(found)
	asked, err := m.store.Held(t.Context(), c, findings(found...))
	if err != nil || !slices.Equal(words(asked), want) {
		t.Fatalf("asked: held by %q, %v; want %q", words(asked), err, want)
	}
	m.begin(t)
	held, changed, err := m.store.Update(t.Context(), c, findings(found...))
	if !m.did(t, err, changes) {
		return
	}
	if got := changeWords(changed); !slices.Equal(words(held), want) || len(got) != len(changes) {
		t.Fatalf("held by %q, want %q; changed %q, want %q", words(held), want, got, changes)
	}
	model.known = model.known || len(changes) > 0
	model.computed = map[string]bool{}
	for _, f := range found {
		if !model.released[f] {
			model.computed[f] = true
		}
	}
}

func (m *machine) hold(t *rapid.T) {
	c, model := m.pick(t)
	f := rapid.SampledFrom(universe[computed:]).Draw(t, "vague")
	var changes []string
	if !model.sticky[f] {
		changes = []string{"hold " + f}
	}
	m.begin(t)
	if m.did(t, m.store.Hold(t.Context(), c, findings(f)[0]), changes) {
		model.sticky[f], model.known = true, true
	}
}

func (m *machine) release(t *rapid.T) {
	c, model := m.pick(t)
	var held, changes []string
	for f := range model.computed {
		held = append(held, f)
	}
	held = model.held(held)
	for _, f := range held {
		changes = append(changes, "release "+f)
	}
	m.begin(t)
	r, err := m.store.Release(t.Context(), c.Source, "ok")
	switch {
	case !model.known:
		m.fails(t, err, quarantine.ErrUnknown)
	case len(held) == 0:
		m.fails(t, err, quarantine.ErrNotHeld)
	case m.did(t, err, changes):
		if !slices.Equal(words(r.Marks), held) {
			t.Fatalf("released %q, want %q", words(r.Marks), held)
		}
		for f := range model.computed {
			model.released[f] = true
		}
		model.computed, model.sticky = map[string]bool{}, map[string]bool{}
	}
}

func (m *machine) fails(t *rapid.T, err, want error) {
	if !errors.Is(err, want) || len(m.logged) > 0 {
		t.Fatalf("%v, logged %q; want %v", err, m.logged, want)
	}
}

// check requires the records to equal the models.
func (m *machine) check(t *rapid.T) {
	all, err := m.store.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for digit, model := range m.models {
		i := slices.IndexFunc(all, func(r quarantine.Record) bool { return r.Source == candidate(digit).Source })
		if model.known != (i >= 0) {
			t.Fatalf("the record of %s is there: %v", digit, i >= 0)
		}
		if i >= 0 {
			model.check(t, all[i])
		}
	}
}

func (m *model) check(t *rapid.T, r quarantine.Record) {
	var found []string
	for f := range m.computed {
		found = append(found, f)
	}
	if want := m.held(found); !slices.Equal(words(r.Held()), want) {
		t.Fatalf("the record has %q, want %q", words(r.Held()), want)
	}
	for f := range m.released {
		covers := func(m quarantine.Mark) bool {
			return words([]quarantine.Mark{m})[0] == f && m.State() == "released" && m.Released.Reason == "ok"
		}
		if !slices.ContainsFunc(r.Marks, covers) {
			t.Fatalf("the release of %q is forgotten: %+v", f, r.Marks)
		}
	}
}

// TestModel does anything in any order, with a store that is opened again and a log
// that can fail.
func TestModel(t *testing.T) {
	harness.Checks(t, sample.Of(12, 100, 100))
	rapid.Check(t, func(t *rapid.T) {
		path, err := os.MkdirTemp("", "quarantine")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(path)
		m := &machine{path: path, models: map[string]*model{}}
		for _, digit := range []string{"a", "b"} {
			m.models[digit] = &model{computed: map[string]bool{}, released: map[string]bool{}, sticky: map[string]bool{}}
		}
		m.reopen(t)
		defer func() { _ = m.store.Close() }()
		t.Repeat(map[string]func(*rapid.T){"judge": m.judge, "hold": m.hold, "release": m.release, "reopen": m.reopen, "": m.check})
	})
}
