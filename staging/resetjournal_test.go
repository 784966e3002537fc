package staging

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/tree"
	"pgregory.net/rapid"
)

// The calls before which resets are killed here.
const (
	beforeSwaps  = "exchange file"
	amidSwaps    = "rename 4"
	beforeCommit = "create .spectrum06_committed.new"
	afterCommit  = "unlink 0"
)

// killedReset is one whose reset was killed before a call.
func killedReset(t testing.TB, make func(t testing.TB, above string) *resetFixture, call string) *resetFixture {
	t.Helper()
	return killedResetIn(t, t.TempDir(), make, call)
}

func killedResetIn(t testing.TB, dir string, make func(t testing.TB, above string) *resetFixture, call string) *resetFixture {
	t.Helper()
	f := make(t, filepath.Join(dir, "x"))
	committed := false
	if survived(func() {
		_ = f.run(func(op, path string, do func() error) error {
			committed = committed || path == committedName+newSuffix
			if op+" "+path == call && (committed || call != afterCommit) {
				panic(errKilled)
			}
			return do()
		})
	}) {
		t.Fatalf("there is no call %q", call)
	}
	return f
}

func (f *resetFixture) journal() string {
	f.t.Helper()
	for _, in := range []string{f.above, f.root()} {
		if found, err := filepath.Glob(filepath.Join(in, resetPrefix+"*")); err == nil && len(found) == 1 {
			return found[0]
		}
	}
	f.t.Fatal("no journal")
	return ""
}

// halts requires that nothing is touched.
func (f *resetFixture) halts(mode Mode) error {
	f.t.Helper()
	return f.haltsAs(f.see(f.above), mode)
}

// haltsAs is halts where it is known what is there.
func (f *resetFixture) haltsAs(now sight, mode Mode) error {
	f.t.Helper()
	_, err := f.recover(mode, nil)
	var halt *HaltError
	if !errors.As(err, &halt) || halt.Staging != filepath.Base(f.journal()) {
		f.t.Errorf("not halted: %v", err)
	}
	if d := now.diff(f.see(f.above)); d != "" {
		f.t.Errorf("touched by one that is not believed:\n%s", d)
	}
	return err
}

// Every byte of every record changed, and every record cut anywhere: not
// believed, and nothing is touched.
func TestResetJournalIsTorn(t *testing.T) {
	for _, call := range []string{amidSwaps, afterCommit} {
		journal := killedReset(t, mixedReset, call).journal()
		for _, name := range journalNames {
			if _, err := os.Lstat(filepath.Join(journal, name)); errors.Is(err, os.ErrNotExist) {
				continue
			}
			t.Run(call+"/"+name, func(t *testing.T) {
				t.Parallel()
				tearRecord(t, killedResetIn(t, mountTmpfs(t, ""), mixedReset, call), name)
			})
		}
	}
}

func tearRecord(t *testing.T, f *resetFixture, name string) {
	path := filepath.Join(f.journal(), name)
	text, err := os.ReadFile(path)
	must(t, err)
	rel, err := filepath.Rel(f.above, path)
	must(t, err)
	now := f.see(f.above)
	halts := func(text []byte, mode Mode) {
		t.Helper()
		must(t, os.WriteFile(path, text, 0o600))
		record, err := tree.Look(path)
		must(t, err)
		now[rel] = f.seeOne(record, rel)
		_ = f.haltsAs(now, mode)
	}
	for _, n := range tries(t, 10, len(text)-1) {
		changed := slices.Clone(text)
		changed[n-1] ^= 1
		halts(changed, Person)
		halts(text[:n-1], Automatic)
		if t.Failed() {
			t.Fatalf("%s at %d", name, n-1)
		}
	}
	must(t, os.WriteFile(path, text, 0o600))
	f.settle(Automatic)
}

