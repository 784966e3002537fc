package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// fill makes some files, of which the snapshot has several parts.
func (l *fixture) fill(files int) {
	l.t.Helper()
	for i := range files {
		writeFile(l.t, l.path(fmt.Sprintf("f%04d", i)), fmt.Sprint("content ", i))
	}
}

// objects lists the objects of the store with their sizes.
func (l *fixture) objects() map[string]int64 {
	l.t.Helper()
	all := map[string]int64{}
	names, err := filepath.Glob(l.storePath(objectsName, "*", "*"))
	must(l.t, err)
	for _, name := range names {
		st, err := os.Stat(name)
		must(l.t, err)
		all[filepath.Base(name)] = st.Size()
	}
	return all
}

// partObjects are the paths of the objects of the parts of a snapshot, without those that it has
// in common with others.
func (l *fixture) partObjects(snap *Snapshot, others ...*Snapshot) (paths []string) {
	l.t.Helper()
	loaded, err := l.store.Find(snap.ID())
	must(l.t, err)
	shared := map[Digest]bool{}
	for _, other := range others {
		loaded, err := l.store.Find(other.ID())
		must(l.t, err)
		for _, p := range loaded.parts {
			shared[p.digest] = true
		}
	}
	for _, p := range loaded.parts {
		if !shared[p.digest] {
			paths = append(paths, l.storePath(p.digest.path()))
		}
	}
	return paths
}

// TestPartsShared: a second snapshot of the same adds no object, and one of a root in which a
// file was changed, made or removed adds its content and few parts, wherever the file is.
func TestPartsShared(t *testing.T) {
	l := newFixture(t)
	l.store.division = usualDivision
	const files = 160
	l.fill(files)
	first := l.take()
	if n := len(l.partObjects(first)); n < files/maxPartNames || n > files/4 {
		t.Fatalf("%d parts of %d names", n, files)
	}
	added := func(what string, most int) *Snapshot {
		t.Helper()
		before := l.objects()
		snap := l.take()
		after := l.objects()
		if n := len(after) - len(before); n > most {
			t.Errorf("%s: %d new objects, want at most %d", what, n, most)
		}
		same(t, look(t, l.root), look(t, l.write(snap, "")))
		return snap
	}
	again := added("unchanged", 0)
	if len(l.partObjects(again, first)) > 0 {
		t.Error("parts of the same names are others")
	}
	for _, name := range []string{"f0000", "f0080", "f0159"} {
		writeFile(t, l.path(name), "changed "+name)
		added("changed "+name, 2)
		must(t, os.Remove(l.path(name)))
		added("removed "+name, 2)
		writeFile(t, l.path(name+"x"), "new "+name)
		added("made "+name, 3)
	}
	l.sound()
}

// TestGroups: parts have all entries in their order and keep to the bounds, and a name that comes
// changes two of them at most, whatever it is.
func TestGroups(t *testing.T) {
	names := make([]Entry, 3000)
	for i := range names {
		names[i].Path = fmt.Sprintf("dir/%05d", 2*i)
	}
	shape := func(entries []Entry) (all []string) {
		for _, g := range usualDivision.groups(entries) {
			if len(g) > maxPartNames {
				t.Fatalf("%d names in a part", len(g))
			}
			all = append(all, g[0].Path+" "+g[len(g)-1].Path+fmt.Sprint(len(g)))
		}
		return all
	}
	var flat []Entry
	groups := usualDivision.groups(names)
	for i, g := range groups {
		if flat = append(flat, g...); len(g) < usualDivision.least && i < len(groups)-1 {
			t.Errorf("part %d has %d names", i, len(g))
		}
	}
	if !slices.EqualFunc(flat, names, func(a, b Entry) bool { return a.Path == b.Path }) {
		t.Fatal("entries are lost")
	}
	was, most := shape(names), 0
	for i := 0; i < len(names); i += 7 {
		entry := Entry{Path: fmt.Sprintf("dir/%05d", 2*i+1)}
		now := shape(slices.Insert(slices.Clone(names), i+1, entry))
		fresh := 0
		for _, one := range now {
			if !slices.Contains(was, one) {
				fresh++
			}
		}
		most = max(most, fresh)
	}
	if most > 12 {
		t.Errorf("a name that comes changes %d parts of %d", most, len(was))
	}
	large := make([]Entry, 200)
	for i := range large {
		large[i] = Entry{Path: fmt.Sprintf("%04d", i), Target: strings.Repeat("x", 4000)}
	}
	for _, g := range usualDivision.groups(large) {
		if len(g) > endPart/4000+1 {
			t.Errorf("%d long entries in a part", len(g))
		}
	}
}

