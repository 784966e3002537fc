package protocol

import (
	"encoding/json"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// An outcome is the commit report for machines.
type outcome struct {
	Preview   string `json:"preview_id"`
	Source    string `json:"source_savepoint_id"`
	Restored  string `json:"restored_candidate_id"`
	Statement string `json:"approval"`
	Root      string `json:"restore_root"`
	Parent    string `json:"parent_savepoint_id"`
	Scopes    []struct {
		Scope    string `json:"scope"`
		Approved bool   `json:"approved"`
	} `json:"approved_scopes"`
	Items []struct {
		item
		Result string `json:"result"`
	} `json:"items_restored"`
	Left []struct {
		item
		Reason string `json:"reason"`
	} `json:"items_not_restored"`
	Resolved []settled `json:"conflicts_resolved"`
	Open     []settled `json:"conflicts_open"`
	Context  struct {
		Files int   `json:"files"`
		Bytes int64 `json:"bytes"`
	} `json:"updated_working_context"`
}

type settled struct {
	ID         string `json:"conflict_id"`
	Type       string `json:"type"`
	Resolution string `json:"resolution"`
}

// A savepoint is one of the list.
type savepoint struct {
	ID       string  `json:"id"`
	Parent   *string `json:"parent"`
	Sequence int     `json:"sequence"`
	Files    int     `json:"files"`
	Root     string  `json:"restore_root"`
	RunDir   string  `json:"run_dir"`
	Attempt  string  `json:"attempt"`
}

// savepoints lists those of the root.
func (w *fixture) savepoints(t testing.TB) []savepoint {
	t.Helper()
	var answer struct {
		Savepoints []savepoint `json:"savepoints"`
	}
	harness.Must(t, json.Unmarshal([]byte(w.Must(t, "savepoint", "list", "--json", w.root).Stdout), &answer))
	return answer.Savepoints
}

// latest is the report of the newest savepoint, for machines and for people.
func (w *fixture) latest(t testing.TB) (outcome, string) {
	t.Helper()
	all := w.savepoints(t)
	if len(all) == 0 {
		t.Fatal("there is no savepoint")
	}
	id := all[len(all)-1].ID
	var o outcome
	harness.Must(t, json.Unmarshal([]byte(w.Must(t, "savepoint", "show", "--json", id).Stdout), &o))
	return o, w.Must(t, "savepoint", "show", id).Stdout
}

// An event is an entry of the audit log.
type event struct {
	Kind      string `json:"kind"`
	Action    string `json:"action"`
	Root      string `json:"root"`
	Reason    string `json:"reason"`
	Candidate string `json:"candidate"`
}

// events is the audit log.
func (w *fixture) events(t testing.TB) []event {
	t.Helper()
	var answer struct {
		Entries []event `json:"entries"`
	}
	harness.Must(t, json.Unmarshal([]byte(w.Must(t, "audit", "show", "--json").Stdout), &answer))
	return answer.Entries
}
