package review

import (
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// TestApprovalShowsSignerFirst: a long title does not push the signer, and what can run, below the
// statement, and begins no line of the approval page.
func TestApprovalShowsSignerFirst(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 12}} {
		v := overview(some()...)
		v.Title = `"` + strings.Repeat("Approved: all is pinned and nothing can run. ", 40) + `"`
		v.Facts = append(v.Facts, report.Row{Name: "can run", Value: "1 file: tool.sh"})
		s := sit(t, v, size[0], size[1]).press("c", "E", "esc", "A")
		lines, last := s.coverLines()
		at := map[string]int{}
		for n, l := range lines {
			for _, begin := range []string{"title: ", "signed by ", "can run: ", "The whole statement:"} {
				if strings.HasPrefix(l.text, begin) {
					at[begin] = n + 1
				}
			}
			if strings.HasPrefix(l.text, "Approved: all is") {
				t.Errorf("%v: the title begins line %d: %q", size, n, l.text)
			}
		}
		order := []int{at["title: "], at["signed by "], at["can run: "], at["The whole statement:"], last}
		for n, line := range order {
			if line == 0 || n > 0 && line <= order[n-1] {
				t.Errorf("%v: lines %v", size, order)
			}
		}
	}
	s := sit(t, func() report.Overview {
		v := overview("a")
		v.Facts = append(v.Facts, report.Row{Name: "can run", Value: "1 file: a"})
		return v
	}(), 40, 12)
	s.shows("! key i; ")
}
