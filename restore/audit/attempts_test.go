package audit_test

import (
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/audit"
)

// TestAttempts: a halt that was ended is none.
func TestAttempts(t *testing.T) {
	begin := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	var all audit.Attempts
	for i, e := range []audit.Event{
		{Kind: audit.CommitBegin, Action: "a", Root: "/a"}, {Kind: audit.Halted, Action: "a", Root: "/a"}, {Kind: audit.Halted, Action: "a", Root: "/a"},
		{Kind: audit.Halted, Action: "b", Root: "/b"}, {Kind: audit.Released, Action: "b", Root: "/b"},
		{Kind: audit.Halted, Action: "c", Root: "/c"}, {Kind: audit.RolledBack, Action: "c", Root: "/c"},
		{Kind: audit.CommitBegin, Action: "d", Root: "/d"},
	} {
		all.See(&audit.Entry{Event: e, Sequence: int64(i), Time: begin.Add(time.Duration(i%5) * time.Hour)})
	}
	if len(all.Halted) != 1 || all.Halted[0] != "a" || all.Roots["a"] != "/a" || all.Entry != 4 || !all.Newest.Equal(begin.Add(4*time.Hour)) {
		t.Errorf("%+v", all)
	}
}
