package statedir_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
)

// TestCandidates: candidates are returned as they were stored, the newest first and each run
// directory once, whatever else is in the file; a line with a changed byte is ignored.
func TestCandidates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, err := statedir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if all, err := d.Candidates(); len(all) != 0 || err != nil {
		t.Fatalf("%v, %v", all, err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	odd := []byte("/p/\xff\n\"")
	for n, dir := range [][]byte{[]byte("/p/a"), odd, []byte("/p/a")} {
		if err := d.KeepCandidate(statedir.SealedCandidate{At: at.Add(time.Duration(-n) * time.Hour), BundleRoot: fmt.Sprint(n), Over: odd, RunDir: dir}); err != nil {
			t.Fatal(err)
		}
	}
	all, err := d.Candidates()
	if err != nil || len(all) != 2 || all[0].BundleRoot != "2" || string(all[0].RunDir) != "/p/a" || !bytes.Equal(all[1].RunDir, odd) || !all[1].At.Equal(at.Add(-time.Hour)) || !bytes.Equal(all[1].Over, odd) {
		t.Fatalf("%+v, %v", all, err)
	}
	log := filepath.Join(path, statedir.CandidatesLog)
	raw, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndex(bytes.TrimSpace(raw), []byte("\n")) + 1
	for n := last; n < len(raw)-1; n++ {
		damaged := bytes.Clone(raw)
		damaged[n] ^= 1
		if err := os.WriteFile(log, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		now, err := d.Candidates()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range now {
			if known := string(c.RunDir) == "/p/a" || bytes.Equal(c.RunDir, odd); !known || !bytes.Equal(c.Over, odd) || len(c.BundleRoot) != 1 || c.BundleRoot > "2" {
				t.Fatalf("byte %d: %+v", n, c)
			}
		}
	}
	if err := os.WriteFile(log, raw[:len(raw)-5], 0o600); err != nil { // a line that was cut off
		t.Fatal(err)
	}
	if err := d.KeepCandidate(statedir.SealedCandidate{At: at, BundleRoot: "3", RunDir: []byte("/p/c")}); err != nil {
		t.Fatal(err)
	}
	if all, err := d.Candidates(); err != nil || len(all) != 3 || all[0].BundleRoot != "3" || all[2].BundleRoot != "0" {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestCandidatesAreMany: of a long file the end is read.
func TestCandidatesAreMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, err := statedir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := os.WriteFile(filepath.Join(path, statedir.CandidatesLog), bytes.Repeat([]byte("x\n"), 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.KeepCandidate(statedir.SealedCandidate{RunDir: []byte("/p/a")}); err != nil {
		t.Fatal(err)
	}
	if all, err := d.Candidates(); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestCandidatesElsewhere: what is not a regular file is neither read nor written.
func TestCandidatesElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, err := statedir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := os.Symlink("elsewhere", filepath.Join(path, statedir.CandidatesLog)); err != nil {
		t.Fatal(err)
	}
	if all, err := d.Candidates(); err == nil {
		t.Errorf("%+v", all)
	}
	if err := d.KeepCandidate(statedir.SealedCandidate{RunDir: []byte("/p/a")}); err == nil {
		t.Error("written through a link")
	}
	if _, err := os.Lstat(filepath.Join(path, "elsewhere")); err == nil {
		t.Error("the link was followed")
	}
}

// TestCandidatesOfNames: what a text names, what is gone, and what no preview shows.
func TestCandidatesOfNames(t *testing.T) {
	base := t.TempDir()
	var all []statedir.SealedCandidate
	for name, over := range map[string]string{"run-1": "/srv/a", "run-2": "/srv/a/sub", "other": "/srv/ab", "none": ""} {
		dir := filepath.Join(base, name)
		must(t, os.Mkdir(dir, 0o755))
		all = append(all, statedir.SealedCandidate{BundleRoot: name, Over: []byte(over), RunDir: []byte(dir)})
	}
	slices.SortFunc(all, func(a, b statedir.SealedCandidate) int { return strings.Compare(b.BundleRoot, a.BundleRoot) })
	all = append(all, statedir.SealedCandidate{BundleRoot: "run-gone", Over: []byte("/srv/a"), RunDir: []byte(filepath.Join(base, "run-gone"))})
	check := func(what string, found []statedir.SealedCandidate, want ...string) {
		t.Helper()
		var names []string
		for _, c := range found {
			names = append(names, c.BundleRoot)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%s: %q, want %q", what, names, want)
		}
	}
	unseen := func(string) bool { return false }
	check("present", statedir.Present(all), "run-2", "run-1", "other", "none")
	check("named", statedir.NamedBy(all, "run-"), "run-2", "run-1", "run-gone")
	check("named by a path", statedir.NamedBy(all, base))
	check("unreviewed", statedir.Unreviewed(all, "", unseen), "run-2", "run-1", "other", "none")
	check("unreviewed of a root", statedir.Unreviewed(all, "/srv/a", unseen), "run-2", "run-1")
	check("shown", statedir.Unreviewed(all, "/srv/a", func(dir string) bool { return filepath.Base(dir) == "run-2" }), "run-1")
}
