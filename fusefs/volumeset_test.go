package fusefs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/spectrumfs/spectrum/test/sample"
	"pgregory.net/rapid"
)

// TestAnyRequestWithVolumeSet sends arbitrary requests to a view with volumes that are loaded,
// known by name only, or unusable.
func TestAnyRequestWithVolumeSet(t *testing.T) {
	for _, withSet := range []bool{true, false} {
		t.Run(fmt.Sprint("volume set ", withSet), func(t *testing.T) {
			volumeSet := newFakeVolumeSet()
			var opt VolumeSet
			if withSet {
				opt = volumeSet
			}
			live := File{Path: "live", Mode: 0o444, Source: Live(func() []byte { return []byte("live") })}
			x := withVolumeSet(t, opt, []File{textFile("top/file", "text")}, []File{live, textFile("still", "still")})
			snapshot := x.walk(t, ControlName, "live").NodeId
			if withSet {
				volumeSet.put("bad", &fakeVolume{tree: func(<-chan struct{}) (*Tree, error) { return nil, errNoTree }})
				volumeSet.put("good", holding(textFile("d/f", "good")))
				volumeSet.put("seen", holding(textFile("d/f", "seen")))
				volumeSet.put("listed", holding(textFile("d/f", "listed")))
				x.walk(t, "bad")
				x.walk(t, "good", "d", "f")
				x.walk(t, "seen")
				x.list(t, 1, 4096, false, func() {})
			}
			rapid.Check(t, func(t *rapid.T) { anyRequest(t, x, snapshot) })
		})
	}
}

func anyRequest(t *rapid.T, x *fixture, snapshot uint64) {
	half := func(what string) uint64 {
		return rapid.OneOf(rapid.Uint64Range(0, 9), rapid.SampledFrom([]uint64{math.MaxUint32, 1 << 31, 1 << 30})).Draw(t, what)
	}
	node := rapid.OneOf(rapid.Custom(func(*rapid.T) uint64 { return half("volume")<<32 | half("index") }),
		rapid.SampledFrom([]uint64{latestNumber, latestNumber + 1, latestNumber - 1, liveBit, snapshot, snapshot + 1, liveBit | latestNumber, math.MaxUint64}), rapid.Uint64()).Draw(t, "node")
	off := rapid.OneOf(rapid.Uint64Range(0, 20), rapid.Uint64()).Draw(t, "offset")
	h := fuse.InHeader{NodeId: node}
	in := &fuse.ReadIn{InHeader: h, Offset: off, Fh: rapid.Uint64Range(0, 3).Draw(t, "handle")}
	buf := make([]byte, rapid.IntRange(0, 2000).Draw(t, "size"))
	name := rapid.OneOf(rapid.SampledFrom([]string{LatestName, ControlName, "bad", "good", "seen", "live", "d", "f", "top", ".", ".."}), rapid.String()).Draw(t, "name")
	known := x.GetAttr(nil, &fuse.GetAttrIn{InHeader: h}, &fuse.AttrOut{})
	answers := map[string]fuse.Status{"GetAttr": known}
	_, answers["Read"] = x.read(nil, node, off, len(buf))
	_, answers["Readlink"] = x.Readlink(nil, &h)
	_, answers["GetXAttr"] = x.GetXAttr(nil, &h, name, buf)
	_, answers["GetXAttr user"] = x.GetXAttr(nil, &h, "user."+name, buf)
	_, answers["ListXAttr"] = x.ListXAttr(nil, &h, buf)
	answers["Open"] = x.Open(nil, &fuse.OpenIn{InHeader: h}, &fuse.OpenOut{})
	var opened fuse.OpenOut
	answers["OpenDir"] = x.OpenDir(nil, &fuse.OpenIn{InHeader: h}, &opened)
	answers["ReadDir"] = x.ReadDir(nil, in, fuse.NewDirEntryList(buf, off))
	answers["ReadDirPlus"] = x.ReadDirPlus(nil, in, fuse.NewDirEntryList(buf, off))
	answers["StatFs"] = x.StatFs(nil, &h, &fuse.StatfsOut{})
	var out fuse.EntryOut
	answers["Lookup"] = x.Lookup(nil, &h, name, &out)
	x.ReleaseDir(&fuse.ReleaseIn{InHeader: h, Fh: opened.Fh})
	if out.NodeId&liveBit != 0 {
		x.Forget(out.NodeId, 1)
	}
	sane := []fuse.Status{fuse.OK, estale, fuse.EIO, fuse.EINVAL, fuse.ENOENT, fuse.ENOTDIR, fuse.EISDIR, fuse.ENOTSUP, fuse.Status(syscall.ENODATA)}
	for what, st := range answers {
		if !slices.Contains(sane, st) {
			t.Fatalf("%s of node %x: %v", what, node, st)
		}
		if known == estale && what != "StatFs" && what != "Readlink" && st != estale {
			t.Fatalf("%s of node %x, which there is not: %v", what, node, st)
		}
	}
}

