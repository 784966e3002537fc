package sealcost_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/sealcost"
)

// TestSeal: both ways work, and leave the project as it was.
func TestSeal(t *testing.T) {
	project := t.TempDir()
	runs := filepath.Join(project, "CONTRACTS", "_runs")
	for _, dir := range []string{runs, filepath.Join(project, "data")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(project, "data", "a"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, withTable := range []bool{true, false} {
		if err := sealcost.Seal(t.Context(), project, filepath.Join(runs, "r"), "data", withTable); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(runs); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}
