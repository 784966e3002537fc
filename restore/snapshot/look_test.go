package snapshot

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// grown is a root with a random tree, whose steps the seed decides.
func grown(t *testing.T, l *fixture, steps int) *grower {
	t.Helper()
	needRoot(t)
	g := &grower{t: t, rng: sample.Rand(t), root: l.root}
	for range steps {
		g.step()
	}
	return g
}

// still returns what stands beneath a directory, with the identities and the times of
// change, so that every write shows.
func still(t *testing.T, dir string) (all []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		must(t, err)
		var st unix.Stat_t
		must(t, unix.Lstat(path, &st))
		all = append(all, fmt.Sprint(path, st.Ino, st.Size, st.Mode, st.Mtim, st.Ctim))
		return nil
	}))
	return all
}

// A look sees what a take keeps, and writes nothing anywhere.
func TestLookIsTake(t *testing.T) {
	l := newFixture(t)
	l.store.sysHook.everywhere = true
	g := grown(t, l, 60)
	writeFile(t, l.path("large"), strings.Repeat("x", 3*chunk+1))
	f, err := os.Create(l.path("holes"))
	must(t, err)
	must(t, f.Truncate(2*chunk))
	must(t, f.Close())
	writeFile(t, l.path("scoped"), "one name")
	for round := range 4 {
		for _, scope := range [][]string{nil, {"large", "nothing"}, {"scoped"}} {
			age()
			before := slices.Concat(still(t, l.root), still(t, l.storePath()))
			req := l.request(scope...)
			seen, err := l.store.Look(context.Background(), req)
			must(t, err)
			if diff := cmp.Diff(before, slices.Concat(still(t, l.root), still(t, l.storePath()))); diff != "" {
				t.Fatalf("round %d: a look has written:\n%s", round, diff)
			}
			lacks, err := l.store.Lacks(seen)
			must(t, err)
			taken := l.take(scope...)
			same := cmp.Options{cmp.AllowUnexported(Entry{}), cmpopts.IgnoreFields(Entry{}, "holes")}
			if diff := cmp.Diff(taken.entries, seen.entries, same); diff != "" {
				t.Fatalf("round %d: a look has not seen what is taken (-taken +seen):\n%s", round, diff)
			}
			if seen.ID() != "" || seen.Header().Files != taken.Header().Files || seen.Header().Bytes != taken.Header().Bytes {
				t.Errorf("%+v, want the totals of %+v and no ID", seen.Header(), taken.Header())
			}
			if again, err := l.store.Lacks(seen); err != nil || len(again) > 0 {
				t.Errorf("the store lacks %d of %d contents after the take, %v", len(again), len(lacks), err)
			}
		}
		for range 15 {
			g.step()
		}
		writeFile(t, l.path("scoped"), fmt.Sprint("content ", round))
	}
}

// What the store lacks is each content once, and nothing else.
func TestLacks(t *testing.T) {
	l := newFixture(t)
	writeFile(t, l.path("a"), "known")
	l.take()
	for _, name := range []string{"b", "c"} {
		writeFile(t, l.path(name), "new")
	}
	writeFile(t, l.path("d"), "known")
	seen, err := l.store.Look(context.Background(), l.request())
	must(t, err)
	lacks, err := l.store.Lacks(seen)
	if err != nil || len(lacks) != 1 || lacks[0].Path != "b" {
		t.Errorf("the store lacks %v, %v, want b", lacks, err)
	}
}

