package main

import (
	"bytes"
	"errors"
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

// TestRunPrintsMarkdown takes one of the quicker sections.
func TestRunPrintsMarkdown(t *testing.T) {
	args, dir := stubArgs(t)
	var out bytes.Buffer
	err := run(append(args, "-only", "memory", "-markdown"), &out)
	if err != nil && !errors.Is(err, errMissed) {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "| measurement |") {
		t.Errorf("printed:\n%s", out.String())
	}
	wantEmpty(t, dir)
}
