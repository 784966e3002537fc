package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// someRows are rows of every kind: reached, missed, for the record, and far off the scale.
func someRows() []row {
	times := func(ours, theirs time.Duration) pair {
		return pair{ours: []time.Duration{ours}, theirs: []time.Duration{theirs}}
	}
	return []row{
		timed("reached", times(100, 90), 0.6, false),
		timed("missed", times(100, 50), 0.6, false),
		timed("for the record", times(100, 50), 0, false),
		timed("far away", times(1, 1<<40), 5, false),
		timed("at once", times(0, 1), 5, false),
		within("soon", []time.Duration{10}, 50),
		resident("large", 300, 300*kib),
	}
}

// element is what an SVG holds, as far as it matters here.
type element struct {
	class string
	text  string
	attr  map[string]float64
}

// elements parses an SVG strictly, and fails when it is not well-formed.
func elements(t *testing.T, svg []byte) (all []element) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{attr: map[string]float64{}}
			for _, a := range token.Attr {
				if a.Name.Local == "class" {
					e.class = a.Value
				} else if v, err := strconv.ParseFloat(a.Value, 64); err == nil {
					e.attr[a.Name.Local] = v
				}
			}
			all = append(all, e)
		case xml.CharData:
			if len(all) > 0 {
				all[len(all)-1].text += strings.TrimSpace(string(token))
			}
		}
	}
}

// ofClass gives the elements of the given classes, in their order.
func ofClass(all []element, classes ...string) (some []element) {
	for _, e := range all {
		for _, class := range classes {
			if e.class == class {
				some = append(some, e)
			}
		}
	}
	return some
}

func TestDrawing(t *testing.T) {
	svg := drawing(someRows())
	if again := drawing(someRows()); !bytes.Equal(svg, again) {
		t.Error("the same rows were drawn in two ways")
	}
	all := elements(t, svg)
	var names []string
	for _, e := range ofClass(all, "name") {
		names = append(names, e.text)
	}
	if got, want := strings.Join(names, ","), "reached,missed,far away,at once,soon,large"; got != want {
		t.Errorf("rows %q, want %q", got, want)
	}
	var verdicts string
	for _, e := range ofClass(all, "ok", "missed") {
		verdicts += e.class + " "
	}
	if want := "ok missed ok ok ok missed "; verdicts != want {
		t.Errorf("bars %q, want %q", verdicts, want)
	}
	if n := len(ofClass(all, "target")); n != 6 {
		t.Errorf("%d targets marked, want 6", n)
	}
}

// TestDrawingIsToScale holds bars and marks against the grid's line at 1.
func TestDrawingIsToScale(t *testing.T) {
	all := elements(t, drawing(someRows()))
	even := ofClass(all, "even")[0].attr["x1"]
	bars, targets := ofClass(all, "ok", "missed"), ofClass(all, "target")
	if slow := bars[1].attr; slow["x"]+slow["width"]-even > 0.2 || slow["x"] >= targets[1].attr["x1"] {
		t.Errorf("missed: bar %v, target %v, 1 at %v", slow, targets[1].attr, even)
	}
	if fast := bars[4].attr; math.Abs(fast["x"]-even) > 0.2 || targets[4].attr["x1"] != even {
		t.Errorf("soon: bar %v, target %v, 1 at %v", fast, targets[4].attr, even)
	}
	width := all[0].attr["width"]
	for _, e := range all {
		if e.attr["x"] < 0 || e.attr["x"]+e.attr["width"] > width {
			t.Errorf("outside of the drawing: %+v", e)
		}
	}
}

// TestDrawingOfNothing holds a drawing without a row.
func TestDrawingOfNothing(t *testing.T) {
	if bars := ofClass(elements(t, drawing(nil)), "ok", "missed"); len(bars) > 0 {
		t.Errorf("bars: %v", bars)
	}
}

func TestDrawingEscapes(t *testing.T) {
	for _, name := range []string{`<rect class="ok"/>`, `a & b`, `]]>`, `"'`, "</text>", "\x00\x1b"} {
		all := elements(t, drawing([]row{resident(name, 1, 2*kib)}))
		if bars := ofClass(all, "ok"); len(bars) != 1 {
			t.Errorf("%q: %d bars, want 1", name, len(bars))
		}
		want := strings.NewReplacer("\x00", "\ufffd", "\x1b", "\ufffd").Replace(name)
		if got := ofClass(all, "name"); len(got) != 1 || got[0].text != want {
			t.Errorf("%q was drawn as %+v", name, got)
		}
	}
}

func TestMarkdown(t *testing.T) {
	var out bytes.Buffer
	rows := append(someRows(), resident("a | b <c> *d*", 1, 2*kib))
	if err := printMarkdown(&out, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 2+len(rows) {
		t.Fatalf("%d lines for %d rows:\n%s", len(lines), len(rows), out.String())
	}
	for _, line := range lines {
		if n := strings.Count(strings.ReplaceAll(line, `\|`, ""), "|"); n != 7 {
			t.Errorf("%d bars, want 7: %s", n, line)
		}
	}
	if !strings.HasSuffix(lines[3], "| **MISSED** |") || !strings.HasSuffix(lines[4], "| - |") {
		t.Errorf("verdicts:\n%s", out.String())
	}
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, `| a \| b &lt;c> \*d\* | `) {
		t.Errorf("not escaped: %s", last)
	}
}

// TestRunDraws takes one of the quicker sections.
func TestRunDraws(t *testing.T) {
	args, dir := stubArgs(t)
	svg := filepath.Join(t.TempDir(), "out.svg")
	var out bytes.Buffer
	err := run(append(args, "-only", "memory", "-markdown", "-svg", svg), &out)
	if err != nil && !errors.Is(err, errMissed) {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "| measurement |") {
		t.Errorf("printed:\n%s", out.String())
	}
	drawn, err := os.ReadFile(svg)
	if err != nil {
		t.Fatal(err)
	}
	if bars := ofClass(elements(t, drawn), "ok", "missed"); len(bars) != 3 {
		t.Errorf("%d bars, want 3:\n%s", len(bars), drawn)
	}
	wantEmpty(t, dir)
}

// TestFailedRunDrawsNothing leaves an older drawing as it was.
func TestFailedRunDrawsNothing(t *testing.T) {
	args, _ := stubArgs(t)
	svg := filepath.Join(t.TempDir(), "out.svg")
	if err := os.WriteFile(svg, []byte("older"), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("STUB_FAIL", "mount")
	if err := run(append(args, "-only", "memory", "-svg", svg), new(bytes.Buffer)); err == nil {
		t.Fatal("the run did not fail")
	}
	if kept, err := os.ReadFile(svg); err != nil || string(kept) != "older" {
		t.Errorf("the drawing is now %q, %v", kept, err)
	}
}
