package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDependencyDates: docs/dependencies.md lists each module of go.mod in the version
// that is used, with the date of its release, and go.mod asks for a Go with the fixes
// that the program relies on.
func TestDependencyDates(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(repository, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(repository, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	required := regexp.MustCompile(`(?m)^\t([a-z][\w./-]+) (v\S+)`).FindAllStringSubmatch(string(mod), -1)
	if len(required) < 10 {
		t.Fatalf("%d modules in go.mod", len(required))
	}
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (v\\S+) \\| \\d{4}-\\d{2}-\\d{2} \\|").FindAllStringSubmatch(string(page), -1)
	listed := map[string]string{}
	for _, row := range rows {
		listed[row[1]] = row[2]
	}
	for _, m := range required {
		if listed[m[1]] != m[2] {
			t.Errorf("docs/dependencies.md lists %s %q with a date, go.mod %s", m[1], listed[m[1]], m[2])
		}
		delete(listed, m[1])
	}
	for name := range listed {
		t.Errorf("docs/dependencies.md lists %s, and go.mod does not", name)
	}
	var major, minor, patch int
	_, directive, _ := strings.Cut(string(mod), "\ngo ")
	if _, err := fmt.Sscanf(directive, "%d.%d.%d\n", &major, &minor, &patch); err != nil || major*10_000+minor*100+patch < 12_605 {
		t.Errorf("go.mod asks for Go %.10q (%v), not for 1.26.5 or newer", directive, err)
	}
}
