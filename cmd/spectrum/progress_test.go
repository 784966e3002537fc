package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/test/terminal"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// onTerminalOf runs a command in this process with stderr on a terminal, and returns what
// was written there.
func onTerminalOf(t *testing.T, patience time.Duration, args ...string) (said, stdout string) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", stateHome(t))
	tty := terminal.Open(t)
	heard := tty.Listen()
	var out bytes.Buffer
	status := execute(t.Context(), &app{stdout: &out, stderr: tty.Program, progressDelay: patience}, "spectrum", args)
	if said = heard(); status != statusOK {
		t.Fatalf("%q: exit %d: %s", args, status, said)
	}
	return said, out.String()
}

// longWork are the commands that may take long, in an order in which they can be run,
// and what their bars say.
func longWork(t *testing.T) (work []longCommand) {
	t.Helper()
	project, root := bundletest.New(t), t.TempDir()
	run := project.Run("run-1", map[string]string{"big": strings.Repeat("0123456789abcdef", 1<<18), "empty": "", "small": "x"})
	key := filepath.Join(t.TempDir(), "key.pem")
	must(t, "keygen", "--out", key)
	var id, snap, first string
	preview1 := func() []string { return []string{"preview", "--restore-root", root, run.Dir} }
	return []longCommand{
		{func() []string { return []string{"verify", run.Dir} }, []string{"verifying 3 files", "%"}, nil},
		{func() []string { return []string{"verify", "--chain", run.Dir} }, []string{"verifying 3 files"}, nil},
		{func() []string {
			return []string{"seal", "--key", key, "--run-dir", filepath.Join(project.Root, "CONTRACTS/_runs/other"), filepath.Join(project.Root, "big")}
		}, []string{"sealing 1 file", "%", "finishing"}, nil},
		{preview1, []string{"verifying 3 files", "looking at the restore root"}, func(out string) { id = strings.TrimSpace(out) }},
		{func() []string { return []string{"commit", "--preview", id, "--approve", preview.Exactly} },
			[]string{"verifying 3 files", "copying 3 files", "syncing", "checking 3 files"}, nil},
		{func() []string { return []string{"savepoint", "verify", "latest"} }, []string{"comparing 3 files"}, nil},
		{func() []string { return []string{"snapshot", "take", root} }, []string{"keeping 5 files", "syncing"},
			func(out string) { snap = strings.TrimPrefix(strings.TrimSpace(out), "OK ") }},
		{func() []string { return []string{"snapshot", "verify", snap} }, []string{"checking 5 files", "%"}, nil},
		{func() []string {
			if err := os.Remove(filepath.Join(root, "big")); err != nil {
				t.Fatal(err)
			}
			return []string{"snapshot", "restore", snap}
		}, []string{"writing 1 file", "finishing"}, nil},
		{func() []string {
			first = strings.Fields(must(t, "savepoint", "list"))[1]
			return []string{"rollback", first}
		}, []string{"keeping"}, nil},
	}
}

// longCommand is one of them.
type longCommand struct {
	args func() []string
	says []string
	took func(stdout string)
}

// TestProgress: on a terminal the bar of each command says what it does, of how many
// files, and how far it is; nothing of it is on stdout, and nothing stays on the screen.
func TestProgress(t *testing.T) {
	for _, c := range longWork(t) {
		args := c.args()
		said, stdout := onTerminalOf(t, 0, args...)
		for _, word := range c.says {
			if !strings.Contains(said, word) {
				t.Errorf("%q: no bar says %q: %q", args, word, said)
			}
		}
		if c.took != nil {
			c.took(stdout)
		}
		checkScreen(t, args, said)
		if strings.ContainsAny(stdout, "\r\x1b") || strings.Contains(stdout, "%") {
			t.Errorf("%q: a bar on stdout: %q", args, stdout)
		}
	}
}

// barWords are on no line but a bar's.
var barWords = []string{"%|", "B/s", "verifying ", "copying ", "writing ", "checking ", "comparing ", "finishing", "looking at the restore root", "it/s"}

// checkScreen requires that no rest of a bar is on the screen, and that no bar was wider than it.
func checkScreen(t *testing.T, args []string, said string) {
	t.Helper()
	for _, line := range terminal.Screen(said) {
		if slices.ContainsFunc(barWords, func(w string) bool { return strings.Contains(line, w) }) {
			t.Errorf("%q: of a bar there is still %q", args, line)
		}
	}
}

// TestNoProgress: there is no bar if it is switched off, if stderr is not a terminal, or for work
// that is done at once.
func TestNoProgress(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run-1", map[string]string{"big": strings.Repeat("0123456789abcdef", 1<<16)})
	for _, flag := range []string{"-q", "--no-progress", "--json"} {
		if said, _ := onTerminalOf(t, 0, "verify", flag, run.Dir); strings.ContainsAny(said, "\x1b%|") {
			t.Errorf("%s: %q", flag, said)
		}
	}
	if said, _ := onTerminalOf(t, math.MaxInt64, "verify", run.Dir); strings.ContainsAny(said, "\x1b%|") {
		t.Errorf("short work: %q", said)
	}
	t.Setenv("XDG_STATE_HOME", stateHome(t))
	var stdout, stderr bytes.Buffer
	if status := execute(t.Context(), &app{stdout: &stdout, stderr: &stderr}, "spectrum", []string{"verify", run.Dir}); status != 0 || strings.Count(stderr.String(), "\n") > 1 || strings.ContainsAny(stderr.String(), "\r\x1b%") {
		t.Errorf("off a terminal: %d, %q", status, &stderr)
	}
}

