package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const committed = "../../docs/demo.svg"

// TestPicture: the picture that is shown is the one that the program makes now, and
// it is well formed and small.
func TestPicture(t *testing.T) {
	got, err := picture(t.Context(), program(t))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("docs/demo.svg is another one than is made now: run make picture\n--- made now ---\n%s", got)
	}
	if len(want) > 40_000 {
		t.Errorf("it has %d bytes", len(want))
	}
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, said := range []string{"HASH_MISMATCH", "restored 3 files", "what was seen is what was written", "undone: commit"} {
		if !strings.Contains(got, said) {
			t.Errorf("it does not show %q", said)
		}
	}
}

// program is the one of SPECTRUM_BIN, or is built.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SPECTRUM_BIN"); path != "" {
		return path
	}
	path := filepath.Join(t.TempDir(), "spectrum")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/spectrum")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestNoProgram: a picture of nothing is not made.
func TestNoProgram(t *testing.T) {
	if svg, err := picture(t.Context(), filepath.Join(t.TempDir(), "none")); err == nil || svg != "" {
		t.Errorf("%q, %v", svg, err)
	}
}

func TestNames(t *testing.T) {
	const one, two = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "34185c34-8ce3-48c7-aa6f-1354bfb99c3f"
	n := newNames("/x")
	a, b := n.of("OK "+one), n.of("undoes "+two+" in /x/demo/restore")
	if a == "OK "+one || len(a) != 67 || n.of("OK "+one) != a {
		t.Errorf("%q", a)
	}
	if strings.Contains(b, two) || len(b) != len("undoes "+two+" in /tmp/demo/restore") || !strings.HasSuffix(b, " in /tmp/demo/restore") {
		t.Errorf("%q", b)
	}
	if again := newNames("/y"); again.of("OK "+two[:8]+one[8:]) != a {
		t.Error("the first id is not always the same")
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct{ keep, want []string }{
		{nil, []string{"a1", "b", "c", "a2", "d"}},
		{[]string{"a"}, []string{"a1", "…", "a2", "…"}},
		{[]string{"c"}, []string{"…", "c", "…"}},
	} {
		if got := cut([]string{"a1", "b", "c", "a2", "d"}, c.keep); !slices.Equal(got, c.want) {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
