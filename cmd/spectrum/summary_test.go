package main

import (
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// TestSummaryBreaksNoName: the terminal does not break the name of a run of which a part could be taken for
// a row, and a command with plain names is there whole.
func TestSummaryBreaksNoName(t *testing.T) {
	const short = "spectrum diff latest"
	for name, want := range map[string]string{
		"run-1": "", "run-" + strings.Repeat("1", 90): "",
		"run" + strings.Repeat(" ", 60) + "  conflicts  none; not in quarantine": short, strings.Repeat("漢", 40): short,
	} {
		o := preview.Origin{ProjectRoot: "/project", RestoreRoot: "/site", RunDirs: []string{"/project/" + name}}
		row := report.Row{Name: "see more", Value: "spectrum diff '/project/" + name + "' /site", Short: short}
		s := report.Screen{Columns: 80}
		if want == "" {
			want = row.Value
		}
		if got := unbroken(row, o, s); got.Value != want {
			t.Errorf("%q", got.Value)
		}
		row.Short = ""
		if got := unbroken(row, o, s); got.Value != row.Value && !s.Fits(got.Value) {
			t.Errorf("%q is broken", got.Value)
		}
	}
}

// TestHeightOfWideText: a text takes as many lines as on a terminal that draws all its characters wide.
func TestHeightOfWideText(t *testing.T) {
	if n := heightOf(strings.Repeat("漢", 41)+"\nplain\n", 80); n != 3 {
		t.Errorf("%d lines", n)
	}
}
