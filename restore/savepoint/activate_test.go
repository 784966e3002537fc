package savepoint_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestActivate goes back, on another way forward, and to each end again.
func TestActivate(t *testing.T) {
	s := newTestStore(t)
	const root = "/srv"
	must(t, s.Activate(root, nil, nil)) // nothing was ever done there
	a, b, c := s.add(root), s.add(root), s.add(root)
	other := s.add("/other")
	s.activate(root, b)
	s.wantChain(root, a, b)
	s.wantRetired(root, c)
	d := s.add(root)
	s.wantChain(root, a, b, d)
	s.activate(root, c)
	s.wantChain(root, a, b, c)
	s.wantRetired(root, d)
	s.activate(root, "")
	s.wantChain(root)
	s.wantRetired(root, a, b, c, d)
	e := s.add(root)
	s.activate(root, d)
	s.wantChain(root, a, b, d)
	s.wantRetired(root, e, c)
	s.wantChain("/other", other)
	must(t, s.VerifyChain(root, s.key.ValidatorID()))
	for _, id := range []string{other, "", "x"} {
		if way, err := s.SwitchTo("/none", id); err != nil || len(way.Attempts())+len(way.Ahead) > 0 {
			t.Errorf("%q where nothing was done: %+v, %v", id, way, err)
		}
	}
	for _, id := range []string{other, "x", b[:60]} {
		if way, err := s.SwitchTo(root, id); err != nil || len(way.Attempts())+len(way.Ahead) > 0 {
			t.Errorf("%q: %+v, %v", id, way, err)
		}
	}
	s.wantChain(root, a, b, d)
}

// TestActivateAgain: a call that was killed between any two of its renames is
// ended by the next one like it.
func TestActivateAgain(t *testing.T) {
	s := newTestStore(t)
	const root = "/srv"
	a, b, c := s.add(root), s.add(root), s.add(root)
	s.activate(root, a)
	d, e := s.add(root), s.add(root)
	dirs := map[string]string{}
	for _, sp := range append(s.list(root), s.retired(root)...) {
		dirs[sp.ID()] = filepath.Base(sp.RunDir())
	}
	place := filepath.Dir(filepath.Dir(s.list(root)[0].RunDir()))
	all := []string{e, d, b, c} // as a way from e to c moves them
	way, err := s.SwitchTo(root, c)
	must(t, err)
	if behind, ahead := idsOf(way.Behind), idsOf(way.Ahead); !slices.Equal(behind, []string{e, d}) || !slices.Equal(ahead, []string{b, c}) {
		t.Errorf("from %v to %v: %v, %v", e, c, behind, ahead)
	}
	for kill := range len(all) + 1 {
		s.activate(root, e)
		for i, id := range all[:kill] {
			from, to := "chain", "retired"
			if i >= 2 {
				from, to = to, from
			}
			must(t, os.Rename(filepath.Join(place, from, dirs[id]), filepath.Join(place, to, dirs[id])))
		}
		must(t, s.VerifyChain(root, ""))
		must(t, s.Activate(root, way.Attempts(), attemptsOf(way.Ahead)))
		s.wantChain(root, a, b, c)
	}
}

// TestActivateModel: any ways over a tree of savepoints.
func TestActivateModel(t *testing.T) {
	s := newTestStore(t)
	random := sample.Rand(t)
	const root = "/srv"
	parent, tip := map[string]string{}, ""
	ids := []string{""}
	for range 60 {
		if random.IntN(3) == 0 {
			id := s.add(root)
			parent[id], tip = tip, id
			ids = append(ids, id)
		} else {
			tip = ids[random.IntN(len(ids))]
			s.activate(root, tip)
		}
		var want []string
		for id := tip; id != ""; id = parent[id] {
			want = append(want, id)
		}
		slices.Reverse(want)
		s.wantChain(root, want...)
		if got := len(s.retired(root)) + len(want); got != len(parent) {
			t.Fatalf("%d of %d savepoints", got, len(parent))
		}
	}
}

func (s *testStore) activate(root, tip string) {
	s.Helper()
	way, err := s.SwitchTo(root, tip)
	must(s, err)
	must(s, s.Activate(root, way.Attempts(), attemptsOf(way.Ahead)))
}

func attemptsOf(all []savepoint.Savepoint) []string {
	ids := make([]string, len(all))
	for i, sp := range all {
		ids[i] = sp.Attempt()
	}
	return ids
}

func (s *testStore) retired(root string) []savepoint.Savepoint {
	s.Helper()
	all, err := s.Retired(root)
	must(s, err)
	return all
}

// wantRetired requires these, in any order.
func (s *testStore) wantRetired(root string, ids ...string) {
	s.Helper()
	got := idsOf(s.retired(root))
	slices.Sort(got)
	slices.Sort(ids)
	if !slices.Equal(got, ids) {
		s.Fatalf("retired %v, want %v", got, ids)
	}
}
