package staging

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// neighbours are what another process does at the names of a reset: each makes some words that must be
// somewhere in the end, and tells at which name.
var neighbours = map[string]func(f *resetFixture, word string) (path string){
	"appends":      func(f *resetFixture, word string) string { return f.writes("a/file", os.O_APPEND, word) },
	"rewrites":     func(f *resetFixture, word string) string { return f.renames("a/file", word) },
	"takes a name": func(f *resetFixture, word string) string { return f.renames("b/new", word) },
	"takes a last": func(f *resetFixture, word string) string { return f.renames("b/NEW", word) },
	"takes report": func(f *resetFixture, word string) string { return f.renames("REPORT", word) },
	"makes again":  func(f *resetFixture, word string) string { return f.writes("c/full/f", os.O_CREATE|os.O_APPEND, word) },
	"makes more":   func(f *resetFixture, word string) string { return f.writes("c/full/more", os.O_CREATE, word) },
	"in a new one": func(f *resetFixture, word string) string { return f.writes("a/link/sub/theirs", os.O_CREATE, word) },
	"in the empty": func(f *resetFixture, word string) string { return f.writes("i/theirs", os.O_CREATE, word) },
}

// writes writes to the file at a path, as far as there is one or it is to be made.
func (f *resetFixture) writes(path string, how int, word string) string {
	if how&os.O_CREATE != 0 && !strings.HasPrefix(path, "a/") {
		_ = os.MkdirAll(filepath.Dir(f.at(path)), 0o755)
	}
	file, err := os.OpenFile(f.at(path), os.O_WRONLY|how, 0o644)
	if err != nil {
		return ""
	}
	_, err = file.WriteString(word)
	must(f.t, errors.Join(err, file.Close()))
	return path
}

// renames puts a file over what is at a path.
func (f *resetFixture) renames(path, word string) string {
	temp := filepath.Join(f.above, "temp")
	must(f.t, os.WriteFile(temp, []byte(word), 0o600))
	if err := os.Rename(temp, f.at(path)); err != nil {
		return ""
	}
	return path
}

// has reports whether the words are in a file beneath the root, and where.
func (f *resetFixture) has(word string) (at string) {
	for path, what := range f.see(f.root()) {
		if strings.Contains(what.text, word) {
			at = path
		}
	}
	return at
}

// TestKeep: whatever another process does before any call of a change, or of its undo, the change
// is done or undone, nothing halts the root, and what the other one wrote is in the root.
func TestKeep(t *testing.T) {
	for _, undone := range []bool{false, true} {
		for name, act := range neighbours {
			t.Run(fmt.Sprintf("%s, undone %v", name, undone), func(t *testing.T) {
				g := &resetFixtures{t: t, base: mountTmpfs(t, ""), make: mixedReset}
				arm := func(f *resetFixture) {
					if undone {
						f.unsettled(func() {})
					}
				}
				total := g.calls(func(f *resetFixture, none *injector) {
					arm(f)
					_ = f.run(none.hook)
				})
				acted, kept := 0, 0
				for _, n := range tries(t, 12, total) {
					f := g.fresh()
					arm(f)
					calls, path := 0, ""
					word := fmt.Sprintf("words %d of others", n)
					err := f.run(func(_, _ string, do func() error) error {
						if calls++; calls == n {
							path = act(f, word)
						}
						return do()
					})
					var failed *Error
					if errors.As(err, &failed) && (failed.Rollback != nil || !undone && !failed.IsDisturbance()) || undone != errors.Is(err, errUnsettled) && !failed.IsDisturbance() {
						t.Fatalf("call %d: %v", n, err)
					}
					at := f.has(word)
					if path != "" {
						if acted++; at == "" {
							t.Fatalf("call %d: the words at %q are lost: %v", n, path, err)
						}
					}
					if strings.HasPrefix(at, keptPrefix) {
						kept++
					}
					if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
						t.Fatalf("call %d: %v, %v", n, out, err)
					}
					if left, err := filepath.Glob(f.at(".spectrum06*")); err != nil || len(left) > 0 {
						t.Fatalf("call %d: %q is left", n, left)
					}
					g.done(f)
				}
				t.Logf("%d times, %d kept aside", acted, kept)
				if acted == 0 {
					t.Error("nothing was done")
				}
			})
		}
	}
}

