package harness

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sysfault"
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

func TestCommit(t *testing.T) {
	for name, runs := range map[string][]Files{"single": {Single()}, "small": {Small()}, "chain": Chain(3, 10)} {
		t.Run(name, func(t *testing.T) {
			s := New(t, runs...).Site(t, filepath.Join(t.TempDir(), "root"))
			if state, err := s.State(); state != Before {
				t.Fatalf("at first: %v, %v", state, err)
			}
			r := s.Commit(t, nil)
			if r.Status != 0 || !r.Answer.OK {
				t.Fatal(r)
			}
			if _, err := s.Recovered(t, Allowed(r, s.ReportSeen())...); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRefusalLeavesNoTrace(t *testing.T) {
	p := New(t, Small())
	s := p.Site(t, filepath.Join(t.TempDir(), "root"))
	id := s.Preview(t)
	Must(t, os.WriteFile(p.Source("top.txt"), []byte("TOP\n"), 0o644))
	stamp, err := Stamp(s.Root)
	Must(t, err)
	r := p.Run(t, nil, CommitArgs(id)...)
	if r.Status != 1 || r.Answer.Phase != "PREFLIGHT" {
		t.Error(r)
	}
	if err := s.Refused(stamp); err != nil {
		t.Error(err)
	}
	file := filepath.Join(s.Root, "x")
	Must(t, os.WriteFile(file, nil, 0o600))
	Must(t, os.Remove(file))
	if s.Refused(stamp) == nil {
		t.Error("a file that came and went is not seen")
	}
}

// The judge sees every kind of damage.
func TestJudge(t *testing.T) {
	p := New(t, Small())
	at := func(s *Site, name string) string { return filepath.Join(s.Root, name) }
	damage := map[string]func(s *Site) error{
		"a killed commit": func(s *Site) error {
			staged := func(c sysfault.Call) bool { return c.Name == "renameat2" && c.To == at(s, "new") }
			if r := s.Commit(t, &sysfault.Plan{N: 1, Match: staged, Kill: true}); !r.Killed() {
				t.Error(r)
			}
			return nil
		},
		"another byte":        func(s *Site) error { return os.WriteFile(at(s, "foreign.txt"), []byte("Not yours: foreign.txt"), 0) },
		"a foreign file gone": func(s *Site) error { return os.Remove(at(s, "out/foreign.txt")) },
		"a foreign file made again": func(s *Site) error {
			Must(t, os.Remove(at(s, "out/foreign.txt")))
			return os.WriteFile(at(s, "out/foreign.txt"), []byte("not yours: out/foreign.txt"), 0o640)
		},
		"another mode":    func(s *Site) error { return os.Chmod(at(s, "out"), 0o700) },
		"another link":    func(s *Site) error { return os.Link(at(s, "out/foreign.txt"), at(s, "beside/x")) },
		"a directory":     func(s *Site) error { return os.Mkdir(at(s, "new"), 0o755) },
		"foreign staging": func(s *Site) error { return os.RemoveAll(at(s, ForeignStaging)) },
		"half a commit":   func(s *Site) error { return os.WriteFile(at(s, "top.txt"), []byte("top\n"), 0o644) },
	}
	for name, act := range damage {
		t.Run(name, func(t *testing.T) {
			s := p.Site(t, filepath.Join(t.TempDir(), "root"))
			Must(t, act(s))
			if state, err := s.State(); state != Other || err == nil {
				t.Errorf("%v, %v", state, err)
			}
		})
	}
	t.Run("after a commit", func(t *testing.T) {
		s := p.Site(t, filepath.Join(t.TempDir(), "root"))
		if r := s.Commit(t, nil); r.Status != 0 {
			t.Fatal(r)
		}
		Must(t, os.WriteFile(at(s, manifest), []byte("{}"), 0o644))
		if state, err := s.State(); state != Other || !strings.Contains(err.Error(), manifest) {
			t.Errorf("%v, %v", state, err)
		}
	})
}
