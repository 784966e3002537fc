package store

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/farstore"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// damage changes a byte of each pack of a bucket.
func damage(bucket *farstore.Bucket) {
	for _, key := range bucket.Keys() {
		if content := bucket.Content(key); strings.Contains(key, "/packs/") {
			content[len(content)/2] ^= 1
			bucket.Set(key, content)
		}
	}
}

// check is what "store check --read-data" does with a run: its error is that of the outputs.
func check(t *testing.T, s *Store, root string, records *pathsafe.Dir) error {
	t.Helper()
	run, err := s.Open(t.Context(), root, state(t))
	if err != nil {
		t.Fatal(err)
	}
	found := run.Check(t.Context(), Watch{}, nil)
	record, err := OpenRecord(records, s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer record.Close()
	if err := run.Distrust(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestMendedByPush: a pack that a check found damaged is sent again by the next push of the user who
// checked, although the record had it.
func TestMendedByPush(t *testing.T) {
	s, _, bucket := far(t)
	outputs := sampleOutputs()
	project := bundletest.New(t)
	first := project.Run("run-1", outputs)
	records := state(t)
	a, other := verified(t, first), verified(t, project.Run("run-2", map[string]string{"alone": random(77, 5000)}))
	mustPush(t, s, a, records)
	damage(bucket)
	mustPush(t, s, other, records)
	if err := check(t, s, a.Root(), records); !isWrong(err) {
		t.Errorf("%v", err)
	}
	if err := check(t, s, other.Root(), records); err != nil {
		t.Error(err)
	}
	if done := mustPush(t, s, a, records); done.Existed || done.Packs == 0 {
		t.Errorf("%+v", done)
	}
	if err := check(t, s, a.Root(), records); err != nil {
		t.Error(err)
	}
	pulled, err := pull(t, s, a.Root())
	if err != nil {
		t.Fatal(err)
	}
	same(t, first, pulled, outputs)
	for _, b := range []string{a.Root(), other.Root()} { // what is right is still trusted
		if err := check(t, s, b, records); err != nil {
			t.Error(err)
		}
	}
	if done := mustPush(t, s, other, records); !done.Existed || done.Sent != 0 {
		t.Errorf("%+v", done)
	}
	if done := mustPush(t, s, a, records); !done.Existed || done.Sent != 0 {
		t.Errorf("%+v", done)
	}
}

// TestGoodRunIsKept: a push whose record names damaged packs does not put them in the place of those that
// another user's push repaired the run with, so that a collection would remove the only good ones.
func TestGoodRunIsKept(t *testing.T) {
	s, _, bucket := far(t)
	outputs := sampleOutputs()
	run := bundletest.New(t).Run("run-1", outputs)
	b := verified(t, run)
	mine, another := state(t), state(t)
	mustPush(t, s, b, mine)
	damage(bucket)
	mustPush(t, s, b, another)
	if err := check(t, s, b.Root(), another); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		mustPush(t, s, b, mine)
		if err := check(t, s, b.Root(), mine); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		bucket.Pass(2 * grace)
		collect(t, s)
	}
	pulled, err := pull(t, s, b.Root())
	if err != nil {
		t.Fatal(err)
	}
	same(t, run, pulled, outputs)
}

// TestForget: a record forgets packs and what is in them, whichever of its files has them, and keeps the
// rest, in this process and the next.
func TestForget(t *testing.T) {
	records := state(t)
	open := func() *Record {
		r, err := OpenRecord(records, "file:///x")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for n := range byte(3) {
		r := open()
		for _, p := range []pack{{id{n}, 10}, {id{n, 1}, 10}} {
			if err := r.pushedPack(p); err != nil {
				t.Fatal(err)
			}
		}
		at := uint32(r.known[id{n}])
		for content, extents := range map[id][]extent{{100, n}: {{at, 0, 5}}, {101, n}: {{at, 5, 5}, {at + 1, 0, 5}}} {
			if err := r.pushedContent(content, extents); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	r := open()
	if err := r.pushedPack(pack{id{9}, 10}); err != nil {
		t.Fatal(err)
	}
	if err := r.forget([]id{{1}, {2, 1}, {7}}); err != nil {
		t.Fatal(err)
	}
	if err := r.pushedPack(pack{id{8}, 10}); err != nil {
		t.Fatal(err)
	}
	if err := r.pushedContent(id{102}, []extent{{uint32(r.known[id{8}]), 1, 2}}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for content, want := range map[id]string{{100, 0}: "0/0", {101, 0}: "0/0 0/1", {100, 1}: "", {101, 1}: "", {100, 2}: "2/0", {101, 2}: "", {102}: "8/0"} {
			var parts []string
			for _, e := range r.find(content) {
				of := r.packs[e.pack].id
				parts = append(parts, string([]byte{'0' + of[0], '/', '0' + of[1]}))
			}
			if got := strings.Join(parts, " "); got != want {
				t.Errorf("%v: %q, want %q", content[:2], got, want)
			}
		}
		if _, ok := r.known[id{1}]; ok || len(r.packs) != 6 {
			t.Errorf("%d packs", len(r.packs))
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		r = open()
	}
	_ = r.Close()
}

// TestUnusableMetadata: a run whose block table or change set cannot be used is not pushed, by the name of
// the file, and does not take the place of the good one in the store.
func TestUnusableMetadata(t *testing.T) {
	s, proxy, bucket := far(t)
	outputs := map[string]string{"a": "alpha", "b": random(1, 5000)}
	project := bundletest.New(t)
	run := project.Run("run-1", outputs)
	run.SetChanges(`{"base":{"a":null,"b":null},"executable":[],"form":1,"removes":[]}`)
	run.SetBlocks(project.Blocks(64<<10, outputs, nil), 64<<10)
	good := verified(t, run)
	records := state(t)
	mustPush(t, s, good, records)
	stored := bucket.Content("team/runs/" + good.Root())
	for _, name := range []string{bundle.BlocksFile, bundle.ChangesFile} {
		kept := run.Read(name)
		for what, change := range map[string]func(){
			"missing": func() { run.Remove(name) },
			"foreign": func() { run.WriteRaw(name, append(bytes.Clone(kept), ' ')) },
			"empty":   func() { run.WriteRaw(name, nil) },
			"huge": func() {
				if err := os.Truncate(run.Path(name), 1<<40); err != nil {
					t.Fatal(err)
				}
			},
			"a directory": func() {
				run.Remove(name)
				if err := os.Mkdir(run.Path(name), 0o755); err != nil {
					t.Fatal(err)
				}
			},
		} {
			change()
			proxy.Seen()
			_, err := tryPush(t, s, verified(t, run), records)
			if unfit, is := errors.AsType[*UnfitError](err); !is || unfit.File != name || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			if requests := proxy.Seen(); len(requests) > 0 {
				t.Errorf("%s, %s: %q", name, what, requests)
			}
			run.Remove(name)
			run.WriteRaw(name, kept)
		}
	}
	if !bytes.Equal(bucket.Content("team/runs/"+good.Root()), stored) {
		t.Error("the run was replaced")
	}
	// A table that changes after it was verified is pushed as it was.
	run.WriteRaw(bundle.BlocksFile, []byte("x"))
	if done := mustPush(t, s, good, records); !done.Existed {
		t.Errorf("%+v", done)
	}

	plain := project.Run("run-2", outputs)
	plain.WriteRaw(bundle.BlocksFile, []byte("what no claim names"))
	if _, err := tryPush(t, s, verified(t, plain), records); err == nil {
		t.Error("a file that nothing names is pushed")
	}
}
