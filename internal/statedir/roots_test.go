package statedir_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
)

// TestChangedRoots: whichever byte of the record changes, a root that did not move has its
// history under its own path.
func TestChangedRoots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	leads := func(path string) bool { return path == "/a" }
	enter := func() string {
		t.Helper()
		name, _, err := open(t, path).EnterRoot("/a", "one", true, statedir.Evidence{Leads: leads})
		must(t, err)
		return name
	}
	_, _, err := open(t, path).EnterRoot("/a", "one", false, statedir.Evidence{Leads: leads})
	must(t, err)
	file := filepath.Join(path, "roots.log")
	raw, err := os.ReadFile(file)
	must(t, err)
	for i := range raw {
		for _, bit := range []byte{1, 2, 0x20, 0x80} {
			changed := bytes.Clone(raw)
			changed[i] ^= bit
			must(t, os.WriteFile(file, changed, 0o600))
			if name := enter(); name != "/a" {
				t.Errorf("%q: its history is of %q", changed, name)
			}
			if at, err := open(t, path).RootPath("/a"); err != nil || at != "/a" {
				t.Errorf("%q: it is at %q, %v", changed, at, err)
			}
		}
	}
}

// TestRoots: the identity of a directory decides which history is its own, and its path is a
// hint. What cannot be read is no record.
func TestRoots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	leads := map[string]string{} // path to the identity that it leads to
	enter := func(at, id, want, wantFrom string) {
		t.Helper()
		leads[at] = id
		name, from, err := d.EnterRoot(at, id, false, statedir.Evidence{Leads: func(path string) bool { return leads[path] == id }})
		if err != nil || name != want || from != wantFrom {
			t.Errorf("%s at %q: %q from %q, %v; want %q from %q", id, at, name, from, err, want, wantFrom)
		}
		if back, err := d.RootPath(name); err != nil || back != at && leads[back] != id {
			t.Errorf("%q is at %q, %v", name, back, err)
		}
	}
	enter("/a", "one", "/a", "")
	enter("/a", "one", "/a", "")
	enter("/link/a", "one", "/link/a", "") // the same by another mount
	enter("/a", "two", "/a", "")           // deleted and made again
	enter("/b", "three", "/b", "")
	delete(leads, "/a")
	enter("/moved", "two", "/a", "/a")
	enter("/a", "four", "/a (2)", "")
	enter("/a", "four", "/a (2)", "")
	delete(leads, "/moved")
	enter("/again", "two", "/a", "/moved")
	if name, err := d.RootName("/again"); err != nil || name != "/a" {
		t.Errorf("%q, %v", name, err)
	}
	if name, err := d.RootName("/unknown"); err != nil || name != "/unknown" {
		t.Errorf("%q, %v", name, err)
	}
	name, from, err := d.EnterRoot("/looked", "two", true, statedir.Evidence{Leads: func(string) bool { return false }})
	if now, _ := d.RootPath("/a"); err != nil || name != "/a" || from != "/again" || now != "/again" {
		t.Errorf("a look: %q from %q, now at %q, %v", name, from, now, err)
	}
	enter("/c", "six", "/c", "")
	delete(leads, "/again")
	enter("/c", "two", "/a", "/again") // where another one was
	if name, err := d.RootName("/c"); err != nil || name != "/a" {
		t.Errorf("the last one found there: %q, %v", name, err)
	}
	enter("/bad\xff", "five", "/bad\xff", "")
	file := filepath.Join(path, "roots.log")
	must(t, os.WriteFile(file, []byte(`{}`+"\n"+`{"id":"tw`), 0o600)) // the last was cut off
	enter("/again", "two", "/again", "")
	reopened, err := statedir.Open(path)
	must(t, err)
	defer reopened.Close()
	if paths, err := reopened.RootPaths(); err != nil || len(paths) != 1 || paths[0] != "/again" {
		t.Errorf("%q, %v", paths, err)
	}
}

// TestRootsByHistory: what the record has lost, the history of a directory says, unless the
// record has that name for another one.
func TestRootsByHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	at, kept := "/a", map[string]string{"/a": "one"} // name to identity
	evidence := func(id string) statedir.Evidence {
		return statedir.Evidence{
			Leads: func(path string) bool { return id == "one" && path == at },
			Has:   func(name string) bool { return kept[name] != "" },
			Past: func(others []string) string {
				for name, of := range kept {
					if of == id && !slices.Contains(others, name) {
						return name
					}
				}
				return ""
			},
		}
	}
	enter := func(path, id, want, wantFrom string) {
		t.Helper()
		name, from, err := d.EnterRoot(path, id, false, evidence(id))
		if err != nil || name != want || from != wantFrom {
			t.Errorf("%s at %q: %q from %q, %v; want %q from %q", id, path, name, from, err, want, wantFrom)
		}
	}
	lose := func() { must(t, os.Remove(filepath.Join(path, "roots.log"))) }
	at = "/b"
	enter("/b", "one", "/a", "/a") // never recorded
	enter("/b", "one", "/a", "")
	lose()
	at = "/a"
	enter("/a", "one", "/a", "")
	lose()
	_, _, err := d.EnterRoot("/b", "one", false, statedir.Evidence{Leads: evidence("one").Leads}) // as one that knew of no history
	must(t, err)
	enter("/a", "one", "/a", "")
	if paths, err := d.RootPaths(); err != nil || len(paths) != 1 || paths[0] != "/a" {
		t.Errorf("%q, %v", paths, err)
	}
	lose()
	enter("/a", "two", "/a", "") // made in its place, and entered first
	at = "/b"
	enter("/b", "one", "/b", "")
	if is, err := d.Names("/a"); !is || err != nil {
		t.Errorf("/a is not named, %v", err)
	}
	if is, err := d.Names("/c"); is || err != nil {
		t.Errorf("/c is named, %v", err)
	}
}