// TestVolumeSetTreeOnce: however many enter, by whatever request, the tree is made
// once and all get it.
func TestVolumeSetTreeOnce(t *testing.T) {
	volumeSet, gate := newFakeVolumeSet(), make(chan struct{})
	v := volumeSet.put("v", &fakeVolume{})
	v.tree = func(<-chan struct{}) (*Tree, error) {
		<-gate
		return NewTree(slices.Values([]File{textFile("f", "text")}), nil)
	}
	x := withVolumeSet(t, volumeSet, nil, nil)
	node := x.walk(t, "v").NodeId
	if v.calls.Load() != 0 {
		t.Error("looking at a volume enters it")
	}
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			var st fuse.Status
			switch i % 4 {
			case 0:
				_, st = x.look(nil, node, "f")
			case 1:
				st = x.OpenDir(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: node}}, &fuse.OpenOut{})
			case 2:
				st = x.ReadDir(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: node}}, fuse.NewDirEntryList(make([]byte, 1000), 0))
			case 3:
				st = x.ReadDirPlus(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: node}}, fuse.NewDirEntryList(make([]byte, 1000), 0))
			}
			if st != fuse.OK {
				t.Errorf("entry %d: %v", i, st)
			}
		})
	}
	eventually(t, "the tree being made", func() bool { return v.calls.Load() == 1 })
	close(gate)
	group.Wait()
	x.walk(t, "v", "f")
	if v.calls.Load() != 1 || v.crowded.Load() {
		t.Errorf("the tree was made %d times", v.calls.Load())
	}
}

// TestVolumeSetInterrupted: a waiting reader that is interrupted gets EINTR, even the first one;
// the others get the tree, which is made once.
func TestVolumeSetInterrupted(t *testing.T) {
	volumeSet, gate := newFakeVolumeSet(), make(chan struct{})
	v := volumeSet.put("v", &fakeVolume{})
	v.tree = func(<-chan struct{}) (*Tree, error) {
		<-gate
		return NewTree(slices.Values([]File{textFile("f", "text")}), nil)
	}
	x := withVolumeSet(t, volumeSet, nil, nil)
	node := x.walk(t, "v").NodeId
	if _, st := x.look(closed(), node, "f"); st != fuse.EINTR { // the first
		t.Errorf("an interrupted lookup: %v", st)
	}
	var patient, interrupted sync.WaitGroup
	for range 20 {
		patient.Go(func() {
			if _, st := x.look(nil, node, "f"); st != fuse.OK {
				t.Errorf("one who waits: %v", st)
			}
		})
		interrupted.Go(func() {
			if _, st := x.look(closed(), node, "f"); st != fuse.EINTR {
				t.Errorf("one who is interrupted: %v", st)
			}
		})
	}
	interrupted.Wait()
	close(gate)
	patient.Wait()
	if v.calls.Load() != 1 {
		t.Errorf("the tree was made %d times", v.calls.Load())
	}
}

// TestListedIsNotKnown: a listing has the number that a volume would have, but before the name is
// looked up the number is unknown.
func TestListedIsNotKnown(t *testing.T) {
	volumeSet := newFakeVolumeSet()
	volumeSet.put("v", holding(textFile("f", "text")))
	x := withVolumeSet(t, volumeSet, nil, nil)
	entries := x.list(t, 1, 4096, true, func() {})
	number := entries[len(entries)-1].Ino
	h := fuse.InHeader{NodeId: number}
	if st := x.GetAttr(nil, &fuse.GetAttrIn{InHeader: h}, &fuse.AttrOut{}); st != estale {
		t.Errorf("getattr: %v", st)
	}
	if _, st := x.look(nil, number, "f"); st != estale {
		t.Errorf("lookup: %v", st)
	}
	if st := x.OpenDir(nil, &fuse.OpenIn{InHeader: h}, &fuse.OpenOut{}); st != estale {
		t.Errorf("opendir: %v", st)
	}
	if out := x.walk(t, "v"); out.NodeId != number {
		t.Errorf("listed as %x, found as %x", number, out.NodeId)
	}
	x.walk(t, "v", "f")
}

