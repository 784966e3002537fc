package savepoint_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/savepoint"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// TestFirst: all that a savepoint says.
func TestFirst(t *testing.T) {
	s := newTestStore(t)
	attempt := newAttempt()
	before := time.Now().Add(-time.Second)
	id := s.prepare("/srv//data/", attempt)
	s.wantChain("/srv/data")
	s.wantPending("/srv/data", attempt)
	if got, err := s.Publish("/srv/data", attempt); got != id || err != nil {
		t.Fatalf("published %q, %v", got, err)
	}
	s.wantPending("/srv/data")
	s.wantChain("/srv/./data", id)
	sp, err := s.Find(id)
	must(t, err)
	if sp.ID() != id || sp.Parent() != "" || sp.Root() != "/srv/data" || sp.Sequence() != 1 || sp.Attempt() != attempt || sp.ValidatorID() != s.key.ValidatorID() {
		t.Errorf("%+v", sp)
	}
	if sp.Created().Before(before) || sp.Created().After(time.Now().Add(time.Second)) || !filepath.IsAbs(sp.RunDir()) {
		t.Errorf("created %v in %q", sp.Created(), sp.RunDir())
	}
	if filepath.Base(sp.RunDir()) != "000001-"+attempt || sp.Listing().RunID() != "000001-"+attempt || sp.Listing().Len() != 2 {
		t.Errorf("in %q: %+v", sp.RunDir(), sp.Listing())
	}
	if spec := string(sp.Listing().TaskSpec().Append(nil)); !strings.Contains(spec, `"preview_id":"`+attempt+`"`) {
		t.Errorf("not said: %s", spec)
	}
	report, err := sp.Report()
	must(t, err)
	if want := draft(t, attempt).Report; !reflect.DeepEqual(report, want) {
		t.Errorf("report %s", report)
	}
}

// TestFifty savepoints in a chain, of two roots in turn; in the sample fewer.
func TestFifty(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	var one, two []string
	for range sample.Of(15, 50, 50) {
		one = append(one, s.add("/one"))
	}
	two = append(two, s.add("/a/two"), s.add("/a/two"))
	s.wantChain("/one", one...)
	s.wantChain("/a/two", two...)
	s.wantChain("/none")
	for i, sp := range s.list("/one") {
		if sp.Sequence() != i+1 || i > 0 && sp.Parent() != one[i-1] {
			t.Errorf("%d: number %d, parent %s", i, sp.Sequence(), sp.Parent())
		}
	}
	if got := idsOf(s.list("")); !slices.Equal(got, append(two, one...)) {
		t.Errorf("all: %v", got)
	}
	entries, err := os.ReadDir(filepath.Dir(s.list("/one")[0].RunDir()))
	must(t, err)
	for i, e := range entries { // the order is plain from the names
		if e.Name() != filepath.Base(s.list("/one")[i].RunDir()) {
			t.Errorf("name %d is %q", i, e.Name())
		}
	}
}