// TestPartChanged: a part of which a byte is changed, that is cut, lost or another file is damage of
// each manifest that has it, of no other, and Prune removes nothing then. A take of what has not
// changed makes the part again.
func TestPartChanged(t *testing.T) {
	ctx := context.Background()
	l := newFixture(t)
	l.fill(12)
	first, second := l.take(), l.take()
	must(t, os.RemoveAll(l.root))
	mkdir(t, l.root)
	l.handle.Close()
	l.handle = openDir(t, l.root)
	writeFile(t, l.path("one"), "1")
	writeFile(t, l.path("two"), "2")
	writeFile(t, l.path("three"), "3")
	other := l.take()
	hurt := []*Snapshot{first, second}
	path := l.partObjects(first, other)[1]
	good, err := os.ReadFile(path)
	must(t, err)
	check := func(what string) {
		t.Helper()
		for _, s := range hurt {
			snap, err := l.store.Find(s.ID())
			var d *DamageError
			if !errors.As(err, &d) || snap != nil || d.Part != strings.TrimPrefix(path, l.storePath()+"/") || !strings.HasSuffix(d.Path, "-"+s.ID()) {
				t.Fatalf("%s: %v", what, err)
			}
		}
		if _, err := l.store.Find(other.ID()); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	tried := sample.Every(t, 7)
	for i := range good {
		if !tried.Has(i) {
			continue
		}
		bad := bytes.Clone(good)
		bad[i] ^= 1 << (i / tried.Every % 8)
		replace(t, path, bad)
		check("byte changed")
		replace(t, path, good[:i])
		check("cut")
	}
	replace(t, path, append(bytes.Clone(good), good...))
	check("longer")
	must(t, os.Remove(path))
	check("lost")
	all, err := l.store.List("")
	must(t, err)
	changed, err := l.store.Changed(ctx, all, 1<<30)
	if err != nil || len(changed) != len(hurt) {
		t.Errorf("changed: %v, %v", changed, err)
	}
	in, err := l.store.Inspect(ctx, "", Budget{1 << 30, 1 << 30})
	if err != nil || len(in.Found) != len(hurt) || in.Found[0].Header.ID != second.ID() || in.Found[0].Damage.Part == "" {
		t.Errorf("inspect: %v, %v", in.Found, err)
	}
	objects := l.objects()
	_, err = l.store.Prune(ctx, Policy{KeepLast: 1}, nil)
	wantDamage(t, "prune", err)
	if diff := cmp.Diff(objects, l.objects()); diff != "" {
		t.Errorf("prune beside damage: %s", diff)
	}
	must(t, os.WriteFile(path, good, objectPerm))
	l.sound()
}

// TestPartAgain: a lost or changed part is made again by a take, where nothing in it has changed.
func TestPartAgain(t *testing.T) {
	for _, spoil := range []func(string){
		func(path string) { must(t, os.Remove(path)) },
		func(path string) {
			data, err := os.ReadFile(path)
			must(t, err)
			data[0] ^= 1
			replace(t, path, data)
		},
	} {
		l := newFixture(t)
		l.fill(12)
		first := l.take()
		for _, path := range l.partObjects(first) {
			spoil(path)
		}
		if _, err := l.store.Find(first.ID()); err == nil {
			t.Fatal("no damage")
		}
		l.take()
		if n := len(l.sound()); n != 2 {
			t.Errorf("%d snapshots are sound", n)
		}
	}
}

// TestPartsForged: parts that are signed and are not those of a tree are rejected: in another
// order, twice, left out, with other counts, or with entries behind them.
func TestPartsForged(t *testing.T) {
	l := newFixture(t)
	l.fill(12)
	snap, err := l.store.Find(l.take().ID())
	must(t, err)
	good := snap.parts
	key, err := hostKey()
	must(t, err)
	wrong := func(i int, change func(*part)) []part {
		all := slices.Clone(good)
		change(&all[i])
		return all
	}
	for name, c := range map[string]struct {
		version int
		parts   []part
		ok      bool
	}{
		"good":        {version, good, true},
		"order":       {version, append([]part{good[1], good[0]}, good[2:]...), false},
		"twice":       {version, append([]part{good[0]}, good...), false},
		"left out":    {version, good[1:], false},
		"fewer names": {version, wrong(0, func(p *part) { p.names-- }), false},
		"more names":  {version, wrong(0, func(p *part) { p.names++ }), false},
		"size":        {version, wrong(0, func(p *part) { p.size++ }), false},
		"content":     {version, wrong(0, func(p *part) { p.digest = snap.entries[1].Digest; p.size = snap.entries[1].Size }), false},
		"version 2":   {2, good, false},
	} {
		h := snap.header
		h.Sequence, h.Previous, h.Version = 2, snap.ID(), c.version
		entries := snap.entries
		if n := len(c.parts) - len(good); n != 0 { // the count is that of the parts
			names := 1
			for _, p := range c.parts {
				names += p.names
			}
			entries = make([]Entry, names)
			copy(entries, snap.entries)
		}
		path := l.forge(&h, entries, c.parts, key)
		found, err := l.store.Find(h.ID)
		if c.ok != (err == nil) || c.ok != (found != nil) {
			t.Errorf("%s: %v", name, err)
		}
		must(t, os.Remove(path))
	}
}

// forge puts a manifest into the store.
func (l *fixture) forge(h *Header, entries []Entry, parts []part, key bundle.Key) string {
	l.t.Helper()
	temp := filepath.Join(l.dir, "forged")
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_RDWR, objectPerm)
	must(l.t, err)
	must(l.t, writeManifest(l.store.sysHook, f, h, entries, parts, key))
	must(l.t, f.Close())
	path := l.storePath(rootsName, keyOf(h.Root), h.fileName())
	must(l.t, os.Rename(temp, path))
	return path
}

