package protocol

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
)

// newBound is a fixture in a directory that may be made again: a candidate with two
// scopes, and a restore root in which something is in the way.
func newBound(t *testing.T, top string, f forgery) *fixture {
	t.Helper()
	harness.Must(t, os.RemoveAll(top))
	harness.Must(t, os.Mkdir(top, 0o755))
	w := fixtureIn(t, top)
	furnish(t, w.root)
	return w.forge(t, "run-1", f).pin(t, 1)
}

func furnish(t *testing.T, root string) {
	t.Helper()
	put(t, root+"/state/taken.txt", "not yours\n")
	put(t, root+"/beside/else.txt", "not yours\n")
}

func bound() forgery {
	return forgery{
		files: harness.Files{"state/a.txt": "alpha\n", "state/taken.txt": "beta\n", "decided/1.txt": "gamma\n"},
		constraints: map[string]any{
			"agent_id": "builder", "restore_scopes": map[string]any{"decided/**": "decisions"},
		},
	}
}

// TestIdentityBinds: whatever differs in what is shown gives another preview_id.
func TestIdentityBinds(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	ids := map[string]string{}
	differs := func(name string, w *fixture, flags ...string) {
		t.Helper()
		id := w.preview(t, flags...).ID
		if other, known := ids[id]; known {
			t.Errorf("%q has the id of %q", name, other)
		}
		ids[id] = name
	}
	differs("as it is", newBound(t, top, bound()))
	for name, change := range map[string]func(f *forgery){
		"one byte": func(f *forgery) { f.files = maps.Clone(f.files); f.files["state/a.txt"] = "alphA\n" },
		"a name": func(f *forgery) {
			f.files = harness.Files{"state/b.txt": "alpha\n", "state/taken.txt": "beta\n", "decided/1.txt": "gamma\n"}
		},
		"one declared scope": func(f *forgery) {
			f.constraints.(map[string]any)["restore_scopes"] = map[string]any{"decided/**": "next_actions"}
		},
		"the candidate agent": func(f *forgery) { f.constraints.(map[string]any)["agent_id"] = "Builder" },
		"when it was made":    func(f *forgery) { f.completed = "2026-01-02T03:04:06Z" },
		"what it is made of":  func(f *forgery) { f.inputs = []string{"state/a.txt"} },
	} {
		f := bound()
		change(&f)
		differs(name, newBound(t, top, f))
	}
	for name, change := range map[string]func(w *fixture){
		"a mode bit of the root":       func(w *fixture) { harness.Must(t, os.Chmod(w.root, 0o754)) },
		"a mode bit of a target":       func(w *fixture) { harness.Must(t, os.Chmod(w.root+"/state/taken.txt", 0o600)) },
		"one more byte in a target":    func(w *fixture) { put(t, w.root+"/state/taken.txt", "not yours\n\n") },
		"a mode bit on the way":        func(w *fixture) { harness.Must(t, os.Chmod(w.root+"/state", 0o700)) },
		"a link in place of a target":  func(w *fixture) { relink(t, w.root+"/state/taken.txt") },
		"one that is trusted, too":     func(w *fixture) { w.pin(t, 2) },
		"one that is revoked":          func(w *fixture) { w.Must(t, "trust", "revoke", "--reason", "a leaked key", validator(2)) },
		"no validator is trusted":      func(w *fixture) { w.Must(t, "trust", "remove", validator(1)) },
		"a name that is restricted":    func(w *fixture) { restrict(t, w, "nothing.here") },
		"a target that is there now":   func(w *fixture) { put(t, w.root+"/state/a.txt", "alpha\n") },
		"a target with the same bytes": func(w *fixture) { put(t, w.root+"/state/taken.txt", "beta\n") },
		"a mode bit of a source":       func(w *fixture) { harness.Must(t, os.Chmod(w.Source("state/a.txt"), 0o600)) },
		"the time of a source":         func(w *fixture) { harness.Must(t, os.Chtimes(w.Source("state/a.txt"), day, day.Add(1))) },
	} {
		w := newBound(t, top, bound())
		change(w)
		differs(name, w)
	}
	w := newBound(t, top, bound())
	for name, flags := range map[string][]string{
		"a scope":                          {"--scope", "project_state"},
		"two scopes":                       {"--scope", "project_state", "--scope", "decisions"},
		"an agent":                         {"--agent", "builder"},
		"another agent":                    {"--agent", "Builder"},
		"a decision":                       {"--decide", "C-001=acknowledged"},
		"another decision":                 {"--decide", "C-001=resolved"},
		"yet another":                      {"--decide", "C-001=rejected"},
		"a chain of one":                   {"--chain"},
		"the default, spelt out otherwise": {"--scope", "project_state,decisions,open_questions,next_actions,assumptions"},
	} {
		differs(name, w, flags...)
	}
}

func relink(t *testing.T, path string) {
	harness.Must(t, os.Remove(path))
	harness.Must(t, os.Symlink("not yours", path))
}

func restrict(t *testing.T, w *fixture, pattern string) {
	harness.Must(t, os.MkdirAll(filepath.Join(w.State, "restricted.d"), 0o700))
	harness.Must(t, os.WriteFile(filepath.Join(w.State, "restricted.d/mine"), []byte(pattern+"\n"), 0o600))
}

// TestIdentityStays: the same inputs on another machine and another day: another copy of the
// project elsewhere, another state directory, the restore root made again. The order of the
// arguments does not matter.
func TestIdentityStays(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	w := newBound(t, top, bound())
	flags := []string{"--scope", "project_state", "--scope", "decisions", "--agent", "builder", "--decide", "C-001=resolved"}
	first := w.preview(t, flags...)
	elsewhere := t.TempDir()
	w.Dir, w.State = filepath.Join(elsewhere, "copy of the project"), filepath.Join(elsewhere, "state")
	harness.Must(t, os.Mkdir(w.State, 0o700))
	harness.CopyAll(t, filepath.Join(top, "project"), w.Dir)
	w.runs = []string{w.runDir("run-1")}
	harness.Must(t, os.RemoveAll(filepath.Join(top, "project")))
	harness.Must(t, os.Rename(w.root, w.root+" of yesterday"))
	harness.Must(t, os.Mkdir(w.root, 0o755))
	put(t, w.root+"/beside/else.txt", "NOT yours\n") // it does not disturb: what is in it is not shown
	put(t, w.root+"/state/taken.txt", "not yours\n")
	later := day.Add(400 * 24 * time.Hour)
	for _, dir := range []string{w.root, w.root + "/state", w.Dir, w.runs[0]} {
		harness.Must(t, os.Chtimes(dir, later, later))
	}
	w.Must(t, "trust", "add", validator(1), "--note", "another note")
	for range 3 {
		again := w.preview(t, "--decide", "C-001=resolved", "--scope", "decisions,project_state", "--agent", "builder")
		if again.ID != first.ID {
			t.Errorf("%+v\nthen\n%+v", first.raw, again.raw)
		}
	}
}
