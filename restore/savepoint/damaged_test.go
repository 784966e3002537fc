package savepoint_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// standing are the savepoints of the chain that can be read.
func (s *testStore) standing(root string) []string {
	s.Helper()
	all, err := s.Survey(root)
	must(s, err)
	return idsOf(all.Standing)
}

// TestActivateDamaged: of a chain of four, with one more that was retired, each savepoint in
// turn is damaged or gone. Each tip can be gone to all the same; what was made after it stands
// no longer, and what can be read before it stays.
func TestActivateDamaged(t *testing.T) {
	damages := map[string]func(dir string) error{
		"cut":  func(dir string) error { return os.Remove(filepath.Join(dir, bundle.Status)) },
		"gone": os.RemoveAll,
	}
	for name, damage := range damages {
		for broken := range 4 {
			for tip := -1; tip < 4; tip++ {
				s := newTestStore(t)
				const root = "/srv"
				ids := []string{s.add(root)}
				old := s.add(root)
				s.activate(root, ids[0])
				for range 3 {
					ids = append(ids, s.add(root))
				}
				all := s.list(root)
				must(t, damage(all[broken].RunDir()))
				id := ""
				if tip >= 0 {
					id = ids[tip]
				}
				way, err := s.SwitchTo(root, id)
				must(t, err)
				var want []string // the attempts that are undone
				for i := 3; i > tip; i-- {
					if isGone := i == broken && name == "gone"; !isGone {
						want = append(want, all[i].Attempt())
					}
				}
				if got := way.Attempts(); !slices.Equal(got, want) {
					t.Errorf("%s %d, to %d: undoes %v, want %v", name, broken, tip, got, want)
				}
				must(t, s.Activate(root, way.Attempts(), attemptsOf(way.Ahead)))
				stand := slices.Clone(ids[:tip+1])
				if broken <= tip {
					stand = slices.Delete(stand, broken, broken+1)
				}
				if got := s.standing(root); !slices.Equal(got, stand) {
					t.Errorf("%s %d, to %d: %v stand, want %v", name, broken, tip, got, stand)
				}
				found, err := s.Survey("")
				must(t, err)
				if (len(found.Damaged) == 1) != (name == "cut") || !slices.Contains(idsOf(found.Retired), old) {
					t.Errorf("%s %d, to %d: %+v", name, broken, tip, found)
				}
			}
		}
	}
}

// TestActivateBesideStrays: an entry that is not a savepoint stays where it is, and a copy of
// a savepoint at the place of the new one is replaced.
func TestActivateBesideStrays(t *testing.T) {
	s := newTestStore(t)
	const root = "/srv"
	a, b := s.add(root), s.add(root)
	s.activate(root, a)
	s.activate(root, b)
	dir := s.list(root)[1].RunDir()
	place := filepath.Dir(filepath.Dir(dir))
	write(t, place, "chain/stray", "retired/stray", "prepared/stray", "retired/"+filepath.Base(dir)+"/copy")
	write(t, s.path, "beside")
	s.activate(root, a)
	if got := s.standing(root); !slices.Equal(got, []string{a}) {
		t.Errorf("%v stand", got)
	}
	found, err := s.Survey("")
	must(t, err)
	if len(found.Damaged) != 3 || !slices.Equal(idsOf(found.Retired), []string{b}) {
		t.Errorf("%+v", found)
	}
	must(t, os.WriteFile(filepath.Join(place, "retired", "000001-11111111-1111-4111-8111-111111111111"), nil, 0o600))
	s.activate(root, b)
	if got := s.standing(root); !slices.Equal(got, []string{a, b}) {
		t.Errorf("%v stand", got)
	}
}

// TestPublishBehindDamage: a commit that is complete gets its savepoint although the one
// before it, or what stands beside it, was damaged meanwhile.
func TestPublishBehindDamage(t *testing.T) {
	s := newTestStore(t)
	const root = "/srv"
	s.add(root)
	attempt := newAttempt()
	id := s.prepare(root, attempt)
	first := s.list(root)[0].RunDir()
	write(t, filepath.Dir(first), "stray")
	must(t, os.Remove(filepath.Join(first, bundle.Status)))
	if got, err := s.Publish(root, attempt); err != nil || got != id {
		t.Errorf("%q, %v", got, err)
	}
	if got := s.standing(root); !slices.Equal(got, []string{id}) {
		t.Errorf("%v stand", got)
	}
}
