package audit_test

import (
	"fmt"
	"os"

	"github.com/spectrumfs/spectrum/restore/audit"
)

// A log whose end was cut is good by itself. The savepoint of the commit that it
// no longer knows shows it.
func ExampleLedger() {
	f, err := os.CreateTemp("", "audit-*.log")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.Remove(f.Name()) }()
	log := audit.New(f)
	defer log.Close()

	var ledger audit.Ledger
	if _, err := log.Read(ledger.Add); err != nil {
		fmt.Println(err)
		return
	}
	savepoint := audit.Savepoint{ID: "5a1e", Attempt: "07cd422b-efba-4f80-a17a-345a0aa0897e", Root: "/srv/root"}
	for _, misfit := range ledger.Unlogged([]audit.Savepoint{savepoint}) {
		fmt.Println(misfit.ID, misfit.Fault)
	}
	// Output: 5a1e the log has no entry of its commit
}
