package protocol

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// A report is a report for people, taken apart.
type report struct {
	headings []string
	sections map[string][]string // the lines under each heading
}

// readReport takes a report apart; what else stands around it is lost, and so are the
// backticks around names and claims.
func readReport(text string) report {
	r := report{sections: map[string][]string{}}
	at := ""
	for line := range strings.Lines(strings.ReplaceAll(text, "`", "")) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "# ") || strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "### ") {
			at = line
			r.headings = append(r.headings, line)
		} else if at != "" {
			r.sections[at] = append(r.sections[at], line)
		}
	}
	return r
}

// table are the rows of the first table of a section, cell by cell, without its
// head and its rule.
func (r report) table(heading string) (head []string, rows [][]string) {
	for _, line := range r.sections[heading] {
		cells, ok := cellsOf(line)
		switch {
		case !ok && head != nil:
			return head, rows
		case !ok, strings.Trim(line, "|-:") == "":
		case head == nil:
			head = cells
		default:
			rows = append(rows, cells)
		}
	}
	return head, rows
}

func cellsOf(line string) ([]string, bool) {
	rest, ok := strings.CutPrefix(line, "|")
	rest, end := strings.CutSuffix(rest, "|")
	if !ok || !end {
		return nil, false
	}
	var cells []string
	for cell := range strings.SplitSeq(rest, "|") {
		cells = append(cells, strings.TrimSpace(cell))
	}
	return cells, true
}

// ofLaw are the lines of the law that a clause holds.
func ofLaw(test string) (lines []string) {
	for _, c := range law {
		if c.test == test {
			lines = append(lines, c.line)
		}
	}
	return lines
}

// headingsOfLaw are those of the report of section 8 or 11, in their order.
func headingsOfLaw(title string) (headings []string) {
	in := false
	for _, c := range law {
		in = in && !strings.HasPrefix(c.line, "## 9. Conflict Handling") && !strings.HasPrefix(c.line, "## 12. ") || c.line == title
		if in && strings.HasPrefix(c.line, "#") {
			headings = append(headings, c.line)
		}
	}
	return headings
}

// laidOut: a section has the columns of the law, in their order; others may
// stand between them.
func laidOut(test, heading string) check {
	return func(t *testing.T, s *stage) {
		columns(t, readReport(s.crowded.report), test, heading)
	}
}

func columns(t *testing.T, r report, test, heading string) (rows [][]string) {
	t.Helper()
	head, rows := r.table(heading)
	rest := head
	for _, line := range ofLaw(test) {
		want, ok := cellsOf(line)
		if !ok || strings.Contains(line, "<") || strings.Contains(line, "R-001") || strings.Contains(line, "C-001") {
			continue
		}
		for _, column := range want {
			at := slices.Index(rest, column)
			if at < 0 {
				t.Errorf("%s has the columns %q, not %q in its place", heading, head, column)
				return rows
			}
			rest = rest[at+1:]
		}
	}
	if len(rows) == 0 {
		t.Errorf("%s has no rows", heading)
	}
	return rows
}

// reportChecks are those of section 8 but 8.1's fields.
func reportChecks() map[string]check {
	all := map[string]check{
		"8 the report is returned":                      reportReturned,
		"8 title":                                       reportTitle,
		"8.1 source reviewed":                           laidOut("8.1 source reviewed", "## 1. Source Reviewed"),
		"8.2 scopes detected":                           laidOut("8.2 scopes detected", "## 2. Restore Scope Detected"),
		"8.3 proposed restorations":                     listsItems("8.3 proposed restorations", "## 3. Proposed Restorations", func(b *block) []item { return b.Proposed }),
		"8.4 reference only":                            listsItems("8.4 reference only", "## 4. Retain as Reference Only", func(b *block) []item { return b.Reference }),
		"8.5 do not restore":                            listsItems("8.5 do not restore", "## 5. Do Not Restore", func(b *block) []item { return b.Unwanted }),
		"8.6 conflict register":                         listsConflicts,
		"8.7 identity review":                           hasHeading("### Identity Review"),
		"8.7 privacy review":                            hasHeading("### Privacy Review"),
		"8.8 protection check":                          laidOut("8.8 protection check", "## 8. Current-State Protection Check"),
		"8.9 approval needed":                           listsApprovals,
		"8.10 commit plan":                              hasPlan,
		"8.10 nothing before approval":                  nothingBefore,
		"8.7 Same-agent restore candidate":              review("Same-agent restore candidate?", "yes", "no", "unknown", "yes"),
		"8.7 Identity-layer items present":              review("Identity-layer items present?", "yes", "yes", "yes", "yes"),
		"8.7 Identity-layer restoration recommended":    review("Identity-layer restoration recommended?", "yes", "no", "no", "yes"),
		"8.7 Cross-agent identity risk":                 review("Cross-agent identity risk?", "no", "yes", "yes", "no"),
		"8.7 Restricted context present":                review("Restricted context present?", "yes", "yes", "yes", "yes"),
		"8.7 Privacy level adequate":                    review("Privacy level adequate?", "no", "no", "no", "no"),
		"8.7 Restricted items proposed for restoration": review("Restricted items proposed for restoration?", "yes", "no", "no", "yes"),
		"8.7 Operator approval required":                review("Operator approval required?", "yes", "no", "no", "yes"),
	}
	for _, s := range scopes {
		all["8.2 scope "+s.name] = func(t *testing.T, st *stage) { scopeRow(t, st, s.name) }
	}
	delete(all, "8.2 scope machine_readable_state") // the protocol's table leaves it out
	for _, c := range confirmed {
		all["8.8 "+c.law] = confirms(c.question)
	}
	return all
}

