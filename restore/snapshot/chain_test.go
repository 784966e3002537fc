package snapshot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// renamed gives a manifest another content, and the name that it must have then.
func renamed(t tb, path string, content []byte) {
	t.Helper()
	number, _, _ := strings.Cut(filepath.Base(path), "-")
	must(t, os.Remove(path))
	must(t, os.WriteFile(filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%x", number, sha256.Sum256(content))), content, objectPerm))
}

// TestForged: a manifest that was changed is damaged also under its new hash; one that another
// key has signed can be restored, but one of this host is preferred.
func TestForged(t *testing.T) {
	ctx := context.Background()
	l := newFixture(t)
	writeFile(t, l.path("f"), "first")
	first := l.take()
	host := first.Header().Signer
	second := l.take()
	if is := second.Header(); is.Sequence != 2 || is.Previous != first.ID() || is.Signer != host || host == "" {
		t.Fatalf("%+v after %s", is, first.ID())
	}
	path := l.storePath(rootsName, keyOf(l.root), second.header.fileName())
	good, err := os.ReadFile(path)
	must(t, err)
	renamed(t, path, bytes.Replace(good, []byte("a test"), []byte("A test"), 1))
	_, damaged, err := l.store.Survey(l.root)
	must(t, err)
	if len(damaged) > 0 { // a survey reads headers only
		t.Fatal(damaged)
	}
	in, err := l.store.Inspect(ctx, l.root, Budget{1 << 20, 1 << 20})
	must(t, err)
	if len(in.Found) != 1 || !strings.Contains(in.Found[0].Damage.Error(), "its signature does not fit") || len(in.Signed) != 1 {
		t.Fatalf("%+v", in)
	}
	target := func(host string, want string, passed int) {
		t.Helper()
		to, err := l.store.Target(ctx, l.root, host)
		if err != nil || to.Snapshot == nil || to.Snapshot.ID() != want || len(to.Passed) != passed {
			t.Errorf("%+v, %v, want %s and %d passed over", to, err, want, passed)
		}
	}
	target(host, first.ID(), 1)
	req := l.request()
	req.Key = bundle.GenerateKey
	foreign, err := l.store.Take(ctx, req)
	must(t, err)
	target(host, first.ID(), 2)
	target("", foreign.ID(), 0)
	target(strings.Repeat("ab", 32), foreign.ID(), 2)
}

// TestAnyKey: without the host's key there is no snapshot, but before a rollback.
func TestAnyKey(t *testing.T) {
	l := newFixture(t)
	req := l.request()
	req.Key = func() (bundle.Key, error) { return bundle.Key{}, errFault }
	if _, err := l.store.Take(context.Background(), req); !errors.Is(err, errFault) {
		t.Errorf("%v", err)
	}
	req.AnyKey = true
	snap, err := l.store.Take(context.Background(), req)
	must(t, err)
	key, err := hostKey()
	must(t, err)
	if snap.Header().Signer == key.ValidatorID() {
		t.Error("it is signed by a key that could not be used")
	}
	l.sound()
}

// TestOldVersion: a manifest of version 1 is rejected by the name of what it is.
func TestOldVersion(t *testing.T) {
	l := newFixture(t)
	must(t, os.Mkdir(l.storePath(rootsName, keyOf(l.root)), 0o700))
	name := "20260101T000000.000000000Z-" + strings.Repeat("ab", 32)
	writeFile(t, l.storePath(rootsName, keyOf(l.root), name), `{"action":""}`)
	_, err := l.store.List(l.root)
	if !errors.Is(err, ErrOldVersion) {
		t.Errorf("%v", err)
	}
	l.take()
	if all, damaged, err := l.store.Survey(l.root); len(all) != 1 || len(damaged) != 1 || err != nil {
		t.Errorf("%v, %v, %v", all, damaged, err)
	}
}

// TestSequenceDecides: a clock that goes back makes no newer snapshot an older one.
func TestSequenceDecides(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	all := byTime([]Header{
		{Root: "/a", ID: "a1", Time: at(100)}, {Root: "/a", ID: "a2", Time: at(5)}, {Root: "/a", ID: "a3", Time: at(130)},
		{Root: "/b", ID: "b1", Time: at(90)}, {Root: "/b", ID: "b2", Time: at(110)},
	})
	var order []string
	for _, h := range all {
		order = append(order, h.ID)
	}
	if want := []string{"b1", "a1", "a2", "b2", "a3"}; !slices.Equal(order, want) {
		t.Errorf("%v, want %v", order, want)
	}
}

// TestBreaks: what is missing in a chain, doubled or out of its order is named.
func TestBreaks(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("%064x", n) }
	chain := func(numbers ...int) (all []Header) {
		for _, n := range numbers {
			h := Header{Root: "/r", ID: id(n), Sequence: int64(n)}
			if n > 1 {
				h.Previous = id(n - 1)
			}
			all = append(all, h)
		}
		return all
	}
	doubled := append(chain(1, 2), Header{Root: "/r", ID: id(9), Sequence: 2, Previous: id(1)})
	skipped := chain(1, 2)
	skipped[1].Sequence = 3
	for name, c := range map[string]struct {
		all     []Header
		damaged []*DamageError
		missing string
		breaks  int
	}{
		"whole":   {chain(1, 2, 3), nil, "", 0},
		"gone":    {chain(1, 3), nil, id(2), 1},
		"first":   {chain(2, 3), nil, id(1), 1},
		"damaged": {chain(1, 3), []*DamageError{{Path: "roots/key/" + chain(2)[0].fileName()}}, "", 0},
		"doubled": {doubled, nil, "", 1},
		"skipped": {skipped, nil, "", 1},
	} {
		breaks := Breaks(c.all, c.damaged)
		if len(breaks) != c.breaks || c.breaks > 0 && breaks[0].Missing != c.missing {
			t.Errorf("%s: %+v", name, breaks)
		}
	}
}
