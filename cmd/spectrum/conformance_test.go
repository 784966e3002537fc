package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestConformanceNamesExist holds the pages that name code and tests to the
// tree: every file and every test that they name is there, and no cell of their
// tables is empty.
func TestConformanceNamesExist(t *testing.T) {
	tests := testNames(t)
	for page, least := range map[string]int{"conformance.md": 50, "security.md": 70} {
		raw, err := os.ReadFile(filepath.Join(repository, "docs", page))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`").FindAllStringSubmatch(string(raw), -1)
		if len(named) < least || len(tests) < 100 {
			t.Fatalf("found %d names in %s and %d tests: this test no longer finds them", len(named), page, len(tests))
		}
		for _, name := range named {
			if !tests[name[1]] {
				t.Errorf("%s: there is no test %s", page, name[1])
			}
		}
		checkPage(t, page, string(raw))
	}
}

func checkPage(t *testing.T, page, text string) {
	t.Helper()
	for _, name := range regexp.MustCompile("`([a-z0-9_/]+\\.(?:go|txtar))`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(repository, name[1])); err != nil {
			t.Errorf("%s: there is no file %s", page, name[1])
		}
	}
	columns := 0 // of the table that the line is in
	for i, line := range strings.Split(text, "\n") {
		if !strings.Contains(line, "|") {
			columns = 0
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		if columns == 0 {
			columns = len(cells)
		}
		empty := slices.ContainsFunc(cells, func(cell string) bool { return strings.TrimSpace(cell) == "" })
		if len(cells) != columns || empty {
			t.Errorf("%s: line %d has an empty cell, or another number of cells than the table", page, i+1)
		}
	}
}

// testNames are all test functions of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	err := filepath.WalkDir(repository, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, m := range function.FindAllStringSubmatch(string(raw), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
