package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

const repository = "../.."

const committed = repository + "/docs/demo.svg"

// TestPicture: the picture that is shown is the one that the program makes now, and
// it is well formed and small.
func TestPicture(t *testing.T) {
	got, err := picture(t.Context(), program(t), repository)
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
	for _, said := range []string{"agent one: ", "+# lines that begin with # are ignored.", "READY: ", "restored 3 files", "diverged   total.sh", "OK "} {
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
	if svg, err := picture(t.Context(), filepath.Join(t.TempDir(), "none"), repository); err == nil || svg != "" {
		t.Errorf("%q, %v", svg, err)
	}
}

func TestNames(t *testing.T) {
	const one, two = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "34185c34-8ce3-48c7-aa6f-1354bfb99c3f"
	var n names
	a, b := n.of("OK "+one), n.of("undoes "+two+" in /x/y/spectrum-story.AbC12/repo")
	if a == "OK "+one || len(a) != 67 || n.of("OK "+one) != a {
		t.Errorf("%q", a)
	}
	if got := n.of("Preview " + one[:8]); got != "Preview "+a[3:11] {
		t.Errorf("%q does not begin %q", got, a)
	}
	if strings.Contains(b, two) || len(b) != len("undoes "+two+" in /tmp/story/repo") || !strings.HasSuffix(b, " in /tmp/story/repo") {
		t.Errorf("%q", b)
	}
	if got := n.of("20251231T235959.999Z 2025-12-31 23:59 UTC"); got != "20260101T000000.000Z 2026-01-01 00:00 UTC" {
		t.Errorf("%q", got)
	}
	var again names
	if again.of("OK "+two[:8]+one[8:]) != a {
		t.Error("the first ID is not always the same")
	}
}

func TestShots(t *testing.T) {
	const printed = "# A title\n$ one -x\na1\nb\na2\n\n# Another\n$ two\n$ one -y\nc\nd\n"
	for _, c := range []struct {
		scenes []scene
		want   []shot
	}{
		{[]scene{{command: "one"}}, []shot{{"one -x", []string{"a1", "b", "a2"}}}},
		{[]scene{{command: "one", keep: []string{"a"}}, {command: "two"}}, []shot{{"one -x", []string{"a1", "…", "a2"}}, {"two", nil}}},
		{[]scene{{command: "two"}, {command: "one", from: "d"}}, []shot{{"two", nil}, {"one -y", []string{"…", "d"}}}},
	} {
		got, err := shotsOf(bytes.NewBufferString(printed), c.scenes)
		if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(shot{}), cmpopts.EquateEmpty()); err != nil || diff != "" {
			t.Errorf("%v %s", err, diff)
		}
	}
	if _, err := shotsOf(bytes.NewBufferString(printed), []scene{{command: "two"}, {command: "two"}}); err == nil {
		t.Error("a command that the story does not have is drawn")
	}
}
