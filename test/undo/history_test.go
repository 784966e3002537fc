package undo

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// lived is a fixture with a history: a commit and its rollback, another commit that stands,
// snapshots of the whole root, and one that was pruned.
func lived() *command {
	return &command{name: "lived", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.take(t)
		w.commitIt(t)
		w.run(t, nil, "rollback", "--json", w.commit)
		w.take(t)
		w.commitIt(t)
		var pruned struct{ Removed []string }
		w.run(t, &pruned, "snapshot", "prune", "--json", "--keep-last", "1", w.site.Root)
		if len(pruned.Removed) == 0 {
			t.Fatal("nothing was pruned, so nothing shows that this is not missed")
		}
		w.take(t)
		w.goOn(t)
	}}
}

// A tampering is a change by an attacker who may write the state directory.
type tampering struct {
	name  string
	do    func(t testing.TB, w *fixture) error
	wants string // in what is reported
	lost  bool   // the snapshots themselves are gone
}

func tamperings() []tampering {
	all := []tampering{
		{"a manifest is forged under its new hash", func(_ testing.TB, w *fixture) error {
			_, err := w.forge(w.manifests()[len(w.manifests())-1])
			return err
		}, "its signature does not fit", false},
		{"the newest manifest is deleted", func(_ testing.TB, w *fixture) error { return os.Remove(w.manifests()[len(w.manifests())-1]) }, "was not pruned, and is gone", false},
		{"the oldest manifest is deleted", func(_ testing.TB, w *fixture) error { return os.Remove(w.manifests()[0]) }, "was not pruned, and is gone", false},
		{"the store is deleted", func(_ testing.TB, w *fixture) error { return os.RemoveAll(filepath.Join(w.state(), "snapshots")) }, "was not pruned, and is gone", true},
		{"a retired savepoint is put back", func(_ testing.TB, w *fixture) error {
			from := w.glob("savepoints/*/retired/*")[0]
			return os.Rename(from, filepath.Join(filepath.Dir(filepath.Dir(from)), "chain", filepath.Base(from)))
		}, "", false},
		{"a retired savepoint is put in the place of the one that stands", func(_ testing.TB, w *fixture) error {
			from := w.glob("savepoints/*/retired/*")[0]
			chain := filepath.Join(filepath.Dir(filepath.Dir(from)), "chain")
			return errors.Join(os.RemoveAll(chain), os.Mkdir(chain, 0o700), w.own(chain), os.Rename(from, filepath.Join(chain, filepath.Base(from))))
		}, "", false},
		{"a retired savepoint is deleted", func(_ testing.TB, w *fixture) error { return os.RemoveAll(w.glob("savepoints/*/retired/*")[0]) }, "the log names it, but it does not exist", false},
		{"a mark is deleted", func(_ testing.TB, w *fixture) error { return os.Remove(w.glob("rolled-back/root-*")[0]) }, "the mark of it is gone", false},
		{"the mark of a bundle is deleted", func(_ testing.TB, w *fixture) error { return os.Remove(w.glob("rolled-back/bundle-*")[0]) }, "the mark of it is gone", false},
		{"a mark is made", func(_ testing.TB, w *fixture) error {
			mark := filepath.Join(w.state(), "rolled-back", "root-"+strings.Repeat("ab", 32))
			return errors.Join(os.WriteFile(mark, nil, 0o600), w.own(mark))
		}, "a mark of a rollback that the audit log does not have", false},
		{"the host's key is another one", func(t testing.TB, w *fixture) error {
			key := w.glob("*.pem")[slices.IndexFunc(w.glob("*.pem"), func(p string) bool { return strings.Contains(p, "host") })]
			other := w.site.Project.Run(t, nil, "keygen", "--out", key+".new")
			if other.Status != 0 {
				return fmt.Errorf("%v", other)
			}
			return os.Rename(key+".new", key)
		}, "are signed by validator", false},
		{"the audit log is deleted", func(_ testing.TB, w *fixture) error { return os.Remove(filepath.Join(w.state(), "audit.log")) }, "", false},
	}
	for n := 1; n <= 5; n++ {
		all = append(all, tampering{fmt.Sprintf("the last %d lines of the log are cut", n), func(_ testing.TB, w *fixture) error {
			path := filepath.Join(w.state(), "audit.log")
			raw, err := os.ReadFile(path)
			lines := bytes.SplitAfter(raw, []byte("\n"))
			return errors.Join(err, os.WriteFile(path, bytes.Join(lines[:len(lines)-1-n], nil), 0o600))
		}, "", false})
	}
	return all
}

func (w *fixture) state() string { return w.site.Project.State }