// TestProgressWithoutColour: where escapes are not wanted there are none, and the bar
// is gone at the end all the same.
func TestProgressWithoutColour(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	run := bundletest.New(t).Run("run-1", map[string]string{"big": strings.Repeat("0123456789abcdef", 1<<16)})
	said, _ := onTerminalOf(t, 0, "verify", run.Dir)
	if strings.Contains(said, "\x1b") || !strings.Contains(said, "verifying 1 file") {
		t.Errorf("%q", said)
	}
	checkScreen(t, nil, said)
}

// TestLinesBesideABar: a line that is printed while a bar is shown stands alone, and
// the bar comes back below it.
func TestLinesBesideABar(t *testing.T) {
	tty := terminal.Open(t)
	heard := tty.Listen()
	a := &app{stderr: tty.Program}
	bar := a.newBar("working")
	bar.begin("verifying", 2, 100)
	bar.add(50)
	a.tell("spectrum: a line")
	bar.add(10)
	a.tell("spectrum: another line")
	bar.done()
	bar.add(10)
	bar.done()
	said := heard()
	if got := terminal.Screen(said); !slices.Equal(got, []string{"spectrum: a line", "spectrum: another line", ""}) {
		t.Errorf("the screen shows %q after %q", got, said)
	}
}

// TestBarComesLate: the bar of work that takes long appears by itself, as it is by then,
// also when nothing moves.
func TestBarComesLate(t *testing.T) {
	tty := terminal.Open(t)
	heard := tty.Listen()
	a := &app{stderr: tty.Program, progressDelay: time.Hour}
	bar := a.newBar("working")
	bar.begin("verifying", 2, 100)
	bar.add(50)
	bar.begin("syncing", 0, 0)
	a.tell("before")
	bar.appear()
	a.tell("after")
	bar.done()
	before, after, _ := strings.Cut(heard(), "before\r\n")
	if before != "" || !strings.Contains(after, "syncing") || strings.Contains(after, "verifying") {
		t.Errorf("before %q, after %q", before, after)
	}
}

// TestBarFits: the longest line of a bar is narrower than the terminal.
func TestBarFits(t *testing.T) {
	tty := terminal.Open(t)
	heard := tty.Listen()
	a := &app{stderr: tty.Program}
	bar := a.newBar("working")
	bar.begin("run 1000 of 1000:", 1_000_000, 999<<30)
	for range 5 {
		bar.add(99 << 30)
	}
	bar.done()
	for _, line := range strings.Split(heard(), "\r") {
		if n := len([]rune(strings.ReplaceAll(line, "\x1b[2K", ""))); n >= terminal.Columns {
			t.Errorf("a bar of %d columns: %q", n, line)
		}
	}
}

// TestNarrowProgress: a bar leaves no line behind on a narrow terminal, and counts in the
// units of messages.
func TestNarrowProgress(t *testing.T) {
	t.Parallel()
	for _, columns := range []int{40, 60, 79, 120} {
		tty := terminal.Open(t)
		tty.Resize(t, columns)
		heard := tty.Listen()
		b := (&app{stderr: tty.Program}).newBar("verifying")
		for _, phase := range []string{"checking", "moving into place", "a phase with a description of some length"} {
			b.begin(phase, 123456, 3<<30)
			for range 4 {
				b.add(700 << 20)
				time.Sleep(110 * time.Millisecond)
			}
		}
		b.done()
		said := heard()
		if got := terminal.ScreenOf(said, columns); len(got) != 1 || got[0] != "" {
			t.Errorf("%d columns: %q stays", columns, got)
		}
		for line := range strings.SplitSeq(said, "\r") {
			if n := len([]rune(strings.NewReplacer("\x1b[2K", "", "\x1b[0K", "").Replace(line))); n >= columns {
				t.Errorf("%d columns: %d characters: %q", columns, n, line)
			}
		}
		if strings.Contains(said, " GB") || strings.Contains(said, " MB") || columns >= 60 && !strings.Contains(said, "GiB") {
			t.Errorf("%d columns: units: %.300q", columns, said)
		}
	}
}

// TestResizedProgress: a bar leaves no line in a terminal that gets narrower, and a number of
// files is shown whole or not at all.
func TestResizedProgress(t *testing.T) {
	t.Parallel()
	for _, to := range []int{20, 45, 59} {
		tty := terminal.Open(t)
		tty.Resize(t, 60)
		heard := tty.Listen()
		b := (&app{stderr: tty.Program}).newBar("verifying")
		b.begin("verifying", 200000, 3<<30)
		b.add(1 << 20)
		time.Sleep(110 * time.Millisecond)
		b.add(1 << 20)
		tty.Resize(t, to)
		for range 5 {
			time.Sleep(110 * time.Millisecond)
			b.add(100 << 20)
		}
		b.done()
		said := heard()
		lines := strings.Split(said, "\r")
		wide := 0
		for _, line := range lines[len(lines)*3/4:] {
			if len([]rune(strings.NewReplacer("\x1b[2K", "", "\x1b[0K", "").Replace(line))) >= to {
				wide++
			}
		}
		if wide > 0 || strings.Contains(said, "20000…") {
			t.Errorf("%d columns: %d lines are wider at the end: %q", to, wide, lines)
		}
	}
}