// TestTipReadsNoMore than the tip.
func TestTipReadsNoMore(t *testing.T) {
	s := newTestStore(t)
	s.add("/r")
	last := s.add("/r")
	must(t, os.RemoveAll(s.list("/r")[0].RunDir()+"/"+bundle.Signature))
	if tip, ok, err := s.Tip("/r"); tip.ID() != last || !ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

// TestVerifies as every other run directory does, while nothing has drifted.
func TestVerifies(t *testing.T) {
	s := newTestStore(t)
	root := t.TempDir()
	write(t, root, "a", "dir/b")
	id := s.add(root)
	sp, err := s.Find(id[:8])
	must(t, err)
	project, err := pathsafe.OpenRoot(root)
	must(t, err)
	defer project.Close()
	run, err := verify.OpenRun(project, sp.RunDir())
	must(t, err)
	defer run.Close()
	b, err := verify.Strict(t.Context(), run, verify.Watch{})
	must(t, err)
	if b.Root() != id {
		t.Errorf("root %s, want %s", b.Root(), id)
	}
	must(t, os.WriteFile(filepath.Join(root, "a"), nil, 0o644))
	_, err = verify.Strict(t.Context(), run, verify.Watch{})
	var reject *verify.Reject
	if !errors.As(err, &reject) || reject.Code != verify.HashMismatch {
		t.Errorf("drifted: %v", err)
	}
}

func TestFind(t *testing.T) {
	s := newTestStore(t)
	id := s.add("/r")
	for _, good := range []string{id, id[:4], id[:8], id[:63]} {
		if sp, err := s.Find(good); err != nil || sp.ID() != id {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", id[:3], strings.ToUpper(id), id + "0", "../" + id, strings.Repeat("0", 64), "latest"} {
		if sp, err := s.Find(bad); !errors.Is(err, fs.ErrNotExist) || sp.ID() != "" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestAgain: each step may be repeated, and none takes another's place.
func TestAgain(t *testing.T) {
	s := newTestStore(t)
	first, second := newAttempt(), newAttempt()
	if id, err := s.Publish("/r", first); id != "" || err != nil {
		t.Errorf("nothing was prepared: %q, %v", id, err)
	}
	must(t, s.Drop("/r", first))
	a, b := s.prepare("/r", first), s.prepare("/r", second)
	if _, err := s.Prepare(t.Context(), "/r", first, draft(t, first), s.key, "x"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("prepared again: %v", err)
	}
	for range 3 {
		if id, err := s.Publish("/r", first); id != a || err != nil {
			t.Errorf("published %q, %v", id, err)
		}
	}
	if _, err := s.Prepare(t.Context(), "/r", first, draft(t, first), s.key, "x"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("prepared again: %v", err)
	}
	if id, err := s.Publish("/r", second); !errors.Is(err, savepoint.ErrStale) || id != "" {
		t.Errorf("%s was published behind another parent: %v", b, err)
	}
	s.wantPending("/r", second)
	for range 3 {
		must(t, s.Drop("/r", second))
		must(t, s.Drop("/r", first)) // it stays
	}
	s.wantPending("/r")
	s.wantChain("/r", a)
	last := s.add("/r")
	if id, err := s.Publish("/r", first); id != a || err != nil {
		t.Errorf("published %q, %v", id, err)
	}
	s.wantChain("/r", a, last)
}

func TestPrepareRejects(t *testing.T) {
	good := newAttempt()
	for name, change := range map[string]func(root, attempt *string, d *savepoint.Draft){
		"relative root":   func(root, _ *string, _ *savepoint.Draft) { *root = "r" },
		"empty root":      func(root, _ *string, _ *savepoint.Draft) { *root = "" },
		"no attempt":      func(_, attempt *string, _ *savepoint.Draft) { *attempt = "" },
		"attempt as path": func(_, attempt *string, _ *savepoint.Draft) { *attempt = "../" + good },
		"upper case":      func(_, attempt *string, _ *savepoint.Draft) { *attempt = strings.ToUpper(good) },
		"braces":          func(_, attempt *string, _ *savepoint.Draft) { *attempt = "{" + good + "}" },
		"no output":       func(_, _ *string, d *savepoint.Draft) { d.Outputs = nil },
		"twice":           func(_, _ *string, d *savepoint.Draft) { d.Outputs = append(d.Outputs, d.Outputs...) },
		"taken word":      func(_, _ *string, d *savepoint.Draft) { d.Said = map[string]any{"savepoint": 1} },
		"no report":       func(_, _ *string, d *savepoint.Draft) { d.Report = savepoint.Report{} },
		"no JSON":         func(_, _ *string, d *savepoint.Draft) { d.Report.JSON = []byte("{") },
		"spaced JSON":     func(_, _ *string, d *savepoint.Draft) { d.Report.JSON = []byte("{ }") },
	} {
		t.Run(name, func(t *testing.T) {
			s := newTestStore(t)
			root, attempt, d := "/r", good, draft(t, good)
			change(&root, &attempt, &d)
			if id, err := s.Prepare(t.Context(), root, attempt, d, s.key, "git:x"); err == nil || id != "" {
				t.Errorf("prepared as %q, error %v", id, err)
			}
			s.wantPending("/r")
			s.add("/r")
		})
	}
	s := newTestStore(t)
	if _, err := s.Prepare(t.Context(), "/r", good, draft(t, good), bundle.Key{}, "git:x"); err == nil {
		t.Error("prepared without a key")
	}
}

// TestRootNames: a path need not be UTF-8, and one that looks like a quoted one
// is not taken for it.
func TestRootNames(t *testing.T) {
	s := newTestStore(t)
	for _, root := range []string{"/", "/\xff\n", `/"\xff\n"`, "/\u00fc \u202e", "/a b"} {
		id := s.add(root)
		s.wantChain(root, id)
		if got := s.list(root)[0].Root(); got != root {
			t.Errorf("%q came back as %q", root, got)
		}
	}
	if n := len(s.list("")); n != 5 {
		t.Errorf("%d savepoints", n)
	}
}

func TestOpenRejects(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "file")
	for _, path := range []string{"", ".", "relative", dir + "/none", dir + "/file"} {
		if s, err := savepoint.Open(path); err == nil || s != nil {
			t.Errorf("%q was opened", path)
		}
	}
}

// TestRemains: what a killed process has left of its work is not a savepoint, and the
// next one removes it. Prepare is killed when k files are written, Drop when k
// files are left.
func TestRemains(t *testing.T) {
	for _, prefix := range []string{".sealing-X", ".dropped-000001-" + newAttempt()} {
		for k := range 10 {
			s := newTestStore(t)
			attempt := newAttempt()
			s.prepare("/r", attempt)
			found, err := filepath.Glob(s.path + "/*/prepared/0*")
			must(t, err)
			dir := filepath.Join(filepath.Dir(found[0]), prefix)
			must(t, os.Rename(found[0], dir))
			files, err := os.ReadDir(dir)
			must(t, err)
			if len(files) != 9 {
				t.Fatalf("%d files", len(files))
			}
			for _, f := range files[k:] {
				must(t, os.Remove(filepath.Join(dir, f.Name())))
			}
			s.wantPending("/r")
			s.wantChain("/r")
			if id, err := s.Publish("/r", attempt); id != "" || err != nil {
				t.Errorf("published %q, %v", id, err)
			}
			if k%2 == 0 {
				must(t, s.Drop("/r", attempt))
			} else {
				s.prepare("/r", attempt)
			}
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is still there: %v", err)
			}
		}
	}
}

// TestHalfMade: a process was killed while it made the directories of a root.
func TestHalfMade(t *testing.T) {
	for _, gone := range []string{"", "chain", "prepared"} {
		s := newTestStore(t)
		s.add("/r")
		key, err := filepath.Glob(s.path + "/*")
		must(t, err)
		must(t, os.RemoveAll(filepath.Join(key[0], "chain")))
		must(t, os.RemoveAll(filepath.Join(key[0], gone)))
		s.wantChain("/r")
		s.wantPending("/r")
		s.wantChain("/r", s.add("/r"))
	}
}

// TestNoPrepared: the directory is made before the chain's, so if it is missing, it was removed.
func TestNoPrepared(t *testing.T) {
	s := newTestStore(t)
	s.add("/r")
	found, err := filepath.Glob(s.path + "/*/prepared")
	must(t, err)
	must(t, os.Remove(found[0]))
	_, err = s.List("/r")
	damaged(t, err, filepath.Dir(found[0]))
}

// TestZero: the zero Savepoint is none.
func TestZero(t *testing.T) {
	var sp savepoint.Savepoint
	if sp.ID()+sp.Parent()+sp.Root()+sp.RunDir()+sp.ValidatorID()+sp.Attempt() != "" || sp.Listing() != nil || sp.Sequence() != 0 {
		t.Errorf("%+v", sp)
	}
	if drifts, err := sp.Drift(t.Context(), nil, nil); drifts != nil || err != nil {
		t.Errorf("%v, %v", drifts, err)
	}
	if _, err := sp.Report(); err == nil {
		t.Error("it has a report")
	}
	typ := reflect.TypeFor[savepoint.Savepoint]()
	for i := range typ.NumField() {
		if typ.Field(i).IsExported() {
			t.Errorf("%s can be set from outside", typ.Field(i).Name)
		}
	}
}

// TestPublishMoved: what is prepared is found by its attempt alone, in the chain of
// the path that it was prepared for; once it is there it stays there.
func TestPublishMoved(t *testing.T) {
	s := newTestStore(t)
	attempt, other := newAttempt(), newAttempt()
	if id, err := s.PublishMoved(attempt); id != "" || err != nil {
		t.Errorf("of an empty store: %q, %v", id, err)
	}
	want, err := s.Prepare(t.Context(), "/one", attempt, draft(t, attempt), s.key, "git:x")
	must(t, err)
	sp, err := s.Prepared("/one", attempt)
	if err != nil || sp.ID() != want {
		t.Errorf("prepared %q, %v", sp.ID(), err)
	}
	for root, attempt := range map[string]string{"/two": attempt, "/one": other} {
		if sp, err := s.Prepared(root, attempt); !errors.Is(err, fs.ErrNotExist) || sp.ID() != "" {
			t.Errorf("%s: prepared %q, %v", root, sp.ID(), err)
		}
	}
	if _, err := s.PublishMoved("no attempt"); err == nil {
		t.Error("published for no attempt")
	}
	for range 2 {
		if id, err := s.PublishMoved(attempt); id != want || err != nil {
			t.Errorf("%q, %v; want %q", id, err, want)
		}
	}
	if tip, ok, err := s.Tip("/one"); err != nil || !ok || tip.ID() != want {
		t.Errorf("tip %q, %v, %v", tip.ID(), ok, err)
	}
	if id, err := s.PublishMoved(other); id != "" || err != nil {
		t.Errorf("of none: %q, %v", id, err)
	}
}
