package report_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// TestReportGroupsDigits: the full report writes large numbers as the summary does, and the decision
// block does not.
func TestReportGroupsDigits(t *testing.T) {
	s := bareScene(t)
	files := map[string]string{"large": strings.Repeat("x", 12345), "taken": "x"}
	for n := range 1500 {
		files[fmt.Sprintf("d/%04d", n)] = "same content"
	}
	must(t, os.WriteFile(s.At("taken"), []byte("y"), 0o644))
	s.Add("run-1", files)
	p := s.Preview()
	var text strings.Builder
	must(t, report.Of(p).WriteMarkdown(&text))
	for _, want := range []string{
		"| Files | 1,502 of 1,502 proposed |", "| Bytes | 30,346 of 30,346 proposed |", "| 1,502 of 1,502 items proposed; a default scope |",
		"`\"large\"` | 12,345 |",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if t.Failed() {
		t.Log(text.String()[:min(text.Len(), 6000)])
	}
	raw, err := p.JSON()
	must(t, err)
	if grouped := regexp.MustCompile(`":\d+,\d{3}[,}]`).FindString(string(raw)); grouped != "" || !strings.Contains(string(raw), `"proposed_files":1502`) {
		t.Errorf("the decision block has %q", grouped)
	}
}
