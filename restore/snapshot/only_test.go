package snapshot

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// What is written of a snapshot, or of some paths of one, is what was there, with the
// directories on the way, and nothing else.
func TestWriteHeld(t *testing.T) {
	l := newFixture(t)
	g := grown(t, l, 80)
	writeFile(t, l.path("one"), "1")
	writeFile(t, filepath.Join(mkdir(t, filepath.Join(mkdir(t, l.path("way")), "to")), "it"), "it")
	whole, was := l.take(), look(t, l.root)
	writeHeld := func(snap *Snapshot) map[string]string {
		t.Helper()
		l.made++
		name := "held" + strings.Repeat("x", l.made)
		must(t, l.store.WriteHeld(context.Background(), snap, openDir(t, l.dir), name))
		return look(t, filepath.Join(l.dir, name))
	}
	same(t, was, writeHeld(whole))
	all := g.paths(any_)
	for range 12 {
		var chosen []Chosen
		for range 1 + g.rng.IntN(3) {
			rel, err := filepath.Rel(l.root, g.pick(all))
			must(t, err)
			p, err := pathsafe.Found(rel)
			must(t, err)
			chosen = append(chosen, Chosen{p, p})
		}
		only := whole.Only(chosen)
		got := writeHeld(only)
		for path, is := range was {
			path = strings.TrimPrefix(filepath.Join("/", path), "/")
			wanted := path == "" || slices.ContainsFunc(chosen, func(c Chosen) bool {
				return path == c.Path.String() || strings.HasPrefix(path, c.Path.String()+"/") || strings.HasPrefix(c.Path.String(), path+"/")
			})
			if _, there := got[shown(path)]; there != wanted {
				t.Fatalf("%q of %v: written %v", path, chosen, there)
			}
			withoutLinks := func(s string) string { return ofLinks.ReplaceAllString(s, "$1") }
			if wanted && withoutLinks(got[shown(path)]) != withoutLinks(is) {
				t.Fatalf("%q: %s, was %s", path, got[shown(path)], is)
			}
		}
		if h := only.Header(); h.Whole || h.ID != whole.ID() || h.Names == 0 {
			t.Errorf("%+v", h)
		}
	}
	some := l.take("one", "way/to", "nothing")
	got := writeHeld(some)
	if len(got) != 5 || got["way/to/it"] != was["way/to/it"] || got["way"] != was["way"] || got["one"] != was["one"] {
		t.Errorf("of some names %v was written", got)
	}
}

// ofLinks is what look says of a file with several names, up to its attributes.
var ofLinks = regexp.MustCompile(`(?s) is=.*?( trusted\.| user\.|$)`)

// shown is a path as look calls it.
func shown(path string) string {
	if path == "" {
		return "."
	}
	return path
}
