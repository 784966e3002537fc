package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestAbsoluteRunDir: only a last component that is not a name is resolved; a link
// keeps its own, whatever that ends in.
func TestAbsoluteRunDir(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "real", "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"link..": "real", "into": "real/sub"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for given, want := range map[string]string{
		"real": "real", "real/": "real", "link..": "link..", "link../": "link..",
		"real/.": "real", "into/..": "real", "into/../": "real", "missing": "missing",
	} {
		got, err := absoluteRunDir(dir + "/" + given)
		if err != nil || got != filepath.Join(dir, want) {
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
}