func TestResetJournalOfOthers(t *testing.T) {
	for name, spoil := range map[string]func(f *resetFixture){
		"another key": func(f *resetFixture) {
			for _, name := range []string{intentName, preparedName} {
				path := filepath.Join(f.journal(), name)
				text, err := os.ReadFile(path)
				must(f.t, err)
				record, _, _ := strings.Cut(string(text), "\n")
				code := authenticate([]byte("another key of 16"), name, []byte(record))
				must(f.t, os.WriteFile(path, fmt.Appendf(nil, "%s\n%x\n", record, code), 0o600))
			}
		},
		"open to others": func(f *resetFixture) { must(f.t, os.Chmod(f.journal(), 0o755)) },
		"another user":   func(f *resetFixture) { must(f.t, os.Chown(f.journal(), 12345, -1)) },
		"without INTENT": func(f *resetFixture) { must(f.t, os.Remove(filepath.Join(f.journal(), intentName))) },
		"of a commit": func(f *resetFixture) {
			sealed, err := seal(testKey, intentName, intentRecord{Version: journalVersion, Attempt: strings.TrimPrefix(filepath.Base(f.journal()), resetPrefix), Kind: KindCommit})
			must(f.t, err)
			must(f.t, os.WriteFile(filepath.Join(f.journal(), intentName), sealed, 0o600))
		},
		"of another directory": func(f *resetFixture) {
			moved := f.journal() + ".other"
			must(f.t, os.Rename(f.journal(), moved))
			must(f.t, os.CopyFS(strings.TrimSuffix(moved, ".other"), os.DirFS(moved)))
			must(f.t, os.Chmod(strings.TrimSuffix(moved, ".other"), 0o700))
			must(f.t, os.Rename(moved, filepath.Join(f.t.TempDir(), "moved")))
		},
	} {
		for _, make := range []func(t testing.TB, above string) *resetFixture{rollbackReset, mixedReset} {
			t.Run(name, func(t *testing.T) {
				f := killedReset(t, make, beforeCommit)
				spoil(f)
				_ = f.halts(Automatic)
				_ = f.halts(Person)
				if t.Failed() {
					return
				}
				out, err := f.recover(Acknowledged, nil)
				if err != nil || len(out) != 1 {
					t.Fatal(out, err)
				}
				if name == "another key" {
					if out[0].Result != RolledBack {
						t.Error(out)
					}
					f.is(f.before, "before")
				} else if out[0].Result != Released || out[0].Left == nil {
					t.Error(out)
				}
				if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
					t.Error(out, err)
				}
			})
		}
	}
}

// TestResetReleasedWhole: what was moved away by a journal that cannot be verified any more is
// visible, byte for byte.
func TestResetReleasedWhole(t *testing.T) {
	f := killedReset(t, rollbackReset, beforeCommit)
	must(t, os.Remove(filepath.Join(f.journal(), intentName)))
	out, err := f.recover(Acknowledged, nil)
	if err != nil || len(out) != 1 || out[0].Result != Released {
		t.Fatal(out, err)
	}
	for i, text := range []string{0: "foreign a/b/c/one", 2: "foreign a/b/two", 4: "foreign d/four"} {
		b, err := os.ReadFile(f.at(fmt.Sprintf("%s%s/old/%d", keptPrefix, out[0].Attempt, i)))
		if text != "" && (err != nil || string(b) != text) {
			t.Errorf("%q, %v", b, err)
		}
	}
}

// TestResetAfterAKill: what others did before the recovery. Nothing of theirs
// is lost, and what went comes back where it can.
func TestResetAfterAKill(t *testing.T) {
	for _, call := range []string{beforeSwaps, amidSwaps, beforeCommit} {
		f := killedReset(t, mixedReset, call)
		f.rival("b/theirs")()
		out, err := f.recover(Automatic, nil)
		if err != nil || len(out) != 1 || out[0].Result != RolledBack {
			t.Errorf("%s: %v, %v", call, out, err)
		}
		f.isRival("root/b/theirs")
		f.othersAre(f.before, "root/b/theirs", "root")
	}
}

// othersAre requires all but some paths to be as they were.
func (f *resetFixture) othersAre(want sight, paths ...string) {
	f.t.Helper()
	others := func(s sight) sight {
		rest := maps.Clone(s)
		for _, path := range paths {
			delete(rest, path)
		}
		return rest
	}
	if d := others(want).diff(others(f.see(f.above))); d != "" {
		f.t.Error(d)
	}
}