// What begins as names of transactions do is named in a snapshot before an action, and not
// looked into; a person may look at a root in which something is unfinished, and does not see it.
func TestLookAtReserved(t *testing.T) {
	l := newFixture(t)
	writeFile(t, l.path("f"), "")
	mkdir(t, l.path(reserved+"staging"))
	writeFile(t, l.path(reserved+"staging/g"), "")
	writeFile(t, l.path(lockName), "")
	writeFile(t, l.path(lockName+"_id"), "")
	writeFile(t, l.path(lockName+"smith"), "")
	for kind, want := range map[Kind]string{Manual: " f", PreAction: " " + lockName + "smith " + reserved + "staging f"} {
		req := l.request()
		req.Kind = kind
		seen, err := l.store.Look(context.Background(), req)
		must(t, err)
		var paths []string
		for e := range seen.Entries() {
			if paths = append(paths, e.Path); strings.HasPrefix(e.Path, reserved) == e.Type.Kept() {
				t.Errorf("%+v", e)
			}
		}
		if got := strings.Join(paths, " "); got != want {
			t.Errorf("%s: %q, want %q", kind, got, want)
		}
	}
}

// What compare returns is what two looks at the trees differ in, of random trees.
func TestCompare(t *testing.T) {
	l := newFixture(t)
	g := grown(t, l, 60)
	for round := range 5 {
		older, was := l.take(), lookAlone(t, l.root)
		if all, apart, err := Compare(older, l.take()); len(all)+len(apart) > 0 || err != nil {
			t.Fatalf("round %d: nothing has changed, and %v differ, %v are not compared, %v", round, all, apart, err)
		}
		for range 10 {
			g.step()
			g.edit()
			g.metadata()
		}
		newer, is := l.take(), lookAlone(t, l.root)
		wantDifferences(t, older, newer, was, is)
		wantDifferences(t, newer, older, is, was)
	}
}

func wantDifferences(t *testing.T, older, newer *Snapshot, was, is map[string]string) {
	t.Helper()
	all, _, err := Compare(older, newer)
	must(t, err)
	want, got := map[string]string{}, map[string]string{}
	for path := range was {
		if was[path] != is[path] {
			want[path] = fmt.Sprint(true, is[path] != "")
		}
	}
	for path := range is {
		if was[path] == "" {
			want[path] = fmt.Sprint(false, true)
		}
	}
	for _, d := range all {
		got[d.Path] = fmt.Sprint(d.Old.Type != Absent, d.New.Type != Absent)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// ofDir is the time of a directory, as look has it.
var ofDir = regexp.MustCompile(`(mode=4\d{4} owner=\d+:\d+) mtime=\S+`)

// lookAlone is look without what it says of the first name of a file, and without the times
// of directories.
func lookAlone(t *testing.T, top string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for path, is := range look(t, top) {
		path = strings.TrimPrefix(filepath.Join("/", path), "/")
		all[path] = ofDir.ReplaceAllString(strings.Replace(is, " is="+path, "", 1), "$1")
	}
	return all
}

// A snapshot of some names is compared as far as the other one has them.
func TestCompareScopes(t *testing.T) {
	l := newFixture(t)
	for _, name := range []string{"a", "b", "c"} {
		writeFile(t, l.path(name), "was")
	}
	whole, ab, bc := l.take(), l.take("a", "b"), l.take("b", "c")
	for _, name := range []string{"a", "b", "c"} {
		writeFile(t, l.path(name), "is other")
	}
	now, nowBC := l.take(), l.take("b", "c")
	for name, c := range map[string]struct {
		older, newer *Snapshot
		want, apart  []string
	}{
		"some, then all":         {ab, now, []string{"a", "b"}, nil},
		"all, then some":         {whole, nowBC, []string{"b", "c"}, nil},
		"some, then some others": {ab, nowBC, []string{"b"}, []string{"a"}},
		"the same":               {bc, nowBC, []string{"b", "c"}, nil},
	} {
		all, apart, err := Compare(c.older, c.newer)
		var got []string
		for _, d := range all {
			got = append(got, d.Path)
			if !slices.Equal(d.What, []string{"content", "time"}) {
				t.Errorf("%s: %q differs in %q", name, d.Path, d.What)
			}
		}
		if err != nil || !slices.Equal(got, c.want) || !slices.Equal(apart, c.apart) {
			t.Errorf("%s: %q differ, %q are not compared, %v", name, got, apart, err)
		}
	}
}
