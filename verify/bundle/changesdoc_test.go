package bundle_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// TestDocumentedChanges: the example in docs/formats.md is valid, and the digest in it is correct.
func TestDocumentedChanges(t *testing.T) {
	page, err := os.ReadFile("../../docs/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	var example, claim string
	for line := range strings.Lines(string(page)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, `{"base":`):
			example = line
		case strings.HasPrefix(line, `"changes":`):
			claim = line
		}
	}
	c, err := bundle.ParseChanges([]byte(example), slices.Values([]string{"app.py", "test.py"}))
	if err != nil {
		t.Fatalf("%s: %v", example, err)
	}
	if r := c.Removes(); len(r) != 1 || !c.Executable("app.py") || c.Executable("test.py") {
		t.Errorf("%v", r)
	}
	if want := fmt.Sprintf(`"changes":{"form":1,"sha256":"%x"}`, sha256.Sum256([]byte(example))); claim != want {
		t.Errorf("it has %s, want %s", claim, want)
	}
}