func (w *fixture) glob(pattern string) []string {
	found, err := filepath.Glob(filepath.Join(w.state(), pattern))
	if err != nil || len(found) == 0 {
		panic(fmt.Sprintf("%q: %v", pattern, err))
	}
	return found
}

func (w *fixture) manifests() []string { return w.glob("snapshots/roots/*/*") }

// own gives what was put into the state directory to its owner, who is an ordinary user on one
// of the grounds.
func (w *fixture) own(path string) error {
	var state unix.Stat_t
	return errors.Join(unix.Stat(w.state(), &state), os.Lchown(path, int(state.Uid), int(state.Gid)))
}

// forge changes the reason in a manifest, and gives it the name that it must have then.
func (w *fixture) forge(path string) (string, error) {
	raw, err := os.ReadFile(path)
	forged := bytes.Replace(raw, []byte(`"reason":"`), []byte(`"reason":"!`), 1)
	sum := sha256.Sum256(forged)
	number, _, _ := strings.Cut(filepath.Base(path), "-")
	to := filepath.Join(filepath.Dir(path), fmt.Sprintf("%s-%x", number, sum))
	return to, errors.Join(err, os.Remove(path), os.WriteFile(to, forged, 0o400), w.own(to))
}

// TestHistory: an entry that is taken from the history, or put into it, is found by audit verify,
// the doctor and recover, each with the next step; and the undo operations that verify work all
// the same. What the program itself has pruned is not missed.
func TestHistory(t *testing.T) {
	w := borrow(t, lived())
	for _, args := range [][]string{{"audit", "verify"}, {"recover", w.site.Root}} {
		w.reset(t)
		if r := w.site.Project.Run(t, nil, args...); r.Status != 0 || strings.Contains(r.Stdout+r.Stderr, "damaged") {
			t.Fatalf("untouched: %v", r)
		}
	}
	for _, c := range sample.Pick(t, 5, tamperings()) {
		t.Run(c.name, func(t *testing.T) {
			w.reset(t)
			harness.Must(t, c.do(t, w))
			for _, args := range [][]string{{"audit", "verify"}, {"doctor", "-q"}} {
				r := w.site.Project.Run(t, nil, args...)
				said := r.Stdout + r.Stderr
				if r.Status != 1 || !strings.Contains(said, "hint: ") || args[0] == "doctor" && !strings.Contains(said, c.wants) {
					t.Errorf("not found: %v, want %q", r, c.wants)
				}
			}
			r := w.site.Project.Run(t, nil, "rollback", "--emergency", "--json", w.site.Root)
			if is := r.Status == 0; is == c.lost {
				t.Errorf("the undo operation: %v", r)
			}
			if left, err := filepath.Glob(w.path(".spectrum06_*")); err != nil || len(left) > 0 {
				t.Errorf("%q is left in the root: %v", left, err)
			}
		})
	}
}

// TestEndCut: the last line of the log is cut, and is the end of a commit or of a rollback that
// were completed. That is found, and recover logs what is true.
func TestEndCut(t *testing.T) {
	w := borrow(t, twice())
	for _, kind := range []string{"commit_end", "rollback"} {
		w.reset(t)
		if kind == "rollback" {
			w.run(t, nil, "rollback", "--with-later", w.commit)
		} else {
			for _, name := range w.site.Project.Targets() {
				harness.Must(t, os.RemoveAll(w.path(name)))
			}
			w.commitIt(t)
		}
		log := filepath.Join(w.state(), "audit.log")
		lines := strings.SplitAfter(strings.TrimSuffix(harness.ReadFile(t, log), "\n"), "\n")
		whole := strings.Join(lines, "") + "\n"
		harness.Must(t, os.WriteFile(log, []byte(strings.Join(lines[:len(lines)-1], "")), 0o600))
		if !strings.Contains(lines[len(lines)-1], `"`+kind+`"`) {
			t.Fatalf("the last line is %s", lines[len(lines)-1])
		}
		for _, args := range [][]string{{"audit", "verify"}, {"doctor", "-q"}} {
			if r := w.site.Project.Run(t, nil, args...); r.Status != 1 {
				t.Errorf("%s: %v", kind, r)
			}
		}
		w.site.Project.Run(t, nil, "recover", w.site.Root)
		fields := regexp.MustCompile(`"(time|previous|hash|prev)":"[^"]*"`)
		if was, is := fields.ReplaceAllString(whole, ""), fields.ReplaceAllString(harness.ReadFile(t, log), ""); was != is {
			t.Errorf("%s: the log was\n%s\nand is\n%s", kind, was, is)
		}
		for _, args := range [][]string{{"audit", "verify"}, {"recover", w.site.Root}} {
			w.run(t, nil, args...)
		}
	}
}