// TestPruneParts: the parts that no manifest has go with the contents, those that one still has
// stay, and both are counted.
func TestPruneParts(t *testing.T) {
	ctx := context.Background()
	l := newFixture(t)
	l.fill(12)
	first := l.take()
	writeFile(t, l.path("f0003"), "another")
	second := l.take()
	own, kept := l.partObjects(first, second), l.partObjects(second)
	if len(own) == 0 || len(own) >= len(kept) {
		t.Fatalf("%d parts of its own, %d of the other", len(own), len(kept))
	}
	size := int64(len("content 3"))
	for _, path := range own {
		st, err := os.Stat(path)
		must(t, err)
		size += st.Size()
	}
	done, err := l.store.Prune(ctx, Policy{KeepLast: 1}, nil)
	must(t, err)
	if done.Objects != 1 || done.Bytes != size {
		t.Errorf("%d contents and %d bytes went, want 1 and %d", done.Objects, done.Bytes, size)
	}
	for _, path := range own {
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if len(l.sound()) != 1 {
		t.Error("the other is gone too")
	}
}

// TestVersion2: a manifest of version 2, which has all entries in itself, is read, and what it has
// seen is not read again.
func TestVersion2(t *testing.T) {
	l := newFixture(t)
	l.store.sysHook.everywhere = true
	l.fill(12)
	age()
	snap := l.take()
	key, err := hostKey()
	must(t, err)
	h := snap.Header()
	must(t, os.Remove(l.manifest()))
	h.Version = 2
	l.forge(&h, snap.entries, nil, key)
	old, err := l.store.Find(h.ID)
	must(t, err)
	if diff := cmp.Diff(h, old.Header()); diff != "" {
		t.Error(diff)
	}
	same(t, look(t, l.root), look(t, l.write(old, "")))
	var read []string
	l.store.sysHook.Call = func(op, path string, f func() error) error {
		if name := filepath.Base(path); op == "open" && len(name) == len("f0000") && name[0] == 'f' { // no object, whose name is longer
			read = append(read, path)
		}
		return f()
	}
	l.take()
	l.store.sysHook.Call = nil
	if len(read) > 0 {
		t.Errorf("read again: %q", read)
	}
	if len(l.sound()) != 2 {
		t.Error("not both are sound")
	}
}

// TestKnownManifests: the stores in testdata, of version 2 and 3, are read for ever, and what was
// read is printed as the same bytes.
func TestKnownManifests(t *testing.T) {
	for _, v := range []int{2, 3} {
		l := newFixture(t)
		from := filepath.Join("testdata", fmt.Sprint("version", v))
		must(t, os.CopyFS(l.storePath(), os.DirFS(from)))
		objects, err := filepath.Glob(l.storePath(objectsName, "*", "*"))
		must(t, err)
		for _, path := range objects {
			must(t, os.Chmod(path, objectPerm))
		}
		all := l.sound()
		if len(all) != 1 || all[0].header.Version != v || len(all[0].entries) != 7 || (len(all[0].parts) > 0) != (v == 3) {
			t.Fatalf("version %d: %+v", v, all)
		}
		if e, err := all[0].At(parse(t, "dir/notes.txt")); err != nil || fmt.Sprintf("%x", e.Digest) != "b640e840b19d378660b32fb51ae18d67dccb4a8596a29e7bd72c1b2ae5928f41" {
			t.Errorf("version %d: %+v, %v", v, e, err)
		}
		data, err := os.ReadFile(l.manifest())
		must(t, err)
		chunks := make(chan []byte, 1)
		printManifest(&all[0].header, all[0].entries, all[0].parts, chunks, nil)
		if again := <-chunks; !bytes.Equal(again, data[:len(data)-int(signedSize)]) {
			t.Errorf("version %d: %q prints as %q", v, data, again)
		}
		must(t, all[0].partsAs(l.store))
	}
}

// partsAs requires that the entries make the parts that the manifest has.
func (s *Snapshot) partsAs(in *Store) error {
	if len(s.parts) == 0 {
		return nil
	}
	parts, err := in.eachPart(context.Background(), s.entries[1:], func() *reader { return nil }, func(*reader, part, []byte) error { return nil })
	if err == nil && !slices.Equal(parts, s.parts) {
		err = fmt.Errorf("parts %v, want %v", parts, s.parts)
	}
	return err
}

// TestRoomForParts: what is kept already needs no room, parts included.
func TestRoomForParts(t *testing.T) {
	l := newFixture(t)
	l.fill(400)
	at, err := machine.RoomOf(l.store.base.H)
	must(t, err)
	adds := func() uint64 {
		seen, err := l.store.Look(context.Background(), l.request())
		must(t, err)
		need, err := l.store.Adds(at, false, seen)
		must(t, err)
		return need.Bytes + need.Inodes
	}
	before := adds()
	l.take()
	after := adds()
	if l.store.division = (division{inline: 1 << 20}); after >= before || after >= adds() {
		t.Errorf("%d bytes and inodes before the first one, %d after it, %d without parts", before, after, adds())
	}
}

// FuzzParts: a part that is read prints as the same bytes, and so does its line in a manifest.
func FuzzParts(f *testing.F) {
	var lines object
	for _, e := range []Entry{{Path: "a", Type: Absent}, {Path: "b", Type: Dir}, {Path: "b/c", Type: File, Size: 1}} {
		lines.entry(&e)
	}
	var line object
	line.part(part{Digest{1}, 3, int64(len(lines.b))})
	f.Add(string(lines.b), string(line.b))
	f.Fuzz(func(t *testing.T, lines, line string) {
		p, err := parsePart(line)
		if err != nil && p != (part{}) {
			t.Fatal("content beside an error")
		}
		if err == nil {
			var again object
			if again.part(p); string(again.b) != line {
				t.Fatalf("%q prints as %q", line, again.b)
			}
		}
		entries, err := new(partReader).parse(part{names: strings.Count(lines, "\n")}, lines)
		if err != nil {
			if entries != nil {
				t.Fatal("content beside an error")
			}
			return
		}
		var again object
		for i := range entries {
			again.entry(&entries[i])
		}
		if string(again.b) != lines {
			t.Fatalf("%q prints as %q", lines, again.b)
		}
	})
}
