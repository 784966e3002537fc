package power

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestLockAfterLoss: a power cut may keep or take each name of the lock of a root, whatever it
// does to the journal. The recovery is the same, and no lock is left.
func TestLockAfterLoss(t *testing.T) {
	const early = harness.Lock + "_00000000-1111-4222-8333-444444444444" // not locked when it was made
	for _, c := range []struct {
		name  string
		last  string // what got its name last
		state harness.State
	}{
		{"back", "top0", harness.Before},
		{"forward", committedName, harness.After},
		{"nothing else was kept", harness.Lock, harness.Before},
	} {
		for name, kept := range map[string][]string{
			"gone": {}, "kept": {harness.Lock}, "early": {early}, "both": {harness.Lock, early},
		} {
			t.Run(c.name+", "+name, func(t *testing.T) {
				t.Parallel()
				site := single.project(t).Site(t, filepath.Join(t.TempDir(), "root"))
				if r := site.Commit(t, beforeSync(c.last, sysfault.Plan{Kill: true})); !r.Killed() {
					t.Fatal(r)
				}
				harness.Must(t, os.Remove(filepath.Join(site.Root, harness.Lock)))
				for _, lock := range kept {
					harness.Must(t, os.WriteFile(filepath.Join(site.Root, lock), nil, 0o600))
				}
				state, err := recovered(t, site)
				if err != nil {
					t.Fatal(err)
				}
				if state != c.state {
					t.Errorf("recovered to %v, want %v", state, c.state)
				}
				if left, _ := filepath.Glob(filepath.Join(site.Root, harness.Lock+"*")); left != nil {
					t.Errorf("the recovery left %q", left)
				}
			})
		}
	}
}
