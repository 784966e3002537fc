package pathsafe

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinksUnder opens paths that lead through an absolute link. ROOT in a target is the real path
// of the root, WAY another path that leads to it.
func TestLinksUnder(t *testing.T) {
	for _, c := range []struct {
		target, byRoot, byWay string // reasons for a root opened by its real path, and by the other one
	}{
		{"ROOT/f", "ok", "ok"},
		{"/.ROOT//./d/../f", "ok", "ok"},
		{"ROOT/d/../../root/f", "escape", "escape"},
		{"ROOT/../root/f", "escape", "escape"},
		{"ROOT/d", "not regular", "not regular"},
		{"ROOT", "not regular", "not regular"},
		{"ROOT/", "not regular", "not regular"},
		{"ROOT/pipe", "not regular", "not regular"},
		{"ROOT/none", "missing", "missing"},
		{"ROOT/f/x", "missing", "missing"},
		{"ROOT/indirect", "ok", "ok"},
		{"ROOT/link", "escape", "escape"}, // itself
		{"ROOT/out", "escape", "escape"},
		{"ROOT-too/f", "escape", "escape"},
		{"WAY/f", "escape", "ok"},
		{"/proc/self/rootROOT/f", "escape", "escape"},
		{"/proc/self/environ", "escape", "escape"},
		{"/", "escape", "escape"},
	} {
		eachWalker(t, func(t *testing.T, w walker) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			must(t, err)
			root, way := filepath.Join(top, "root"), filepath.Join(top, "way")
			plant(t, root, "f", "d/f", "pipe|", "indirect -> "+root+"/d/f", "out -> /etc/passwd")
			plant(t, root+"-too", "f")
			must(t, os.Symlink(root, way))
			target := strings.NewReplacer("ROOT", root, "WAY", way).Replace(c.target)
			must(t, os.Symlink(target, filepath.Join(root, "link")))
			checkReason(t, openDir(t, root, w), mustParse(t, "link"), LinksUnder, c.byRoot)
			checkReason(t, openDir(t, way, w), mustParse(t, "link"), LinksUnder, c.byWay)
			checkReason(t, openDir(t, root, w), mustParse(t, "link"), LinksBeneath, "escape")
			checkReason(t, openDir(t, root, w), mustParse(t, "link"), NoLinks, "symlink")
		})
	}
}

// TestLinksUnderMovedRoot: the handle is the root. A link that leads to where the root was does
// not reach the directory that is there now.
func TestLinksUnderMovedRoot(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		top, err := filepath.EvalSymlinks(t.TempDir())
		must(t, err)
		root := filepath.Join(top, "root")
		plant(t, root, "f", "link -> "+root+"/f", "only -> "+root+"/stranger")
		d := openDir(t, root, w)
		must(t, os.Rename(root, root+"-moved"))
		plant(t, root, "stranger", "f")
		checkReason(t, d, mustParse(t, "only"), LinksUnder, "missing")
		f, _, err := d.OpenRegular(mustParse(t, "link"), LinksUnder)
		must(t, err)
		held, err := f.Stat()
		must(t, err)
		must(t, f.Close())
		own, err := os.Stat(filepath.Join(root+"-moved", "f"))
		must(t, err)
		if !os.SameFile(held, own) {
			t.Error("the link led out of the root that is held")
		}
	})
}
