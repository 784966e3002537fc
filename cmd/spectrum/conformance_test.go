package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConformanceNamesExist holds docs/conformance.md to the tree: every file
// and every test that it names is there, and no cell is empty.
func TestConformanceNamesExist(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	named := regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Za-z0-9_]*)`").FindAllStringSubmatch(string(raw), -1)
	if len(named) < 50 || len(tests) < 100 {
		t.Fatalf("found %d names in the page and %d tests: this test no longer finds them", len(named), len(tests))
	}
	for _, name := range named {
		if !tests[name[1]] {
			t.Errorf("there is no test %s", name[1])
		}
	}
	for _, name := range regexp.MustCompile("`([a-z0-9_/]+\\.(?:go|txtar))`").FindAllStringSubmatch(string(raw), -1) {
		if _, err := os.Stat(filepath.Join(repository, name[1])); err != nil {
			t.Errorf("there is no file %s", name[1])
		}
	}
	for i, line := range strings.Split(string(raw), "\n") {
		if strings.HasPrefix(line, "|") && regexp.MustCompile(`\|\s*\|`).MatchString(line) {
			t.Errorf("line %d has an empty cell", i+1)
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
