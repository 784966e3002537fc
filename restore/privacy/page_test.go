package privacy

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const page = "../../docs/restricted-names.md"

// rows are the table as the page shows it.
func rows() (lines []string) {
	for kind, k := range kinds {
		for _, n := range k.table {
			var except []string
			for _, e := range n.except {
				except = append(except, "`"+e+"`")
			}
			if Kind(kind) == Secret {
				lines = append(lines, fmt.Sprintf("| `%s` | %s | %s |", n.pattern, strings.Join(except, ", "), n.why))
			} else {
				lines = append(lines, fmt.Sprintf("| `%s` | %s |", n.pattern, n.why))
			}
		}
	}
	return lines
}

// TestPage: the page shows the table, row by row.
func TestPage(t *testing.T) {
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "| `") {
			shown = append(shown, strings.TrimSuffix(line, "\n"))
		}
	}
	if diff := cmp.Diff(rows(), shown); diff != "" {
		t.Errorf("%s is not the table (-table +page):\n%s", page, diff)
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
