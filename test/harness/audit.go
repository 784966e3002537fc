package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// logEntry is what the judge reads of a line of the audit log.
type logEntry struct {
	Action string            `json:"action"`
	Kind   string            `json:"kind"`
	Root   string            `json:"root"`
	Open   map[string]string `json:"open"`
}

// auditLog reads the audit log of the project; nil where nothing was logged.
func (p *Project) auditLog() ([]logEntry, error) {
	raw, err := os.ReadFile(filepath.Join(p.State, "audit.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var entries []logEntry
	for line := range bytes.Lines(raw) {
		var e logEntry
		if json.Unmarshal(line, &e) == nil { // a torn line is the program's to judge
			entries = append(entries, e)
		}
	}
	return entries, err
}

// Ended reports whether everything that began in the root has ended (O5).
func (s *Site) Ended() error {
	entries, err := s.Project.auditLog()
	if err != nil || len(entries) == 0 {
		return err
	}
	for id, root := range entries[len(entries)-1].Open {
		if root == s.Root {
			return fmt.Errorf("by the audit log attempt %s in %q has no end", id, root)
		}
	}
	return nil
}

// CheckAudit checks the audit log of the project: it verifies, no attempt begins
// twice, and none has the same end twice in a row (O5). It may have another one
// behind it: to guess an end is allowed, and to know better afterwards.
func (p *Project) CheckAudit(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(p.State); err != nil {
		return // the test has taken it away
	}
	if r := p.Run(t, nil, "audit", "verify", "--json"); r.Status != 0 {
		t.Errorf("O5: %v", r)
	}
	entries, err := p.auditLog()
	if err != nil {
		t.Errorf("O5: %v", err)
	}
	last := map[string]string{} // beginning or end of each attempt
	for i, e := range entries {
		if e.Kind == "halt" {
			continue
		}
		if before, known := last[e.Action]; before == e.Kind || known && e.Kind == "commit_begin" {
			t.Errorf("O5: entry %d is a %s of attempt %s, after a %s", i+1, e.Kind, e.Action, before)
		}
		last[e.Action] = e.Kind
	}
}
