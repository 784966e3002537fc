package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestForgedHaltIsNamed: another user makes in the root what looks like a halt: a staging
// directory, with the mark, with records, or with nothing that is known. Whatever stops for that
// says whose it is.
func TestForgedHaltIsNamed(t *testing.T) {
	needRoot(t)
	for _, kind := range []string{"exchange", "staging"} {
		for _, record := range []string{"halted", "intent", "prepared", "committed", "rolling_back", "other"} {
			l := newLodger(t, 0)
			name := ".spectrum06_" + kind + "_11111111-2222-4333-8444-555555555555"
			dir := filepath.Join(l.root, name)
			harness.Must(t, os.Mkdir(dir, 0o755))
			harness.Must(t, os.WriteFile(filepath.Join(dir, ".spectrum06_"+record), []byte("x\n"), 0o644))
			own(t, alice, dir)
			for _, args := range [][]string{{"snapshot", "restore", l.snapshot}, {"snapshot", "restore", "--dry-run", l.snapshot}, {"recover", l.root}, {"snapshot", "take", l.root}, {"rollback", "--emergency", l.root}} {
				r := l.p.Run(t, nil, args...)
				if r.Status != 0 && !strings.Contains(r.Stderr, fmt.Sprintf("user %d", alice)) {
					t.Errorf("%s, %s: it does not say whose it is: %v", kind, record, r)
				}
				if isEmergency := args[0] == "rollback"; record == "halted" && (r.Status == 0) != isEmergency {
					t.Errorf("%s, %s: %v", kind, record, r)
				}
			}
		}
	}
}
