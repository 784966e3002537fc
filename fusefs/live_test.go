package fusefs

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"pgregory.net/rapid"
)

// copiesOf returns a content that shows whether it is whole and unmixed: a number, as many times as
// the number itself. The sizes cross page boundaries.
func copiesOf(n int64) []byte {
	return bytes.Repeat(fmt.Appendf(nil, "%015d\n", n), int(n*37%1500)+1)
}

// numberOf returns the number of a content, or an error if it is not whole.
func numberOf(data []byte) (n int64, err error) {
	if _, err := fmt.Sscanf(string(data[:min(16, len(data))]), "%d", &n); err != nil {
		return 0, fmt.Errorf("%d bytes that begin with %q", len(data), data[:min(16, len(data))])
	}
	if want := copiesOf(n); !bytes.Equal(data, want) {
		return 0, fmt.Errorf("%d bytes that begin with %d, want %d", len(data), n, len(want))
	}
	return n, nil
}

// liveFixture has a live file, and how to read what a lookup has found.
func liveFixture(t rapid.TB, live Live) *fixture {
	return withVolumeSet(t, nil, []File{textFile("plain", "plain"), {Path: "other", Mode: 0o444, Source: Live(func() []byte { return []byte("other") })}}, []File{{Path: "live", Mode: 0o444, Source: live}})
}

// TestLiveSnapshots: a content that was looked up stays the same for all its readers until the last
// one has forgotten it.
func TestLiveSnapshots(t *testing.T) {
	var n atomic.Int64
	x := liveFixture(t, func() []byte { return copiesOf(n.Load()) })
	var kept []fuse.EntryOut
	for i := range int64(20) {
		n.Store(i)
		out := x.walk(t, ControlName, "live")
		if again := x.walk(t, ControlName, "live"); again.NodeId != out.NodeId {
			t.Errorf("%d: the same content has another number", i)
		}
		if out.EntryTimeout() != 0 || out.Size != uint64(len(copiesOf(i))) || out.Mode != fuse.S_IFREG|0o444 || out.Nlink != 1 {
			t.Errorf("%+v", out)
		}
		if i > 0 && (out.NodeId == kept[i-1].NodeId || out.Ino != kept[0].Ino) {
			t.Errorf("%d: node %x, inode %x", i, out.NodeId, out.Ino)
		}
		kept = append(kept, out)
	}
	for i, out := range kept {
		if got, st := x.read(nil, out.NodeId, 0, 1<<20); st != fuse.OK || !bytes.Equal(got, copiesOf(int64(i))) {
			t.Errorf("%d: %d bytes, %v", i, len(got), st)
		}
		var attr fuse.AttrOut
		if st := x.GetAttr(nil, &fuse.GetAttrIn{InHeader: fuse.InHeader{NodeId: out.NodeId}}, &attr); st != fuse.OK || attr.Size != out.Size || attr.Ino != out.Ino || attr.Mtime != out.Mtime {
			t.Errorf("%d: %v, %+v, was %+v", i, st, attr.Attr, out.Attr)
		}
		x.Forget(out.NodeId, 1)
		if _, st := x.read(nil, out.NodeId, 0, 1); st != fuse.OK {
			t.Errorf("%d is gone although it was looked up twice: %v", i, st)
		}
		x.Forget(out.NodeId, 1)
		if _, st := x.read(nil, out.NodeId, 0, 1); st != estale {
			t.Errorf("%d: a read of what was forgotten: %v", i, st)
		}
	}
	if len(x.snapshots.all)+len(x.snapshots.newest) != 0 {
		t.Errorf("%d snapshots are left", len(x.snapshots.all))
	}
}

// TestLiveReadRanges compares reads of any range with a plain slice.
func TestLiveReadRanges(t *testing.T) {
	data := copiesOf(123)
	x := liveFixture(t, func() []byte { return data })
	node := x.walk(t, ControlName, "live").NodeId
	rapid.Check(t, func(t *rapid.T) {
		off := rapid.OneOf(rapid.Uint64Range(0, uint64(len(data)+10)), rapid.SampledFrom([]uint64{1 << 63, math.MaxUint64, math.MaxUint64 - 5})).Draw(t, "off")
		size := rapid.IntRange(0, len(data)+10).Draw(t, "size")
		lo := min(off, uint64(len(data)))
		got, st := x.read(nil, node, off, size)
		if want := data[lo:min(lo+uint64(size), uint64(len(data)))]; st != fuse.OK || !bytes.Equal(got, want) {
			t.Fatalf("%d bytes, %v, want %d", len(got), st, len(want))
		}
	})
}