// TestKeepKilled: the same, and then it is killed. What ends it halts nothing either.
func TestKeepKilled(t *testing.T) {
	for name, act := range neighbours {
		t.Run(name, func(t *testing.T) {
			g := &resetFixtures{t: t, base: mountTmpfs(t, ""), make: mixedReset}
			total := g.callsOfRun()
			ends, random := map[Result]int{}, sample.Rand(t)
			for _, n := range tries(t, 12, total) {
				f := g.fresh()
				calls, path, word := 0, "", fmt.Sprintf("words %d of others", n)
				at := 1 + random.IntN(n)
				survived(func() {
					_ = f.run(func(_, _ string, do func() error) error {
						if calls++; calls == at {
							path = act(f, word)
						}
						if calls >= n {
							panic(errKilled)
						}
						return do()
					})
				})
				if path == "" {
					path = act(f, word)
				}
				out, err := f.recover(Automatic, nil)
				if err != nil {
					t.Fatalf("call %d, others at %d: %v", n, at, err)
				}
				for _, o := range out {
					ends[o.Result]++
				}
				if found := f.has(word); path != "" && found == "" {
					t.Fatalf("call %d, others at %d: the words at %q are lost", n, at, path)
				} else if strings.HasPrefix(found, keptPrefix) && len(out) == 1 && !slices.ContainsFunc(out[0].Kept, func(k Kept) bool { return k.At == found || strings.HasPrefix(found, k.At+"/") }) {
					t.Fatalf("call %d, others at %d: %q is not in the list: %v", n, at, found, out)
				} else if strings.HasPrefix(found, keptPrefix) && len(out) > 0 && (len(out) != 1 || out[0].Left == nil || !strings.Contains(out[0].Left.Error(), strings.Split(found, "/")[0])) {
					t.Fatalf("call %d, others at %d: %q is not named: %v", n, at, found, out)
				}
				if out, err := f.recover(Automatic, nil); err != nil || len(out) > 0 {
					t.Fatalf("call %d, others at %d: %v, %v", n, at, out, err)
				}
				g.done(f)
			}
			t.Log(ends)
		})
	}
}

// TestKeepOpen: a file that a process has open to write to is kept when it goes, with what is
// written to it later; one that is open for reading only, or not at all, is not.
func TestKeepOpen(t *testing.T) {
	for how, want := range map[int]bool{os.O_RDONLY: false, os.O_WRONLY: true, os.O_RDWR: true} {
		f := mixedReset(t, filepath.Join(mountTmpfs(t, ""), "x"))
		file, err := os.OpenFile(f.at("a/file"), how, 0)
		must(t, err)
		var kept []Kept
		err = f.session(nil, func(l *session) (err error) {
			tx, err := l.PlanLocked(t.Context(), f.e.change())
			must(t, err)
			defer tx.Abort(&err)
			must(t, errors.Join(tx.Begin(), tx.Stage(t.Context(), f.e.stage), tx.Move(t.Context()), tx.Commit(), tx.Close()))
			kept = tx.Kept()
			return nil
		})
		must(t, err)
		if want {
			_, err = file.WriteAt([]byte("later"), 0)
			must(t, err)
			if len(kept) != 1 || kept[0].Path.String() != "a/file" || !kept[0].Open || f.has("later") != kept[0].At {
				t.Errorf("kept %v, %q", kept, f.has("later"))
			}
		} else if len(kept) > 0 {
			t.Errorf("kept %v", kept)
		}
		must(t, file.Close())
	}
}

