package savepoint_test

import (
	"errors"
	"io/fs"
	"maps"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"pgregory.net/rapid"
)

// model is what a store must say.
type model struct {
	chain    []string          // ids
	attempts map[string]string // published attempt to id
	prepared map[string]draw
}

// draw is a prepared savepoint of the model.
type draw struct{ id, parent string }

func (m *model) tip() string {
	if len(m.chain) == 0 {
		return ""
	}
	return m.chain[len(m.chain)-1]
}

// TestModel: any sequence of steps, with the store opened anew in between, does
// to it what it does to the model.
func TestModel(t *testing.T) {
	harness.Checks(t, sample.Of(8, 100, 100))
	t.Parallel()
	attempts := []string{newAttempt(), newAttempt(), newAttempt(), newAttempt()}
	roots := []string{"/one", "/two"}
	rapid.Check(t, func(rt *rapid.T) {
		s := newTestStore(t)
		models := map[string]*model{}
		for _, root := range roots {
			models[root] = &model{attempts: map[string]string{}, prepared: map[string]draw{}}
		}
		pick := func() (string, string, *model) {
			root := rapid.SampledFrom(roots).Draw(rt, "root")
			return root, rapid.SampledFrom(attempts).Draw(rt, "attempt"), models[root]
		}
		rt.Repeat(map[string]func(*rapid.T){
			"prepare": func(*rapid.T) {
				root, attempt, m := pick()
				id, err := s.Prepare(t.Context(), root, attempt, draft(t, attempt), s.key, "git:x")
				_, waits := m.prepared[attempt]
				if _, done := m.attempts[attempt]; waits || done {
					if !errors.Is(err, fs.ErrExist) {
						rt.Fatalf("prepared twice: %v", err)
					}
					return
				}
				must(t, err)
				m.prepared[attempt] = draw{id, m.tip()}
			},
			"publish": func(*rapid.T) {
				root, attempt, m := pick()
				id, err := s.Publish(root, attempt)
				p, waits := m.prepared[attempt]
				switch {
				case waits && p.parent != m.tip():
					if !errors.Is(err, savepoint.ErrStale) {
						rt.Fatalf("a stale one: %q, %v", id, err)
					}
					return
				case waits:
					m.chain, m.attempts[attempt] = append(m.chain, p.id), p.id
					delete(m.prepared, attempt)
				}
				if err != nil || id != m.attempts[attempt] {
					rt.Fatalf("published %q, %v; want %q", id, err, m.attempts[attempt])
				}
			},
			"drop": func(*rapid.T) {
				root, attempt, m := pick()
				must(t, s.Drop(root, attempt))
				delete(m.prepared, attempt)
			},
			"reopen": func(*rapid.T) {
				must(t, s.Close())
				var err error
				s.Store, err = savepoint.Open(s.path)
				must(t, err)
			},
			"": func(*rapid.T) {
				for _, root := range roots {
					m := models[root]
					s.wantPending(root, slices.Collect(maps.Keys(m.prepared))...)
					if got := idsOf(s.list(root)); !slices.Equal(got, m.chain) {
						rt.Fatalf("%s: %v, want %v", root, got, m.chain)
					}
				}
			},
		})
		for _, root := range roots {
			s.wantChain(root, models[root].chain...)
		}
		if got, want := idsOf(s.list("")), slices.Concat(models[roots[0]].chain, models[roots[1]].chain); !slices.Equal(got, want) {
			rt.Fatalf("all: %v, want %v", got, want)
		}
	})
}