// TestResetBothNames: a power cut may leave a thing with the name that it had
// and the one that it got.
func TestResetBothNames(t *testing.T) {
	for name, c := range map[string]struct {
		make     func(t testing.TB, above string) *resetFixture
		from, to string // "J/" is the staging directory
	}{
		"old came back":       {rollbackReset, "J/old/4", "d/four"},
		"old is twice aside":  {mixedReset, "J/old/0", "J/new/0"},
		"new did not go":      {mixedReset, "a/new", "J/new/3"},
		"new did not go over": {mixedReset, "a/file", "J/new/0"},
	} {
		f := killedReset(t, c.make, beforeCommit)
		at := func(path string) string {
			if rest, ok := strings.CutPrefix(path, "J/"); ok {
				return filepath.Join(f.journal(), rest)
			}
			return f.at(path)
		}
		must(t, os.Link(at(c.from), at(c.to)))
		out, err := f.recover(Automatic, nil)
		if err != nil || len(out) != 1 || out[0].Result != RolledBack {
			t.Errorf("%s: %v, %v", name, out, err)
		}
		f.is(f.before, "before")
	}
}

// Random trees, random swaps, a kill anywhere, a second one in the recovery: the
// state before or the state after.
func TestResetRandom(t *testing.T) {
	g := &resetFixtures{t: t, base: mountTmpfs(t, "")}
	ends := map[Result]int{}
	if seed := flag.Lookup("rapid.seed").Value; seed.String() == "0" {
		must(t, seed.Set(strconv.FormatUint(1+sample.Rand(t).Uint64N(1<<62), 10)))
	}
	rapid.Check(t, func(r *rapid.T) {
		g.make = func(t testing.TB, above string) *resetFixture { return randomReset(r, t, above) }
		f := g.fresh()
		defer g.done(f)
		f.lazy = true
		n := rapid.IntRange(1, 220).Draw(r, "killed at")
		if survived(func() { must(t, f.run(killer(n))) }) {
			f.is(f.after(), "asked for")
		}
		_ = survived(func() { _, _ = f.recover(Automatic, killer(rapid.IntRange(1, 60).Draw(r, "then at"))) })
		ends[f.settle(Automatic)]++
		if t.Failed() {
			r.Fatal("see above")
		}
	})
	t.Log(ends)
}

func randomReset(r *rapid.T, t testing.TB, above string) *resetFixture {
	var entries []string
	dirs := []string{"", "a/", "b/", "a/b/", "a/b/c/", "d/e/"}
	for _, dir := range dirs {
		entries = append(entries, dir+"keep", dir+"l -> keep")
	}
	f := newResetFixture(t, above, entries...)
	taken := map[string]bool{}
	for range rapid.IntRange(1, 8).Draw(r, "swaps") {
		dir := rapid.SampledFrom(dirs).Draw(r, "in")
		path := dir + rapid.SampledFrom([]string{"keep", "l", "none", "nothing", "."}).Draw(r, "name")
		path = strings.TrimSuffix(path, "/.")
		if path == "." || taken[path] || slices.ContainsFunc(sortedUps(path), func(up string) bool { return taken[up] }) ||
			slices.ContainsFunc(slices.Sorted(maps.Keys(taken)), func(in string) bool { return strings.HasPrefix(in, path+"/") }) {
			continue
		}
		taken[path] = true
		s := f.clear(path, rapid.Bool().Draw(r, "comes"))
		if s.Old == nil {
			s.New = Tree{}
		}
	}
	if len(f.e.Swaps) == 0 {
		f.swap("keep", true)
	}
	return f
}

// sortedUps are the directories on the way to a path.
func sortedUps(path string) (ups []string) {
	for up := filepath.Dir(path); up != "."; up = filepath.Dir(up) {
		ups = append(ups, up)
	}
	return ups
}

// TestResetParentReplaced: nothing comes back into another directory.
func TestResetParentReplaced(t *testing.T) {
	f := mixedReset(t, filepath.Join(t.TempDir(), "x"))
	f.unsettled(func() {
		must(t, os.Rename(f.at("b"), f.at("moved")))
		must(t, os.Mkdir(f.at("b"), 0o755))
	})
	if e := failure(t, f.run(nil)); !errors.Is(e.Rollback, errReplaced) {
		t.Error(e)
	}
	if in, err := os.ReadDir(f.at("b")); err != nil || len(in) > 0 {
		t.Error(in, err)
	}
	must(t, os.Remove(f.at("b")))
	must(t, os.Rename(f.at("moved"), f.at("b")))
	f.settle(Person)
}
