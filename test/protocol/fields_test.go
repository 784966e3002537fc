package protocol

import (
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// fieldChecks are the fields of section 8.1: what the full candidate says of
// itself, and what is said of one that says nothing.
func fieldChecks() map[string]check {
	all := map[string]check{}
	for _, f := range []struct{ name, full, bare string }{
		{"Save Point Title", told["title"], "unknown"},
		{"Save Point ID", "", ""}, // the bundle root
		{"Parent Save Point ID", told["parent_savepoint_id"], "unknown"},
		{"Created By Agent", told["agent_id"], "unknown"},
		{"Intended Receiving Agent", told["receiving_agent_id"], "unknown"},
		{"Project / Module", told["project"], "unknown"},
		{"Save Point Version", told["version"], "unknown"},
		{"Protocol Version", "restore-v01", "restore-v01"},
		{"Date", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"},
		{"Artifact Status", told["artifact_status"], "unknown"},
		{"Transfer Mode", told["transfer_mode"], "unknown"},
		{"Identity Bearing", "yes", "unknown"},
		{"Privacy Level", told["privacy_level"], "unknown"},
	} {
		all["8.1 field "+f.name] = func(t *testing.T, s *stage) {
			bare := newFixture(t).forge(t, "run-1", forgery{files: harness.Files{"a.txt": "a\n"}}).show(t)
			field(t, s.plain, f.name, f.full)
			field(t, bare, f.name, f.bare)
		}
	}
	return all
}

// field requires a field of section 8.1 to have this value; "": the id.
func field(t *testing.T, s shown, name, want string) {
	t.Helper()
	if want == "" {
		want = s.Source
	}
	_, rows := readReport(s.report).table("## 1. Source Reviewed")
	for _, row := range rows {
		if row[0] == name {
			if row[1] != want {
				t.Errorf("%s is %q, want %q", name, row[1], want)
			}
			return
		}
	}
	t.Errorf("no field %q in %q", name, rows)
}
