package fusefs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// TestControlIsHidden: the view with a control directory is the view without one, for a reader
// that does not know its name.
func TestControlIsHidden(t *testing.T) {
	files := []File{textFile("a/b/c", "123"), textFile("a/d", "45"), textFile(".spectru", ""), textFile(".spectrum2/x", ""), textFile("z", "")}
	for _, list := range [][]File{files, nil, {textFile("only", "")}} {
		control := []File{textFile("status", "up"), textFile("runs/r1/STATUS.json", "{}"), textFile("runs/r2/STATUS.json", "{}"), textFile("a/b/c", "other")}
		with, without := withVolumeSet(t, nil, list, control), newFixture(t, list...)
		compareHidden(t, with, without, "", 1, 1)
		var a, b fuse.StatfsOut
		with.StatFs(nil, &fuse.InHeader{}, &a)
		without.StatFs(nil, &fuse.InHeader{}, &b)
		if a != b {
			t.Errorf("statfs %+v, without %+v", a, b)
		}
		for _, f := range control {
			out := with.walk(t, append([]string{ControlName}, strings.Split(f.Path, "/")...)...)
			if out.Size != uint64(f.Size) {
				t.Errorf("%s: %+v", f.Path, out)
			}
			got, st := with.read(nil, out.NodeId, 0, 100)
			if st != fuse.OK || uint64(len(got)) != out.Size {
				t.Errorf("%s: %q, %v", f.Path, got, st)
			}
			place, ok := with.find(out.NodeId)
			if want := ControlName + "/" + f.Path; !ok || place.path() != want {
				t.Errorf("its path is %q, want %q", place.path(), want)
			}
		}
		if out, st := without.look(nil, 1, ControlName); st != fuse.OK || out.NodeId != 0 {
			t.Errorf("there is one without: %v, %d", st, out.NodeId)
		}
	}
}

// compareHidden walks two views as the kernel would.
func compareHidden(t *testing.T, with, without *fixture, path string, a, b uint64) {
	t.Helper()
	for _, plus := range []bool{false, true} {
		got, want := namesOf(with.list(t, a, 300, plus, func() {})), namesOf(without.list(t, b, 300, plus, func() {}))
		if !slices.Equal(got, want) || slices.Contains(got, ControlName) {
			t.Errorf("%q lists %q, without %q", path, got, want)
		}
	}
	for _, e := range without.list(t, b, 300, false, func() {})[dots:] {
		x, y := with.walk(t, append(strings.Fields(strings.ReplaceAll(path, "/", " ")), e.Name)...), must1(without.look(nil, b, e.Name))
		x.NodeId, x.Ino = y.NodeId, y.Ino
		if x.Attr != y.Attr || x.EntryTimeout() != y.EntryTimeout() {
			t.Errorf("%s/%s: %+v, without %+v", path, e.Name, x, y)
		}
		if y.IsDir() {
			compareHidden(t, with, without, path+"/"+e.Name, must1(with.look(nil, a, e.Name)).NodeId, y.NodeId)
		}
	}
	var x, y fuse.AttrOut
	with.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: a}}, &x)
	without.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: b}}, &y)
	if x.Ino = y.Ino; x.Attr != y.Attr {
		t.Errorf("%q: %+v, without %+v", path, x.Attr, y.Attr)
	}
}

func must1(out fuse.EntryOut, st fuse.Status) fuse.EntryOut {
	if st != fuse.OK {
		panic(st)
	}
	return out
}

// TestControlInside: it is an ordinary directory, except that it is not listed; and it is in the
// root only.
func TestControlInside(t *testing.T) {
	x := withVolumeSet(t, nil, []File{textFile("a/.spectrum/own", "mine"), textFile("b", "")}, []File{textFile("s", ""), textFile("d/e", ""), textFile(".spectrum/deep", "")})
	control := x.walk(t, ControlName)
	if !control.IsDir() || control.Nlink != 4 {
		t.Errorf("%+v", control)
	}
	entries := x.list(t, control.NodeId, 1000, true, func() {})
	if got := namesOf(entries); !slices.Equal(got, []string{".", "..", ".spectrum", "d", "s"}) {
		t.Errorf("it lists %q", got)
	}
	if entries[0].Ino != control.Ino || entries[1].Ino != 1 {
		t.Errorf("its dots are %+v", entries[:2])
	}
	x.walk(t, ControlName, ControlName, "deep")
	x.walk(t, "a", ControlName, "own")
	for _, path := range [][]string{{ControlName, "d"}, {ControlName, ControlName}} {
		if out, st := x.look(nil, x.walk(t, path...).NodeId, ControlName); st != fuse.OK || out.NodeId != 0 {
			t.Errorf("%q has one: %v, %d", path, st, out.NodeId)
		}
	}
}

// TestControlRejected: a tree that has the name itself, and a control directory
// that makes no sense.
func TestControlRejected(t *testing.T) {
	good := []File{textFile("ok", "")}
	for name, test := range map[string]struct{ files, control []File }{
		"a file of the name":      {[]File{textFile(ControlName, "")}, good},
		"a directory of the name": {[]File{textFile(ControlName+"/x", "")}, good},
		"also for nothing":        {[]File{textFile(ControlName+"/x", "")}, nil},
		"a clash":                 {good, []File{textFile("a", ""), textFile("a/b", "")}},
		"twice":                   {good, []File{textFile("a", ""), textFile("a", "")}},
		"out of it":               {good, []File{textFile("../a", "")}},
		"no source":               {good, []File{{Path: "a"}}},
	} {
		tree, err := NewTree(slices.Values(test.files), slices.Values(test.control))
		if tree != nil || !errors.Is(err, ErrBadTree) {
			t.Errorf("%s: %v, %v", name, tree, err)
		}
	}
	if _, err := NewTree(slices.Values([]File{textFile(ControlName+"/x", "")}), nil); err != nil {
		t.Errorf("a view without control: %v", err)
	}
}

// TestControlEmpty: an empty one is found too.
func TestControlEmpty(t *testing.T) {
	x := withVolumeSet(t, nil, nil, nil)
	out := x.walk(t, ControlName)
	if got := fmt.Sprint(namesOf(x.list(t, out.NodeId, 1000, true, func() {})), namesOf(x.list(t, 1, 1000, true, func() {}))); got != "[. ..] [. ..]" {
		t.Errorf("%s", got)
	}
}
