package preview_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview/report"
)

// TestSignedName: a run directory can be renamed, and what is in it still verifies. So
// the signed task_id stands beside the name in the report, on the page and in the block.
func TestSignedName(t *testing.T) {
	s := bareScene(t)
	r := s.Add("nightly_7", map[string]string{"a": "alpha\n"})
	renamed := filepath.Join(filepath.Dir(r.Dir), "production-2026-12")
	must(t, os.Rename(r.Dir, renamed))
	r.Dir = renamed
	p := s.Preview()
	var page bytes.Buffer
	must(t, report.Of(p).WritePage(t.Context(), &page, "", 0))
	for what, shown := range map[string][3]string{
		"report": {reportOf(t, p), "| `\"production-2026-12\"` |", "| `\"nightly_7\"` |"},
		"page":   {page.String(), "<bdi>production-2026-12</bdi>", "<bdi>nightly_7</bdi>"},
		"block":  {string(jsonOf(t, p)), `"run_id":"production-2026-12"`, `"task_id":"nightly_7"`},
	} {
		for _, want := range shown[1:] {
			if !strings.Contains(shown[0], want) {
				t.Errorf("the %s does not have %s", what, want)
			}
		}
	}
}
