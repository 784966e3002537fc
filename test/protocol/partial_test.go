package protocol

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
)

// derived are the run directories in the state directory that name what they are
// derived from.
func (w *fixture) derived(t *testing.T) (dirs []string, froms []map[string]any) {
	t.Helper()
	harness.Must(t, filepath.WalkDir(w.State, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != forge.TaskSpec {
			return err
		}
		var spec struct {
			Constraints map[string]any `json:"constraints"`
		}
		raw, err := os.ReadFile(path)
		harness.Must(t, err)
		harness.Must(t, json.Unmarshal(raw, &spec))
		if from, ok := spec.Constraints["derived_from"].(map[string]any); ok {
			dirs, froms = append(dirs, filepath.Dir(path)), append(froms, from)
		}
		return nil
	}))
	return dirs, froms
}

// A rootOf is what verify says of runs.
type rootOf struct {
	Bundle  string   `json:"bundle_root"`
	Bundles []string `json:"bundle_roots"`
	Chain   string   `json:"chain_root"`
}

func (w *fixture) verify(t *testing.T, args ...string) (r rootOf) {
	t.Helper()
	reply := w.Must(t, append([]string{"verify", "--json", "--project-root", w.Dir}, args...)...)
	harness.Must(t, json.Unmarshal([]byte(reply.Stdout), &r))
	return r
}

// reportAt is a result artifact.
func (w *fixture) reportAt(t *testing.T, dir string) (r struct {
	Bundles []string `json:"bundle_roots"`
	Chain   *string  `json:"chain_root"`
	Files   int      `json:"restored_files_count"`
}) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(w.root, dir, "RESTORE_REPORT.json"))
	harness.Must(t, err)
	harness.Must(t, json.Unmarshal(raw, &r))
	return r
}

// manifestAt are the paths of a manifest.
func (w *fixture) manifestAt(t *testing.T, dir string) (paths []string) {
	t.Helper()
	var m struct {
		Entries []struct {
			Path string `json:"relative_path"`
		} `json:"entries"`
	}
	raw, err := os.ReadFile(filepath.Join(w.root, dir, "RESTORE_MANIFEST.json"))
	harness.Must(t, err)
	harness.Must(t, json.Unmarshal(raw, &m))
	for _, e := range m.Entries {
		paths = append(paths, e.Path)
	}
	return paths
}

// TestPartialSingle: of a run, only what was named, by way of a derived bundle.
func TestPartialSingle(t *testing.T) {
	w := newFour(t)
	b := w.preview(t)
	statement := "Approved: restore items " + b.item(t, "a").ID + " and " + b.item(t, "c").ID + " only."
	if r := w.commit(t, b.ID, statement); r.Status != 0 {
		t.Fatal(r)
	}
	want := []string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json", "a", "c"}
	if got := w.files(t).Names(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}
	dirs, froms := w.derived(t)
	if len(dirs) != 1 || filepath.Base(dirs[0]) != "run-1" {
		t.Fatalf("%q", dirs)
	}
	derivedFrom(t, froms[0], b.Source, b.ID, statement)
	root := w.verify(t, dirs[0]).Bundle
	report := w.reportAt(t, ".")
	if len(report.Bundles) != 1 || report.Bundles[0] != root || root == b.Source || report.Files != 2 || report.Chain != nil {
		t.Errorf("%+v, want %s", report, root)
	}
	if got := w.manifestAt(t, "."); fmt.Sprint(got) != "[a c]" {
		t.Errorf("%q", got)
	}
	w.savepointFits(t, b.Source, root, 2)
}

func derivedFrom(t *testing.T, from map[string]any, root, preview, statement string) {
	t.Helper()
	want := map[string]any{"approval": statement, "bundle_root": root, "preview_id": preview}
	if fmt.Sprint(from) != fmt.Sprint(want) {
		t.Errorf("derived from %v, want %v", from, want)
	}
}

// savepointFits: the newest savepoint is over so many files, names both
// candidates, and verifies as any run does.
func (w *fixture) savepointFits(t *testing.T, source, restored string, files int) {
	t.Helper()
	all := w.savepoints(t)
	last := all[len(all)-1]
	w.Must(t, "verify", "--project-root", w.root, last.RunDir)
	w.Must(t, "savepoint", "verify", last.ID)
	o, _ := w.latest(t)
	if o.Source != source || o.Restored != restored || last.Files != files || o.Context.Files != files || o.Root != w.root {
		t.Errorf("%+v, %+v", o, last)
	}
}

