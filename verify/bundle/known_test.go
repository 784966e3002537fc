package bundle_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

func known(t testing.TB, path, content string) bundle.Known {
	t.Helper()
	p, err := pathsafe.Parse(path)
	must(t, err)
	return bundle.Known{Path: p, Bytes: int64(len(content)), Digest: sha256.Sum256([]byte(content))}
}

// knownOf are the options that seal the golden files without reading them.
func knownOf(t testing.TB, s *sealing) bundle.KnownOptions {
	return bundle.KnownOptions{
		RunDir: s.opts.RunDir, Key: s.opts.Key, BuildID: s.opts.BuildID, Now: s.opts.Now, Inputs: s.opts.Inputs,
		Outputs: []bundle.Known{known(t, "notes.txt", "n"), known(t, "dist/sub/\u00fc.txt", ""), known(t, "dist/app.bin", "hello\n")},
	}
}

// TestSealKnownIsSeal: over the same files it writes what Seal writes.
func TestSealKnownIsSeal(t *testing.T) {
	s := goldenSealing(t)
	s.opts.Outputs = []string{"dist/app.bin", "dist/sub/\u00fc.txt", "notes.txt"}
	s.opts.Constraints = map[string]any{"b": []int{1}, "a": nil}
	opts := knownOf(t, s)
	opts.Constraints = s.opts.Constraints
	opts.RunDir = s.path("other/run-1")
	want, err := bundle.Seal(t.Context(), s.opts)
	must(t, err)
	got, err := bundle.SealKnown(t.Context(), opts)
	must(t, err)
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	for _, name := range artifacts {
		a, err := os.ReadFile(filepath.Join(s.opts.RunDir, name))
		must(t, err)
		b, err := os.ReadFile(filepath.Join(opts.RunDir, name))
		must(t, err)
		if string(a) != string(b) || name == bundle.TaskSpec && !strings.Contains(string(a), `"constraints":{"a":null,"b":[1]}`) {
			t.Errorf("%s: Seal:\n%s\nSealKnown:\n%s", name, a, b)
		}
	}
	strict(t, s)
}

// TestSealKnownUnread: nothing is looked at.
func TestSealKnownUnread(t *testing.T) {
	s := newSealing(t)
	sealed, err := bundle.SealKnown(t.Context(), knownOf(t, s))
	must(t, err)
	if sealed.Files != 3 || sealed.Bytes != 7 {
		t.Errorf("%+v", sealed)
	}
	s.Write("dist/app.bin", "hello\n")
	s.Write("dist/sub/\u00fc.txt", "")
	s.Write("notes.txt", "n")
	if b := strict(t, s); b.Root() != sealed.BundleRoot {
		t.Errorf("root %s, want %s", b.Root(), sealed.BundleRoot)
	}
}

// TestSealKnownReserved: a file that a restore has put there for itself can be in a
// savepoint.
func TestSealKnownReserved(t *testing.T) {
	opts := knownOf(t, newSealing(t))
	opts.Outputs = append(opts.Outputs, known(t, "RESTORE_REPORT.json/x", ""), known(t, ".spectrum06_x", ""))
	sealed, err := bundle.SealKnown(t.Context(), opts)
	must(t, err)
	if sealed.Files != 5 {
		t.Errorf("%+v", sealed)
	}
}

