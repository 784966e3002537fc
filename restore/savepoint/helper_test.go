package savepoint_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// testStore is a store in a directory of the test's own, and a key.
type testStore struct {
	testing.TB
	*savepoint.Store
	path string
	key  bundle.Key
}

func newTestStore(t testing.TB) *testStore {
	t.Helper()
	key, err := bundle.GenerateKey()
	must(t, err)
	path, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	s, err := savepoint.Open(path)
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return &testStore{t, s, path, key}
}

func newAttempt() string { return uuid.NewString() }

// known are files that say their own names.
func known(t testing.TB, paths ...string) []bundle.Known {
	t.Helper()
	var all []bundle.Known
	for _, path := range paths {
		p, err := pathsafe.Parse(path)
		must(t, err)
		all = append(all, bundle.Known{Path: p, Bytes: int64(len(path)), Digest: sha256.Sum256([]byte(path))})
	}
	return all
}

// write makes files of known below a root.
func write(t testing.TB, root string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		name := filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, []byte(path), 0o644))
	}
}

// draft is one that differs from attempt to attempt.
func draft(t testing.TB, attempt string, paths ...string) savepoint.Draft {
	t.Helper()
	if len(paths) == 0 {
		paths = []string{"a", "dir/b"}
	}
	return savepoint.Draft{
		Outputs: known(t, paths...),
		Said:    map[string]any{"preview_id": attempt},
		Report:  savepoint.Report{Markdown: []byte("# Restore Commit Report of " + attempt + "\n"), JSON: fmt.Appendf(nil, "{\"attempt\":%q}", attempt)},
	}
}

func (s *testStore) prepare(root, attempt string, paths ...string) string {
	s.Helper()
	id, err := s.Prepare(s.Context(), root, attempt, draft(s, attempt, paths...), s.key, "git:abc1234")
	must(s, err)
	return id
}

// add makes a savepoint and returns its id.
func (s *testStore) add(root string, paths ...string) string {
	s.Helper()
	attempt := newAttempt()
	want := s.prepare(root, attempt, paths...)
	id, err := s.Publish(root, attempt)
	must(s, err)
	if id != want || id == "" {
		s.Fatalf("published as %q, prepared as %q", id, want)
	}
	return id
}

func (s *testStore) list(root string) []savepoint.Savepoint {
	s.Helper()
	all, err := s.List(root)
	must(s, err)
	return all
}

func idsOf(all []savepoint.Savepoint) []string {
	ids := []string{}
	for _, sp := range all {
		ids = append(ids, sp.ID())
	}
	return ids
}

// wantChain compares a root's savepoints with their ids, in every way to ask.
func (s *testStore) wantChain(root string, ids ...string) {
	s.Helper()
	if got := idsOf(s.list(root)); !slices.Equal(got, ids) {
		s.Fatalf("savepoints %v, want %v", got, ids)
	}
	must(s, s.VerifyChain(root, s.key.ValidatorID()))
	tip, ok, err := s.Tip(root)
	must(s, err)
	if ok != (len(ids) > 0) || ok && tip.ID() != ids[len(ids)-1] {
		s.Fatalf("tip %q, %v; want of %v", tip.ID(), ok, ids)
	}
}

func (s *testStore) wantPending(root string, attempts ...string) {
	s.Helper()
	got, err := s.Pending(root)
	must(s, err)
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(attempts))) {
		s.Fatalf("pending %v, want %v", got, attempts)
	}
}

// inTime fails the test when f does not come back.
func inTime(t testing.TB, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Minute):
		t.Fatal("it hangs")
	}
}