// TestLiveForgetModel looks up, forgets and changes in any order, and compares
// the snapshots with what a kernel would know.
func TestLiveForgetModel(t *testing.T) {
	harness.Checks(t, sample.Of(15, 100, 100))
	rapid.Check(t, func(t *rapid.T) {
		var n int64
		x := liveFixture(t, func() []byte { return copiesOf(n) })
		known, contents := map[uint64]uint64{}, map[uint64]int64{}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0:
				n = rapid.Int64Range(0, 3).Draw(t, "content")
			case 1, 2:
				var out fuse.EntryOut
				control, _ := x.look(nil, 1, ControlName)
				if out, _ = x.look(nil, control.NodeId, "live"); known[out.NodeId] > 0 && contents[out.NodeId] != n {
					t.Fatalf("number %x means %d and %d", out.NodeId, contents[out.NodeId], n)
				}
				known[out.NodeId]++
				contents[out.NodeId] = n
			case 3:
				if len(known) == 0 {
					continue
				}
				node := rapid.SampledFrom(slices.Sorted(maps.Keys(known))).Draw(t, "node")
				lookups := rapid.Uint64Range(1, known[node]).Draw(t, "lookups")
				x.Forget(node, lookups)
				if known[node] -= lookups; known[node] == 0 {
					delete(known, node)
				}
			}
			if len(x.snapshots.all) != len(known) {
				t.Fatalf("%d snapshots, and the kernel knows %d", len(x.snapshots.all), len(known))
			}
			for node := range known {
				if got, st := x.read(nil, node, 0, 1<<20); st != fuse.OK || !bytes.Equal(got, copiesOf(contents[node])) {
					t.Fatalf("number %x: %d bytes, %v", node, len(got), st)
				}
			}
		}
	})
}

// TestLiveForgetTooMuch: a kernel that forgets what it does not know does no harm.
func TestLiveForgetTooMuch(t *testing.T) {
	x := liveFixture(t, func() []byte { return []byte("x") })
	for _, n := range []uint64{2, 100, math.MaxUint64} {
		node := x.walk(t, ControlName, "live").NodeId
		x.Forget(node, n)
		x.Forget(node, 1)
		x.Forget(node, 0)
		x.Forget(node+1, 1)
		if len(x.snapshots.all)+len(x.snapshots.newest) != 0 {
			t.Fatalf("after %d too many: %d snapshots", n, len(x.snapshots.all))
		}
	}
	x.Forget(1, math.MaxUint64) // numbers of a tree are for ever
	x.walk(t, "plain")
}

// TestLiveInParallel changes the content all the time. No reader sees two contents mixed, and
// nothing is left behind.
func TestLiveInParallel(t *testing.T) {
	var n atomic.Int64
	x := liveFixture(t, func() []byte { return copiesOf(n.Add(1)) })
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range sample.Of(60, 300, 300) {
				out := x.walk(t, ControlName, "live")
				data, st := x.read(nil, out.NodeId, 0, 1<<20)
				if _, err := numberOf(data); st != fuse.OK || err != nil || uint64(len(data)) != out.Size {
					t.Errorf("%v, %v, %d bytes of %d", st, err, len(data), out.Size)
				}
				x.Forget(out.NodeId, 1)
			}
		})
	}
	group.Wait()
	if len(x.snapshots.all)+len(x.snapshots.newest) != 0 {
		t.Errorf("%d snapshots are left", len(x.snapshots.all))
	}
}

// TestLiveIsListedWithoutANode: a listing must not tell the kernel of a
// snapshot, and shows the inode number that stat shows.
func TestLiveIsListedWithoutANode(t *testing.T) {
	x := liveFixture(t, func() []byte { return []byte("x") })
	out := x.walk(t, "other")
	list := fuse.NewDirEntryList(make([]byte, 4096), 0)
	x.ReadDirPlus(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: 1}}, list)
	entries, outs, err := fuse.ParseDirLookupEntries(list.Bytes())
	if err != nil || len(entries) != 4 {
		t.Fatal(entries, err)
	}
	for i, e := range entries {
		if e.Name == "other" && (e.Ino != out.Ino || outs[i].NodeId != 0) {
			t.Errorf("listed as %x with node %x, found as %x", e.Ino, outs[i].NodeId, out.Ino)
		}
		if strings.HasPrefix(e.Name, ControlName) {
			t.Error("the control directory is listed")
		}
	}
	if len(x.snapshots.all) != 1 {
		t.Errorf("%d snapshots", len(x.snapshots.all))
	}
	if st := x.Open(nil, &fuse.OpenIn{InHeader: fuse.InHeader{NodeId: out.NodeId}}, &fuse.OpenOut{}); st != fuse.OK {
		t.Errorf("open: %v", st)
	}
	if x.stats.Reads() != 0 {
		t.Error("a listing counts as a read")
	}
}

// TestLiveOfNothing is an empty file.
func TestLiveOfNothing(t *testing.T) {
	x := liveFixture(t, func() []byte { return nil })
	out := x.walk(t, ControlName, "live")
	if got, st := x.read(nil, out.NodeId, 0, 100); st != fuse.OK || len(got) != 0 || out.Size != 0 {
		t.Errorf("%q, %v, size %d", got, st, out.Size)
	}
}