func TestSealKnownRejects(t *testing.T) {
	for name, change := range map[string]func(*bundle.KnownOptions){
		"no output":     func(o *bundle.KnownOptions) { o.Outputs = nil },
		"twice":         func(o *bundle.KnownOptions) { o.Outputs = append(o.Outputs, o.Outputs[1]) },
		"zero path":     func(o *bundle.KnownOptions) { o.Outputs[0].Path = pathsafe.Path{} },
		"negative size": func(o *bundle.KnownOptions) { o.Outputs[0].Bytes = -1 },
		"not UTF-8":     func(o *bundle.KnownOptions) { o.Outputs[0] = known(t, "\xff", "") },
		"no run dir":    func(o *bundle.KnownOptions) { o.RunDir = "" },
		"no key":        func(o *bundle.KnownOptions) { o.Key = bundle.Key{} },
		"no build id":   func(o *bundle.KnownOptions) { o.BuildID = "" },
		"constraints":   func(o *bundle.KnownOptions) { o.Constraints = map[string]any{"x": func() {}} },
		"taken": func(o *bundle.KnownOptions) {
			must(t, errors.Join(os.MkdirAll(o.RunDir, 0o755), os.WriteFile(o.RunDir+"/x", nil, 0o644)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSealing(t)
			opts := knownOf(t, s)
			change(&opts)
			before := bundletest.Snapshot(t, s.Root)
			sealed, err := bundle.SealKnown(t.Context(), opts)
			if err == nil || sealed != (bundle.Sealed{}) {
				t.Errorf("sealed %+v, error %v", sealed, err)
			}
			if after := bundletest.Snapshot(t, s.Root); after != before {
				t.Errorf("changed:\n%s", bundletest.Changes(before, after))
			}
		})
	}
}

// TestSealKnownExtra: a further file is accepted exactly if verification accepts it, except for
// names of artifacts and names that are not plain.
func TestSealKnownExtra(t *testing.T) {
	taken := map[string]bool{
		"COMMIT_REPORT.md": true, "COMMIT_REPORT.json": true, "VALIDATOR_IDENTITY.txt": true, "signature.json": true, "tmp.txt": true, "log": true,
		"logs": false, "tmp": false, "transcript.json": false, "VALIDATOR_IDENTITY2.json": false, "VALIDATOR_IDENTITY..json": false,
		"SIGNED_PAYLOAD_.json": false, "SIGNATURES.json": false, "SIGNATURE\n.json": false,
	}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		s := goldenSealing(t)
		opts := knownOf(t, s)
		opts.Extra = map[string][]byte{name: []byte("x")}
		_, err := bundle.SealKnown(t.Context(), opts)
		if (err == nil) != taken[name] {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil { // what would verification say of it?
			opts.Extra = nil
			_, err := bundle.SealKnown(t.Context(), opts)
			must(t, err)
			must(t, os.WriteFile(filepath.Join(opts.RunDir, name), []byte("x"), 0o644))
		}
		run, err := verify.OpenRun(s.opts.Project, opts.RunDir)
		must(t, err)
		if _, err := verify.Strict(t.Context(), run, verify.Watch{}); (err == nil) != taken[name] {
			t.Errorf("%q: verified: %v", name, err)
		}
		run.Close()
	}
	for _, name := range append(slices.Clone(artifacts), "", ".", "..", "a/b", "/a", ".hidden", "a\x00", strings.Repeat("n", 256)) {
		s := goldenSealing(t)
		opts := knownOf(t, s)
		opts.Extra = map[string][]byte{name: nil}
		if _, err := bundle.SealKnown(t.Context(), opts); err == nil {
			t.Errorf("%q was taken", name)
		}
		if _, err := os.Lstat(opts.RunDir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: the run directory: %v", name, err)
		}
	}
}

// TestSealKnownMany: more paths than TASK_SPEC.json can hold.
func TestSealKnownMany(t *testing.T) {
	s := newSealing(t)
	opts := knownOf(t, s)
	opts.Outputs = nil
	many, digits := sample.Of(40_000, 200_000, 200_000), sample.Of(240, 60, 60) // more than 8 MiB of paths
	for i := range many {
		opts.Outputs = append(opts.Outputs, known(t, fmt.Sprintf("dir-%d/%0*d", i%3, digits, i), ""))
	}
	sealed, err := bundle.SealKnown(t.Context(), opts)
	must(t, err)
	if sealed.Files != many {
		t.Errorf("%+v", sealed)
	}
	raw, err := os.ReadFile(filepath.Join(opts.RunDir, bundle.TaskSpec))
	must(t, err)
	if !strings.Contains(string(raw), `"expected_outputs":["dir-0","dir-1","dir-2"]`) {
		t.Errorf("%.300s", raw)
	}
}
