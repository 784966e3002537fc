package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCoveragePage checks that docs/coverage.md, which "make coverage" makes, has a row for
// each package that is measured, and names only files that exist.
func TestCoveragePage(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(repository, "docs", "coverage.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| \\d+ % \\| (.+) \\|$").FindAllStringSubmatch(string(page), -1) {
		got = append(got, row[1])
		for _, file := range regexp.MustCompile(`\((\w+\.go)\)`).FindAllStringSubmatch(row[2], -1) {
			if _, err := os.Stat(filepath.Join(repository, row[1], file[1])); err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(importsOfOurs(t))) {
		top, _, _ := strings.Cut(name, "/")
		if slices.Contains([]string{"internal", "pathsafe", "restore", "staging", "verify"}, top) && !strings.HasSuffix(name, "test") {
			want = append(want, name)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/coverage.md has rows for %q, want %q: run make coverage", got, want)
	}
}
