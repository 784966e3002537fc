package bundle_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// TestCheckSealed: a run directory has the bundle root with which it was sealed; otherwise the name
// leads to another run.
func TestCheckSealed(t *testing.T) {
	dir := t.TempDir()
	const root = "sha256:one"
	if err := bundle.CheckSealed(filepath.Join(dir, "none"), root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
	if err := bundle.CheckSealed(dir, root); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no payload: %v", err)
	}
	for text, want := range map[string]bool{
		`{"bundle_root":"sha256:one"}`: true, `{"bundle_root":"sha256:two"}`: false, `{}`: false, `{`: false, ``: false,
		`{"bundle_root":"sha256:one","x":"` + strings.Repeat("x", 1<<16) + `"}`: false,
	} {
		if err := os.WriteFile(filepath.Join(dir, bundle.SignedPayload), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := bundle.CheckSealed(dir, root); (err == nil) != want {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}