func reportReturned(t *testing.T, s *stage) {
	for name, text := range map[string]string{"plain": s.plain.report, "wide": s.wide.report, "foreign": s.foreign.report, "crowded": s.crowded.report, "knot": s.knot.report, "old": s.old.report} {
		if got, want := readReport(text).headings, headingsOfLaw("# Restore Preview Report"); !slices.Equal(got, want) || len(want) != 13 {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func reportTitle(t *testing.T, s *stage) {
	if got := readReport(s.plain.report).headings[0]; got != ofLaw("8 title")[0] {
		t.Errorf("%q", got)
	}
}

func hasHeading(heading string) check {
	return func(t *testing.T, s *stage) {
		if len(readReport(s.plain.report).sections[heading]) == 0 {
			t.Errorf("nothing under %q", heading)
		}
	}
}

// actions are what the protocol's table allows for a scope.
func actions(name string) []string {
	cells, _ := cellsOf(ofLaw("8.2 scope " + name)[0])
	var words []string
	for word := range strings.SplitSeq(cells[2], "/") {
		words = append(words, strings.TrimSpace(word))
	}
	return words
}

// scopeRow: the scope is detected where there is something in it. Where all was
// asked for, what is proposed for it is what the protocol allows; else a label
// that takes it off the proposal.
func scopeRow(t *testing.T, s *stage, name string) {
	for _, c := range []struct {
		shown    shown
		detected string
		allowed  []string
	}{
		{s.wide, "yes", actions(name)},
		{s.plain, "yes", append(actions(name), "retain_reference", "identity_layer_nontransferable")},
		{s.knot, "no", []string{"none"}},
	} {
		_, rows := readReport(c.shown.report).table("## 2. Restore Scope Detected")
		at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == name })
		if at < 0 {
			t.Errorf("%q has no row for %s", rows, name)
			continue
		}
		if name == "project_state" && c.detected == "no" {
			continue // it is undeclared
		}
		if row := rows[at]; row[1] != c.detected || !slices.Contains(c.allowed, row[2]) {
			t.Errorf("want %s, and one of %q: %q", c.detected, c.allowed, row)
		}
	}
}

func listsItems(test, heading string, of func(*block) []item) check {
	return func(t *testing.T, s *stage) {
		rows := columns(t, readReport(s.crowded.report), test, heading)
		list := of(&s.crowded.block)
		if len(rows) != len(list) {
			t.Fatalf("%q, want %d rows", rows, len(list))
		}
		for n, i := range list {
			row := strings.Join(rows[n], "|")
			if !strings.Contains(row, i.ID) || !strings.Contains(row, i.Path) || !strings.HasSuffix(row, "|"+i.Label) {
				t.Errorf("%q, want %+v", row, i)
			}
			if slices.Contains(rows[n], "") {
				t.Errorf("an empty cell: %q", row)
			}
		}
	}
}

func listsConflicts(t *testing.T, s *stage) {
	for _, shown := range []shown{s.crowded, s.knot, s.old, s.foreign} {
		rows := columns(t, readReport(shown.report), "8.6 conflict register", "## 6. Conflict Register")
		if len(rows) != len(shown.Conflicts) {
			t.Fatalf("%q, want %d rows", rows, len(shown.Conflicts))
		}
		for n, c := range shown.Conflicts {
			if rows[n][0] != c.ID || rows[n][1] != c.Type || rows[n][len(rows[n])-1] != "pending" || slices.Contains(rows[n], "") {
				t.Errorf("%q, want %+v", rows[n], c)
			}
		}
	}
}

// review is a line of section 8.7, for the same agent, another one, and none, and where the same
// agent asks for it.
func review(line, wide, foreign, plain, alone string) check {
	return func(t *testing.T, s *stage) {
		for name, c := range map[string]struct{ text, want string }{
			"wide": {s.wide.report, wide}, "foreign": {s.foreign.report, foreign}, "plain": {s.plain.report, plain},
		} {
			if !strings.Contains(c.text, "\n- "+line+" "+c.want+"\n") {
				t.Errorf("%s: it does not say %q", name, line+" "+c.want)
			}
		}
		asked := s.full.show(t, "--agent", "builder", "--scope", "same_agent_identity_layer", "--scope", "restricted_context")
		if !strings.Contains(asked.report, "\n- "+line+" "+alone+"\n") {
			t.Errorf("asked for: it does not say %q", line+" "+alone)
		}
	}
}

// confirmed are the lines of section 8.8, and the question that answers each.
var confirmed = []struct{ law, question string }{
	{"Current state was not overwritten", "Was current state left as it is?"},
	{"Current instructions remain higher authority", "Did I preserve current higher-authority instructions?"},
	{"Historical context was not treated as automatically current", "Did I avoid treating historical status as current status?"},
	{"Conflicts were surfaced", "Did I flag all known conflicts?"},
	{"Stale items were labeled", "Were stale items labeled?"},
	{"Restricted context was not imported", "Did I exclude or approve restricted context?"},
	{"Identity-layer restoration was limited to same-agent candidates", "Did I avoid cross-agent identity restoration?"},
}

// confirms: each report answers the question with yes, and says why.
func confirms(question string) check {
	return func(t *testing.T, s *stage) {
		for _, shown := range []shown{s.plain, s.wide, s.foreign, s.crowded, s.knot, s.old} {
			_, rows := readReport(shown.report).table("## 8. Current-State Protection Check")
			at := slices.IndexFunc(rows, func(row []string) bool { return row[0] == question })
			if at < 0 || rows[at][1] != "yes" || rows[at][2] == "" {
				t.Errorf("%q has no yes for %q", rows, question)
			}
		}
	}
}

func listsApprovals(t *testing.T, s *stage) {
	rows := columns(t, readReport(s.crowded.report), "8.9 approval needed", "## 9. Operator Approval Needed")
	text := ""
	asked := map[string]bool{}
	for _, row := range rows {
		text += strings.Join(row, "|") + "\n"
		if !strings.HasPrefix(row[1], "choose resolution") {
			continue
		}
		for _, ids := range strings.Split(strings.NewReplacer(", and ", ", ", " and ", ", ").Replace(row[0]), ", ") {
			var from, to int
			if n, _ := fmt.Sscanf(ids, "C-%d to C-%d", &from, &to); n == 1 {
				to = from
			}
			for n := from; n <= to; n++ {
				asked[fmt.Sprintf("C-%03d", n)] = true
			}
		}
	}
	for _, c := range s.crowded.Conflicts {
		if !asked[c.ID] {
			t.Errorf("%q does not ask about %s", text, c.ID)
		}
	}
	if !strings.Contains(text, "|approve / reject / modify\n") || !strings.Contains(text, s.crowded.Proposed[0].ID) {
		t.Errorf("%q does not ask about the items", text)
	}
}

func hasPlan(t *testing.T, s *stage) {
	for _, shown := range []shown{s.plain, s.crowded} {
		lines := strings.Join(readReport(shown.report).sections["## 10. Recommended Commit Plan"], "\n")
		if !strings.Contains(lines, "Recommended: restore R-") || !strings.Contains(lines, shown.Approval.Statement) || shown.Approval.Statement == "" {
			t.Errorf("%q", lines)
		}
	}
}

func nothingBefore(t *testing.T, s *stage) {
	if !strings.Contains(s.plain.report, ofLaw("8.10 nothing before approval")[0]) {
		t.Errorf("%q", s.plain.report)
	}
}