// newThree is a chain of three runs with two files each.
func newThree(t *testing.T) *fixture {
	w := newFixture(t).pin(t, 1)
	for n := 1; n <= 3; n++ {
		w.forge(t, fmt.Sprintf("run-%d", n), forgery{
			files:     harness.Files{fmt.Sprintf("out/%d.txt", n): fmt.Sprintf("%d\n", n), fmt.Sprintf("more/%d.txt", n): fmt.Sprintf("more %d\n", n)},
			completed: fmt.Sprintf("2026-01-0%dT00:00:00Z", n),
		})
	}
	return w
}

// TestPartialChain: of a chain, a run of which nothing is approved leaves nothing.
func TestPartialChain(t *testing.T) {
	w := newThree(t)
	b := w.preview(t)
	first, third, whole := b.item(t, "run-1/out/1.txt").ID, b.item(t, "run-3/more/3.txt").ID, b.item(t, "run-3/out/3.txt").ID
	statement := "Approved: restore items " + first + ", " + third + ", and " + whole + " only."
	if r := w.commit(t, b.ID, statement); r.Status != 0 {
		t.Fatal(r)
	}
	if _, err := os.Lstat(w.root + "/run-2"); err == nil {
		t.Error("run-2 has a directory")
	}
	var names []string
	for name := range w.tree(t) {
		names = append(names, name)
	}
	if len(names) != 1+2+3+3+4 { // the root, two runs, their directories, three items, their artifacts
		t.Errorf("%q", names)
	}
	dirs, froms := w.derived(t)
	if len(dirs) != 2 || filepath.Base(dirs[0]) != "run-1" || filepath.Base(dirs[1]) != "run-3" {
		t.Fatalf("%q", dirs)
	}
	parents := w.verify(t, append([]string{"--chain"}, w.runs...)...)
	derivedFrom(t, froms[0], parents.Bundles[0], b.ID, w.canonical(t))
	derivedFrom(t, froms[1], parents.Bundles[2], b.ID, w.canonical(t))
	made := w.verify(t, append([]string{"--chain"}, dirs...)...)
	for n, dir := range []string{"run-1", "run-3"} {
		report := w.reportAt(t, dir)
		if len(report.Bundles) == 0 || report.Chain == nil || *report.Chain != made.Chain {
			t.Fatalf("%s: %+v, want %+v", dir, report, made)
		}
		if fmt.Sprint(report.Bundles) != fmt.Sprint(made.Bundles[n:n+1]) && fmt.Sprint(report.Bundles) != fmt.Sprint(made.Bundles) {
			t.Errorf("%s: %+v, want %+v", dir, report, made)
		}
	}
	if parents.Chain != b.Source {
		t.Errorf("%s, want %s", b.Source, parents.Chain)
	}
	w.savepointFits(t, parents.Chain, made.Chain, 3)
}

// canonical is the statement as the newest savepoint has it.
func (w *fixture) canonical(t *testing.T) string {
	t.Helper()
	o, _ := w.latest(t)
	return o.Statement
}

// TestPartialOneRun: a chain of which one run is approved stays a chain.
func TestPartialOneRun(t *testing.T) {
	w := newThree(t)
	b := w.preview(t)
	if r := w.commit(t, b.ID, "Approved: restore item "+b.item(t, "run-2/out/2.txt").ID+" only."); r.Status != 0 {
		t.Fatal(r)
	}
	files := w.files(t)
	if files["run-2/out/2.txt"] != "2\n" || len(files) != 3 {
		t.Errorf("%q", files)
	}
}

// TestPartialByScope: scopes name what their items are.
func TestPartialByScope(t *testing.T) {
	w := newFull(t)
	b := w.preview(t)
	if r := w.commit(t, b.ID, "Approved: restore decisions and next actions only."); r.Status != 0 {
		t.Fatal(r)
	}
	want := "[RESTORE_MANIFEST.json RESTORE_REPORT.json decided/1.txt next/1.txt]"
	if got := fmt.Sprint(w.files(t).Names()); got != want {
		t.Errorf("%s", got)
	}
	// What is derived is proven by this host's key, and so is what it came from.
	if dirs, _ := w.derived(t); len(dirs) != 1 {
		t.Errorf("%q", dirs)
	}
}