// TestKeepUnsure: what the caller was not sure of is kept, and so is what has other metadata.
func TestKeepUnsure(t *testing.T) {
	f := mixedReset(t, filepath.Join(t.TempDir(), "x"))
	i := slices.IndexFunc(f.e.Swaps, func(s Swap) bool { return s.Path.String() == "b/tree/x" })
	f.e.Swaps[i].Unsure = true
	must(t, f.run(before("make directory new", func() { must(t, os.Chmod(f.at("a/file"), 0o640)) })))
	for _, word := range []string{"foreign b/tree/x", "foreign a/file"} {
		if at := f.has(word); !strings.HasPrefix(at, keptPrefix) {
			t.Errorf("%q is at %q", word, at)
		}
	}
}

// TestKeepStays: directories that others use stay, and are named once.
func TestKeepStays(t *testing.T) {
	f := newResetFixture(t, filepath.Join(t.TempDir(), "x"), "a/b/c/f", "d/f")
	f.swap("a/b/c/f", false)
	for _, dir := range []string{"a/b/c", "a/b", "a"} {
		f.swap(dir, false).Empty = true
	}
	f.swap("d/f", false)
	f.swap("d", false).Empty = true
	f.e.stage = nil
	var stayed []Stayed
	must(t, f.session(before("rename f", func() { plant(t, f.root(), "a/b/c/new") }), func(l *session) (err error) {
		tx, err := l.PlanLocked(t.Context(), f.e.change())
		must(t, err)
		defer tx.Abort(&err)
		must(t, errors.Join(tx.Begin(), tx.Stage(t.Context(), nil), tx.Move(t.Context()), tx.Commit(), tx.Close()))
		stayed = tx.Stayed()
		return nil
	}))
	if len(stayed) != 1 || stayed[0].Path.String() != "a/b/c" || !strings.Contains(stayed[0].Why.Error(), `"new"`) || f.has("foreign a/b/c/new") == "" {
		t.Errorf("%v", stayed)
	}
	if _, err := os.Lstat(f.at("d")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestKeepStaysKilled: the same list comes from the recovery of one that was killed.
func TestKeepStaysKilled(t *testing.T) {
	f := newResetFixture(t, filepath.Join(t.TempDir(), "x"), "a/b/c/f", "d/f")
	f.swap("a/b/c/f", false)
	for _, dir := range []string{"a/b/c", "a/b", "a"} {
		f.swap(dir, false).Empty = true
	}
	f.swap("d/f", false)
	f.swap("d", false).Empty = true
	f.e.stage = nil
	committed := false
	survived(func() {
		_ = f.run(func(op, path string, do func() error) error {
			switch {
			case op == "rename" && path == "f":
				plant(t, f.root(), "a/b/c/new")
			case op == "rename" && filepath.Base(path) == committedName+newSuffix:
				committed = true
			case committed && op == "unlink":
				panic(errKilled)
			}
			return do()
		})
	})
	out, err := f.recover(Automatic, nil)
	if must(t, err); len(out) != 1 || out[0].Result != Completed || len(out[0].Stayed) != 1 {
		t.Fatal(out)
	}
	if s := out[0].Stayed[0]; s.Path.String() != "a/b/c" || !strings.Contains(s.Why.Error(), `"new"`) {
		t.Errorf("%v", s)
	}
}

// TestKeepWithoutExchange: where a file system cannot exchange two names, another process that
// makes a file at a name again each time when that is free does not halt the root: what it made is
// kept, and the old entry is back in the end.
func TestKeepWithoutExchange(t *testing.T) {
	f := plainReset(t, filepath.Join(t.TempDir(), "x"))
	undoing, made := false, 0
	f.unsettled(func() {
		undoing = true
		f.rival("a/file")()
	})
	e := failure(t, f.run(func(op, path string, do func() error) error {
		if op == "exchange" {
			return errors.ErrUnsupported
		}
		err := do()
		if undoing && op == "rename" && path == "file" && err == nil && made < 3 {
			made++
			f.rival("a/file")()
		}
		return err
	}))
	if e.Rollback != nil || !errors.Is(e, errUnsettled) || made != 3 || len(e.Kept) != 4 {
		t.Errorf("%v; made again %d times, %d kept", e, made, len(e.Kept))
	}
	if b, err := os.ReadFile(f.at("a/file")); err != nil || string(b) != "foreign a/file" {
		t.Errorf("%q, %v", b, err)
	}
}
