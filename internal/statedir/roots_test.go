package statedir_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// TestChangedRoots: whichever byte of the record changes, a root that did not move has its
// history under its own path.
func TestChangedRoots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	leads := func(path string) bool { return path == "/a" }
	enter := func() string {
		t.Helper()
		entered, err := open(t, path).EnterRoot("/a", "one", true, statedir.Evidence{Leads: leads})
		must(t, err)
		return entered.Name
	}
	_, err := open(t, path).EnterRoot("/a", "one", false, statedir.Evidence{Leads: leads})
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
// hint. What cannot be read is not a record.
func TestRoots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	leads := map[string]string{} // path to the identity that it leads to
	enter := func(at, id, want, wantFrom string) {
		t.Helper()
		leads[at] = id
		in, err := d.EnterRoot(at, id, false, statedir.Evidence{Leads: func(path string) bool { return leads[path] == id }})
		if err != nil || in.Name != want || in.From != wantFrom {
			t.Errorf("%s at %q: %+v, %v; want %q from %q", id, at, in, err, want, wantFrom)
		}
		if back, err := d.RootPath(in.Name); err != nil || back != at && leads[back] != id {
			t.Errorf("%q is at %q, %v", in.Name, back, err)
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
	in, err := d.EnterRoot("/looked", "two", true, statedir.Evidence{Leads: func(string) bool { return false }})
	if now, _ := d.RootPath("/a"); err != nil || in.Name != "/a" || in.From != "/again" || now != "/again" {
		t.Errorf("a look: %+v, now at %q, %v", in, now, err)
	}
	enter("/c", "six", "/c", "")
	delete(leads, "/again")
	enter("/c", "two", "/a", "/again") // where another root was
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

// TestRootsByHistory: a name that the record has lost is taken from the history of a directory,
// unless the record has that name for another directory.
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
		in, err := d.EnterRoot(path, id, false, evidence(id))
		if err != nil || in.Name != want || in.From != wantFrom {
			t.Errorf("%s at %q: %+v, %v; want %q from %q", id, path, in, err, want, wantFrom)
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
	_, err := d.EnterRoot("/b", "one", false, statedir.Evidence{Leads: evidence("one").Leads}) // as one that knew of no history
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

// kept are histories of directories by their names.
type kept map[string]pathsafe.Stat

func (k kept) Has(name string) bool { _, has := k[name]; return has }

func (k kept) KnownAs(dir pathsafe.Stat, others []string) (string, error) {
	for name, of := range k {
		if of.ID.Ino == dir.ID.Ino && !slices.Contains(others, name) {
			return name, nil
		}
	}
	return "", nil
}

// TestFindRoot: a directory is found by what it is, also after it was moved or the record was lost;
// where nothing is, the path decides.
func TestFindRoot(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	a, b, sub := filepath.Join(base, "a"), filepath.Join(base, "b"), filepath.Join(base, "a", "sub")
	must(t, os.MkdirAll(sub, 0o755))
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	find := func(at, want string, look bool, k statedir.Histories) {
		t.Helper()
		if name, err := d.FindRoot(at, look, k); err != nil || name != want {
			t.Errorf("%q: %q, %v; want %q", at, name, err, want)
		}
	}
	find(a, a, false, nil)
	find(sub, sub, false, nil)
	for _, test := range [][2]string{{a, a}, {sub, sub}, {sub + "/deeper", sub}, {a + "/other", a}, {base, ""}, {a + "b", ""}} {
		if got := d.RootAround(test[0]); got != test[1] {
			t.Errorf("around %q: %q, want %q", test[0], got, test[1])
		}
	}
	must(t, os.Rename(a, b))
	find(b, a, false, nil)
	find(a, a, true, nil) // nothing is there, and it is the name of the one that was moved
	if to := d.MovedRoot(a); to != b {
		t.Errorf("%q was moved to %q", a, to)
	}
	if to := d.MovedRoot(b) + d.MovedRoot(base); to != "" {
		t.Errorf("moved to %q", to)
	}
	must(t, os.Remove(filepath.Join(path, statedir.RootsLog)))
	dir, err := pathsafe.OpenRoot(b)
	must(t, err)
	defer dir.Close()
	st, err := dir.Stat()
	must(t, err)
	id, err := dir.Identity()
	must(t, err)
	find(b, a, true, kept{a: st})
	for _, want := range []bool{true, false} { // it is written again
		in, err := d.EnterRoot(b, id, false, statedir.EvidenceOf(id, st, kept{a: st}))
		if err != nil || in != (statedir.EnteredRoot{Name: a, From: in.From, WasLost: want}) {
			t.Errorf("%+v, %v; lost: %v", in, err, want)
		}
	}
	must(t, os.Mkdir(a, 0o755)) // another directory in its place
	find(a, a+" (2)", true, kept{a: st})
	if to := d.MovedRoot(a); to != b {
		t.Errorf("%q was moved to %q", a, to)
	}
}
