package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tableFaults lists what is wrong with the table of a document: each mutant needs one row,
// in the order of the patches, with the words of its patch and with what noticed it.
func tableFaults(document string, mutants []*mutant) (faults []string) {
	rows, names := map[string]string{}, []string{}
	for line := range strings.Lines(document) {
		cells := strings.SplitN(strings.TrimSuffix(line, "\n"), " | ", 2)
		name, isRow := strings.CutPrefix(cells[0], "| ")
		if !isRow || name == "mutant" {
			continue
		}
		rows[name] = strings.TrimSuffix(line, "\n")
		names = append(names, name)
	}
	var wanted []string
	for _, m := range mutants {
		wanted = append(wanted, m.name)
		head, tail, _ := strings.Cut(m.row("\x00"), "\x00")
		row, ok := rows[m.name]
		noticed, isOurs := strings.CutPrefix(row, head)
		switch noticed = strings.TrimSuffix(noticed, tail); {
		case !ok:
			faults = append(faults, m.name+" has no row")
		case !isOurs:
			faults = append(faults, fmt.Sprintf("the row of %s does not begin with %q", m.name, head))
		case noticed == "not tried":
			faults = append(faults, m.name+" was not tried")
		case !strings.HasPrefix(noticed, "`"):
			faults = append(faults, fmt.Sprintf("%s: noticed by %q", m.name, noticed))
		}
	}
	if len(faults) == 0 && !slices.Equal(names, wanted) {
		faults = append(faults, fmt.Sprintf("the rows are of %q, want %q", names, wanted))
	}
	return faults
}

// The committed table is of a whole run over the patches as they are. "make test-long" makes
// it.
func TestCommittedTable(t *testing.T) {
	r := &runner{}
	must(t, r.load(".", ""))
	document, err := os.ReadFile("../../docs/mutants.md")
	must(t, err)
	for _, fault := range tableFaults(string(document), r.mutants) {
		t.Errorf("docs/mutants.md: %s", fault)
	}
}

func TestTableFaults(t *testing.T) {
	var mutants []*mutant
	for _, name := range []string{"01-a", "02-b"} {
		mutants = append(mutants, &mutant{name: name, what: "A half.", test: "TestHalf", pkg: "./staging"})
	}
	var printed strings.Builder
	r := &runner{out: &printed, mutants: mutants}
	rows := []string{mutants[0].row("`staging` 1, `verify` 20"), mutants[1].row("`staging` 3")}
	must(t, (&table{scope: regexp.MustCompile("")}).print(r, rows))
	good := printed.String()
	if faults := tableFaults(good, mutants); len(faults) > 0 {
		t.Fatal(faults)
	}
	for name, c := range map[string]struct{ old, now, want string }{
		"not tried":      {"`staging` 3", "not tried", "02-b was not tried"},
		"none":           {"`staging` 3", "none", `02-b: noticed by "none"`},
		"no row":         {rows[1], "", "02-b has no row"},
		"another test":   {"`TestHalf` of `staging` | `staging` 3", "`TestX` of `staging` | `staging` 3", "the row of 02-b"},
		"a row too many": {rows[1], rows[1] + "\n" + strings.Replace(rows[1], "02-b", "03-c", 1), "the rows are of"},
		"a row twice":    {rows[1], rows[1] + "\n" + rows[1], "the rows are of"},
		"another order":  {rows[0] + "\n" + rows[1], rows[1] + "\n" + rows[0], "the rows are of"},
	} {
		bad := strings.Replace(good, c.old, c.now, 1)
		if faults := strings.Join(tableFaults(bad, mutants), "; "); bad == good || !strings.Contains(faults, c.want) {
			t.Errorf("%s: %q, want %q", name, faults, c.want)
		}
	}
}
