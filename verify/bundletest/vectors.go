package bundletest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// Vectors reads one section of testdata/vectors/known-answers.json into a slice of T. An empty
// section fails the test, because then the vectors were not found.
func Vectors[T any](t testing.TB, section string) []T {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(moduleRoot(t), "testdata", "vectors", "known-answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &sections); err != nil {
		t.Fatal(err)
	}
	var vectors []T
	if err := json.Unmarshal(sections[section], &vectors); err != nil || len(vectors) == 0 {
		t.Fatalf("section %q holds no vector (%v)", section, err)
	}
	return vectors
}

// moduleRoot is the directory of go.mod; a test runs in its package's own.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the working directory")
	return ""
}