// TestLiveKeepsABoundedNumber: a reader holds a file for each content. The number of stored
// contents is bounded, the newest is always stored, and a dropped one is an error and never another
// content.
func TestLiveKeepsABoundedNumber(t *testing.T) {
	var n atomic.Int64
	for name, test := range map[string]struct{ size, times int }{
		"small": {100, 2 * maxSnapshots}, "large": {maxKept / 10, 15}, "too large": {maxKept + 1, 2},
	} {
		size := test.size
		x := liveFixture(t, func() []byte { return bytes.Repeat([]byte{byte(n.Load())}, size) })
		var held []fuse.EntryOut
		for range test.times {
			n.Add(1)
			held = append(held, x.walk(t, ControlName, "live"))
			if len(x.snapshots.all) > maxSnapshots || x.snapshots.kept > max(maxKept, size) {
				t.Fatalf("%s: %d snapshots, %d bytes", name, len(x.snapshots.all), x.snapshots.kept)
			}
			if got, st := x.read(nil, held[len(held)-1].NodeId, 0, 1); st != fuse.OK || got[0] != byte(n.Load()) {
				t.Fatalf("%s: the newest is %q, %v", name, got, st)
			}
		}
		for i, out := range held {
			first := n.Load() - int64(len(held)) + 1
			if got, st := x.read(nil, out.NodeId, 0, 1); st != estale && (st != fuse.OK || got[0] != byte(first+int64(i))) {
				t.Fatalf("%s: number %d is %q, %v", name, i, got, st)
			}
			x.Forget(out.NodeId, 1)
		}
		if x.snapshots.kept != 0 || len(x.snapshots.all)+x.snapshots.order.Len() != 0 {
			t.Errorf("%s: %d bytes are left", name, x.snapshots.kept)
		}
	}
}

// TestFreshIsMadeOneAtATime: many ask while a value is being made. They wait for one
// more, which is begun after they came, and not for one each.
func TestFreshIsMadeOneAtATime(t *testing.T) {
	var f fresh[int64]
	var made atomic.Int64
	begun, goOn := make(chan struct{}), make(chan struct{})
	produce := func() (int64, error) {
		n := made.Add(1)
		if n == 1 {
			close(begun)
			<-goOn
		}
		return n, nil
	}
	first := f.ask(produce)
	<-begun
	second := f.ask(produce)
	for range 1000 {
		if f.ask(produce) != second {
			t.Fatal("each has a value made")
		}
	}
	close(goOn)
	<-first.ready
	<-second.ready
	if first.value != 1 || second.value != 2 || made.Load() != 2 {
		t.Errorf("%d, then %d, made %d times", first.value, second.value, made.Load())
	}
	if third := f.ask(produce); third == second {
		t.Error("who comes later gets an old value")
	}
}

// TestFailedContentIsIOError: what cannot be made is an I/O error, and a finding only where a source is named.
func TestFailedContentIsIOError(t *testing.T) {
	var content []byte
	var fail error
	x := withVolumeSet(t, nil, []File{textFile("plain", "plain")}, []File{{Path: "made", Mode: 0o400, Source: Made(func(<-chan struct{}) ([]byte, error) { return content, fail })}})
	dir := x.walk(t, ControlName)
	content = []byte("one")
	out, st := x.look(nil, dir.NodeId, "made")
	if data, read := x.read(nil, out.NodeId, 0, 10); st != fuse.OK || read != fuse.OK || string(data) != "one" || out.Size != 3 || out.Mode != fuse.S_IFREG|0o400 {
		t.Errorf("%v, %v, %q, %+v", st, read, data, out)
	}
	content, fail = []byte("never"), errors.New("the disk is slow")
	if out, st := x.look(nil, dir.NodeId, "made"); st != fuse.EIO || out.NodeId != 0 || len(x.findings.seen) != 0 {
		t.Errorf("%v, %+v, %v", st, out, x.findings.seen)
	}
	fail = fmt.Errorf("wrapped: %w", &SourceError{"plain", errors.New("changed")})
	for range 2 {
		if _, st := x.look(nil, dir.NodeId, "made"); st != fuse.EIO || len(x.findings.seen) != 1 {
			t.Errorf("%v, %v", st, x.findings.seen)
		}
	}
	if said := x.logged(); !strings.Contains(said, "the disk is slow") || strings.Count(said, "changed") != 1 {
		t.Error(said)
	}
	if data, st := x.read(nil, out.NodeId, 0, 10); st != fuse.OK || string(data) != "one" { // it is open
		t.Errorf("%q, %v", data, st)
	}
}

// TestMadeIsInterrupted: a reader that is interrupted stops waiting for a content, and making it
// ends with the view.
func TestMadeIsInterrupted(t *testing.T) {
	ended := make(chan struct{})
	x := withVolumeSet(t, nil, nil, []File{{Path: "made", Mode: 0o400, Source: Made(func(done <-chan struct{}) ([]byte, error) {
		defer close(ended)
		<-done
		return nil, errors.New("no reader waits")
	})}})
	dir := x.walk(t, ControlName)
	cancel := make(chan struct{})
	close(cancel)
	if _, st := x.look(cancel, dir.NodeId, "made"); st != fuse.EINTR {
		t.Error(st)
	}
	x.end()
	<-ended
}
