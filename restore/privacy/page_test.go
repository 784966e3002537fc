package privacy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../../docs/formats.md"

// rows are the table as the page shows it: a line for each reason, in the order in which the
// reasons first occur, with all patterns that have it.
func rows() (lines []string) {
	for _, k := range kinds {
		var reasons []string
		patterns := map[string][]string{}
		for _, n := range k.table {
			if patterns[n.why] == nil {
				reasons = append(reasons, n.why)
			}
			cell := "`" + n.pattern + "`"
			if n.except != nil {
				cell += " (not `" + strings.Join(n.except, "`, `") + "`)"
			}
			patterns[n.why] = append(patterns[n.why], cell)
		}
		for _, why := range reasons {
			lines = append(lines, fmt.Sprintf("- %s: %s", why, strings.Join(patterns[why], ", ")))
		}
	}
	return lines
}

// restrictedNames is the section of the page on these names, the last one.
func restrictedNames(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(raw), "\n## Restricted names\n")
	if !ok || strings.Contains(section, "\n## ") {
		t.Fatalf("%s does not end with a section on restricted names", page)
	}
	return section
}

// TestPage: the page shows the table, reason by reason.
func TestPage(t *testing.T) {
	var shown []string
	for line := range strings.Lines(restrictedNames(t)) {
		if strings.HasPrefix(line, "- ") {
			shown = append(shown, strings.TrimSuffix(line, "\n"))
		}
	}
	if diff := cmp.Diff(rows(), shown); diff != "" {
		t.Errorf("%s is not the table (-table +page):\n%s", page, diff)
	}
}

// TestPageExample: the example of the page can be loaded, and matches what it describes.
func TestPageExample(t *testing.T) {
	parts := strings.Split(restrictedNames(t), "```\n")
	if len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	place := t.TempDir()
	if err := os.Mkdir(filepath.Join(place, restricted), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(place, restricted, "page"), []byte(parts[1]), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := Load(place)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"a/b.token": true, "deploy/private/x/y": true, "a.pem": false, "a.key": true} {
		if _, ok := r.Match(path); ok != want {
			t.Errorf("%q: %t", path, ok)
		}
	}
}

// TestTable: every row can be had, is written in lower case, has a reason and
// stands once; every exception is one.
func TestTable(t *testing.T) {
	for kind, k := range kinds {
		seen := map[string]bool{}
		for i, n := range k.table {
			pattern := own[kind][i].pattern
			if seen[pattern.String()] || n.why == "" || n.pattern != lower(n.pattern) {
				t.Errorf("row %+v", n)
			}
			seen[pattern.String()] = true
			for j, e := range n.except {
				if !pattern.Match(e) || !own[kind][i].except[j].Match("a/"+e) {
					t.Errorf("%s is no exception of %s", e, n.pattern)
				}
			}
		}
	}
	if len(own[Secret]) < 60 {
		t.Errorf("only %d rows", len(own[Secret]))
	}
}
