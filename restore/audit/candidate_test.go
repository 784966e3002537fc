package audit_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/audit"
)

// TestOlderLog: a log from before there were candidates reads, prints again as the
// same bytes, and goes on with events of a candidate.
func TestOlderLog(t *testing.T) {
	old, err := os.ReadFile("testdata/no-candidate.log")
	must(t, err)
	entries, head := read(t, old)
	if len(entries) != 8 || head.Hash != "287bb4152c28a486cb5986c18bb17dc28f24609fbd479e3643a9d37a4b168041" {
		t.Errorf("%d entries, head %s", len(entries), head.Hash)
	}
	for _, e := range entries {
		if _, ok := e.Fields()["candidate"]; ok || e.Candidate != "" {
			t.Errorf("entry %d has the candidate %q", e.Sequence, e.Candidate)
		}
	}
	path := filepath.Join(t.TempDir(), "log")
	must(t, os.WriteFile(path, old, 0o600))
	must(t, open(t, path).Append(audit.Event{Kind: audit.Quarantined, Action: id(9), Root: "/r", Candidate: source}))
	now, err := os.ReadFile(path)
	must(t, err)
	if entries, _ := read(t, now); !bytes.HasPrefix(now, old) || len(entries) != 9 || entries[8].Candidate != source {
		t.Errorf("the log is now %q", now)
	}
}

// TestCandidateForms: an event of a candidate names one, in one form.
func TestCandidateForms(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	must(t, open(t, path).Append(audit.Event{Kind: audit.QuarantineReleased, Action: id(9), Root: "/r", Candidate: source}))
	raw, err := os.ReadFile(path)
	must(t, err)
	read(t, raw)
	member := `"candidate":"` + source + `"`
	for _, to := range []string{
		`"candidate":null`, `"candidate":""`, `"candidate":1`, `"candidate":"` + source[1:] + `"`, `"candidate":"` + strings.ToUpper(source) + `"`,
		member + "," + member, `"candidates":"` + source + `"`, `"candidate":["` + source + `"]`,
	} {
		if !damaged(bytes.Replace(raw, []byte(member), []byte(to), 1)) {
			t.Errorf("%s is taken", to)
		}
	}
	if !damaged(bytes.Replace(raw, []byte(member+","), nil, 1)) {
		t.Error("no candidate is taken")
	}
}

// TestCandidateOpensNothing: what is said of a candidate neither begins nor ends an
// action, whatever id it has.
func TestCandidateOpensNothing(t *testing.T) {
	path, _ := logged(t)
	l := open(t, path)
	for _, kind := range []audit.Kind{audit.Quarantined, audit.QuarantineCleared, audit.QuarantineReleased} {
		for _, action := range []string{id(4), id(9)} {
			must(t, l.Append(audit.Event{Kind: kind, Action: action, Root: "/\xff", Candidate: source}))
			if got, err := l.Open("/\xff"); err != nil || !slices.Equal(got, []string{id(4)}) {
				t.Errorf("%s of %s: open are %q, %v", kind, action, got, err)
			}
		}
	}
}