// TestVolumeSetErrors: a failed attempt is EIO for the readers that waited for it, and the next one
// tries again; a panic is an ordinary failure.
func TestVolumeSetErrors(t *testing.T) {
	for name, bad := range map[string]func(<-chan struct{}) (*Tree, error){
		"error":         func(<-chan struct{}) (*Tree, error) { return nil, errNoTree },
		"nothing":       func(<-chan struct{}) (*Tree, error) { return nil, nil },
		"the zero tree": func(<-chan struct{}) (*Tree, error) { return &Tree{}, nil },
		"a tree and an error": func(<-chan struct{}) (*Tree, error) {
			tree, _ := NewTree(slices.Values([]File{textFile("f", "not to be seen")}), nil)
			return tree, errNoTree
		},
		"panic": func(<-chan struct{}) (*Tree, error) { panic("no tree") },
	} {
		t.Run(name, func(t *testing.T) {
			volumeSet := newFakeVolumeSet()
			v := volumeSet.put("v", &fakeVolume{})
			v.tree = func(done <-chan struct{}) (*Tree, error) {
				if v.calls.Load() <= 3 {
					return bad(done)
				}
				return NewTree(slices.Values([]File{textFile("f", "text")}), nil)
			}
			x := withVolumeSet(t, volumeSet, nil, nil)
			node := x.walk(t, "v").NodeId
			for i := range 3 {
				if out, st := x.look(nil, node, "f"); st != fuse.EIO || out.NodeId != 0 {
					t.Errorf("attempt %d: %v, %+v", i, st, out)
				}
			}
			out := x.walk(t, "v", "f")
			if got, st := x.read(nil, out.NodeId, 0, 10); st != fuse.OK || string(got) != "text" {
				t.Errorf("%q, %v", got, st)
			}
			if v.calls.Load() != 4 || strings.Count(x.logged(), "level=ERROR") != 3 || !strings.Contains(x.logged(), "path=v") {
				t.Errorf("%d calls, log: %s", v.calls.Load(), x.logged())
			}
		})
	}
}

// TestVolumeSetErrorForAll: 100 wait for an attempt that fails. None is left
// waiting, and there is never more than one attempt at a time.
func TestVolumeSetErrorForAll(t *testing.T) {
	volumeSet := newFakeVolumeSet()
	v := volumeSet.put("v", &fakeVolume{tree: func(<-chan struct{}) (*Tree, error) { return nil, errNoTree }})
	x := withVolumeSet(t, volumeSet, nil, nil)
	node := x.walk(t, "v").NodeId
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			for range 20 {
				if _, st := x.look(nil, node, "f"); st != fuse.EIO {
					t.Errorf("%v", st)
				}
			}
		})
	}
	group.Wait()
	if v.crowded.Load() {
		t.Error("two attempts at once")
	}
}

// TestVolumeSetEnds: what waits for a tree or for the latest volume ends with the
// view.
func TestVolumeSetEnds(t *testing.T) {
	volumeSet := newFakeVolumeSet()
	volumeSet.put("v", &fakeVolume{tree: func(done <-chan struct{}) (*Tree, error) {
		<-done
		return nil, errors.New("called off")
	}})
	volumeSet.latest = func(done <-chan struct{}) string { <-done; return "" }
	x := withVolumeSet(t, volumeSet, nil, nil)
	node := x.walk(t, "v").NodeId
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if _, st := x.look(nil, node, "f"); st != fuse.EIO {
				t.Errorf("lookup: %v", st)
			}
		})
		group.Go(func() {
			if _, st := x.Readlink(nil, &fuse.InHeader{NodeId: latestNumber}); st != fuse.ENOENT {
				t.Errorf("readlink: %v", st)
			}
		})
	}
	x.end()
	x.end() // twice does no harm
	group.Wait()
}

// TestLatest is a link that is there always, and leads somewhere sometimes.
func TestLatest(t *testing.T) {
	volumeSet := newFakeVolumeSet()
	x := withVolumeSet(t, volumeSet, nil, nil)
	link := x.walk(t, LatestName)
	if link.NodeId != latestNumber || link.Mode != syscall.S_IFLNK|0o777 || link.EntryTimeout() != 0 || link.AttrTimeout() != 0 {
		t.Errorf("%+v", link)
	}
	readlink := func(cancel <-chan struct{}, node uint64) (string, fuse.Status) {
		target, st := x.Readlink(cancel, &fuse.InHeader{NodeId: node})
		return string(target), st
	}
	if target, st := readlink(nil, latestNumber); target != "" || st != fuse.ENOENT {
		t.Errorf("none is the latest: %q, %v", target, st)
	}
	volumeSet.latest = func(<-chan struct{}) string { return "v" }
	if target, st := readlink(nil, latestNumber); target != "v" || st != fuse.OK {
		t.Errorf("%q, %v", target, st)
	}
	if _, st := readlink(nil, 1); st != fuse.EINVAL {
		t.Errorf("the root: %v", st)
	}
	gate := make(chan struct{})
	volumeSet.latest = func(<-chan struct{}) string { <-gate; return "late" }
	if target, st := readlink(closed(), latestNumber); target != "" || st != fuse.EINTR {
		t.Errorf("interrupted: %q, %v", target, st)
	}
	close(gate)
	if target, st := readlink(nil, latestNumber); target != "late" || st != fuse.OK {
		t.Errorf("%q, %v", target, st)
	}
	volumeSet.latest = func(<-chan struct{}) string { panic("latest") }
	if target, st := readlink(nil, latestNumber); target != "" || st == fuse.OK {
		t.Errorf("panic: %q, %v", target, st)
	}
	if _, st := newFixture(t).look(nil, 1, LatestName); st != fuse.OK {
		t.Errorf("without a volume set: %v", st)
	}
}

// TestVolumeSetNamesComeAndGo: Find decides, at once, and an absence is never cached; a volume that
// appears again is the same one.
func TestVolumeSetNamesComeAndGo(t *testing.T) {
	volumeSet := newFakeVolumeSet()
	x := withVolumeSet(t, volumeSet, []File{textFile("top/file", "text")}, []File{textFile("c", "c")})
	v := holding(textFile("f", "text"))
	var node uint64
	for i := range 5 {
		out, st := x.look(nil, 1, "v")
		if st != fuse.ENOENT || out.EntryTimeout() != 0 {
			t.Errorf("absent: %v, %v", st, out.EntryTimeout())
		}
		volumeSet.put("v", v)
		out = x.walk(t, "v")
		if i > 0 && out.NodeId != node {
			t.Errorf("it comes again with another number")
		}
		if node = out.NodeId; out.EntryTimeout() > volumeTimeout {
			t.Errorf("the kernel remembers it for %v", out.EntryTimeout())
		}
		x.walk(t, "v", "f")
		volumeSet.remove("v")
	}
	if v.calls.Load() != 1 {
		t.Errorf("its tree was made %d times", v.calls.Load())
	}
	var out fuse.EntryOut
	if st := x.Lookup(nil, &fuse.InHeader{NodeId: x.walk(t, "top").NodeId}, "v", &out); st != fuse.OK || out.NodeId != 0 {
		t.Errorf("a volume below a directory: %v, %d", st, out.NodeId)
	}
}

// TestVolumeSetListing: 10,000 volumes in small pieces, while all their names disappear and others
// appear: a reader sees the names at the time of the open.
func TestVolumeSetListing(t *testing.T) {
	many := sample.Of(2000, 10_000, 10_000)
	for _, plus := range []bool{false, true} {
		volumeSet := newFakeVolumeSet()
		x := withVolumeSet(t, volumeSet, []File{textFile("a/b", ""), textFile("zz", "")}, []File{textFile("c", "")})
		want := []string{".", "..", "a", "zz", LatestName}
		for i := range many {
			name := fmt.Sprintf("run-%05d", i)
			volumeSet.put(name, holding(textFile("f", "")))
			want = append(want, name)
		}
		i := 0
		entries := x.list(t, 1, 700, plus, func() {
			for range 20 {
				volumeSet.remove(fmt.Sprintf("run-%05d", (i*7919)%many))
				volumeSet.put(fmt.Sprintf("new-%05d", i), holding())
				i++
			}
		})
		if got := namesOf(entries); !slices.Equal(got, want) {
			t.Fatalf("plus %v: %d entries, want %d", plus, len(got), len(want))
		}
		numbers := map[uint64]string{}
		for _, e := range entries[2:] {
			if other, taken := numbers[e.Ino]; taken {
				t.Fatalf("%q and %q have one number", e.Name, other)
			}
			numbers[e.Ino] = e.Name
			if out, st := x.look(nil, 1, e.Name); st == fuse.OK && (out.Ino != e.Ino || out.NodeId != e.Ino || out.Mode&syscall.S_IFMT != e.Mode) {
				t.Fatalf("%q: listed as %x, found as %x", e.Name, e.Ino, out.Ino)
			}
		}
		if n := len(x.listings.open); n != 0 {
			t.Errorf("%d listings are left", n)
		}
	}
}

// TestVolumeSetEmptyAndBroken: a volume set with nothing on it, and one that cannot be
// listed.
func TestVolumeSetEmptyAndBroken(t *testing.T) {
	volumeSet := newFakeVolumeSet()
	x := withVolumeSet(t, volumeSet, nil, nil)
	if got := namesOf(x.list(t, 1, 1000, true, func() {})); !slices.Equal(got, []string{".", ".."}) {
		t.Errorf("%q", got)
	}
	volumeSet.err = errors.New("cannot list")
	if st := x.OpenDir(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: 1}}, &fuse.OpenOut{}); st != fuse.EIO {
		t.Errorf("%v", st)
	}
	if !strings.Contains(x.logged(), "cannot list") {
		t.Errorf("log: %s", x.logged())
	}
	var out fuse.AttrOut
	if st := x.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: 1}}, &out); st != fuse.OK || out.Nlink < 2 {
		t.Errorf("%v, %+v", st, out)
	}
}

// TestVolumeNumbers: one path, one number, for ever; two paths, two numbers.
func TestVolumeNumbers(t *testing.T) {
	volumeSet := newFakeVolumeSet()
	x := withVolumeSet(t, volumeSet, []File{textFile("d/f", "")}, []File{textFile("d/f", "")})
	seen := map[uint64]string{}
	check := func(names ...string) uint64 {
		t.Helper()
		out, path := x.walk(t, names...), strings.Join(names, "/")
		if out.NodeId != out.Ino {
			t.Errorf("%s: node %x, inode %x", path, out.NodeId, out.Ino)
		}
		if other, taken := seen[out.Ino]; taken && other != path {
			t.Errorf("%s and %s have one number", path, other)
		}
		seen[out.Ino] = path
		return out.NodeId
	}
	for range 2 {
		for i := range 20 {
			name := fmt.Sprint("v", i)
			if volumeSet.Find(name) == nil {
				volumeSet.put(name, holding(textFile("d/f", ""), textFile("g", "")))
			}
			volume := check(name)
			dir := check(name, "d")
			check(name, "d", "f")
			check(name, "g")
			for of, parent := range map[uint64]uint64{volume: 1, dir: volume} {
				if e := x.list(t, of, 1000, false, func() {}); e[0].Ino != of || e[1].Ino != parent {
					t.Errorf("%s: the dots are %+v", name, e[:2])
				}
			}
		}
		check("d", "f")
		check(ControlName, "d", "f")
		check(LatestName)
	}
}

// TestVolumeAttributes: time and links before and after it was entered.
func TestVolumeAttributes(t *testing.T) {
	volumeSet := newFakeVolumeSet()
	v := volumeSet.put("v", holding(textFile("d/f", "12345"), textFile("e/f", "")))
	x := withVolumeSet(t, volumeSet, []File{textFile("top/f", "")}, []File{textFile("c", "long")})
	if out := x.walk(t, "v"); out.Nlink != 1 || !out.ModTime().Equal(v.ModTime()) || out.AttrTimeout() != 0 {
		t.Errorf("not entered: %+v", out)
	}
	x.walk(t, "v", "d")
	if out := x.walk(t, "v"); out.Nlink != 4 || out.AttrTimeout() == 0 {
		t.Errorf("entered: %+v", out)
	}
	var attr fuse.AttrOut
	x.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: 1}}, &attr)
	if attr.Nlink != 2+1+1 || !attr.ModTime().Equal(volumeSet.ModTime()) || attr.Timeout() != 0 {
		t.Errorf("root: %+v", attr)
	}
	var st fuse.StatfsOut
	x.StatFs(nil, &fuse.InHeader{}, &st)
	if st.Files != 3+5 || st.Blocks != 1 {
		t.Errorf("%+v", st)
	}
}
