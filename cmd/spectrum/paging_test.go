package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/test/terminal"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// onScreenOf runs a command at a terminal of this size and returns what it has written there. The
// pager says that it is one.
func onScreenOf(t *testing.T, columns, lines int, args ...string) string {
	t.Helper()
	seat := terminal.Sit(t, columns, lines)
	cmd := command(t, args...)
	cmd.Env = append(cmd.Env, "SPECTRUM_PAGER=echo THE PAGER; cat; echo ITS END", "TERM=xterm", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = seat.Program, seat.Program, seat.Program
	_ = cmd.Run()
	return strings.ReplaceAll(seat.Hang(t), "\r\n", "\n")
}

// TestSummaryPaged: a summary that is longer than its screen comes in a pager, with the verdict
// first; one that fits does not, nor where that was not wanted.
func TestSummaryPaged(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha", "b": "beta"})
	for name, c := range map[string]struct {
		columns, lines int
		args           []string
		paged          bool
	}{
		"fits":          {80, 40, nil, false},
		"low":           {80, 12, nil, true},
		"not wanted":    {80, 12, []string{"--no-pager"}, false},
		"narrow":        {40, 24, nil, true},
		"report":        {80, 24, []string{"--report"}, true},
		"report, as is": {80, 24, []string{"--report", "--no-pager"}, false},
		"asked for":     {80, 4000, []string{"--report"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			said := onScreenOf(t, c.columns, c.lines, append([]string{"preview", "--restore-root", root, run.Dir}, c.args...)...)
			if paged := strings.Contains(said, "THE PAGER"); paged != c.paged {
				t.Errorf("paged: %t\n%s", paged, said)
			}
			if len(c.args) > 0 && c.args[0] == "--report" {
				return
			}
			for _, want := range []string{"READY: ", "signed by ", "conflicts ", "create     a"} {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in\n%s", want, said)
				}
			}
			if _, id, _ := strings.Cut(said, "ITS END\n"); c.paged && len(strings.TrimSpace(id)) != 64 {
				t.Errorf("after the pager: %q", id)
			}
		})
	}
}

// TestSummaryOfHeld: why a candidate is held, and the next steps, leave its verdict on the screen.
func TestSummaryOfHeld(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	files := map[string]string{}
	for _, name := range strings.Fields("a b c d e f g h i j k l m n o p") {
		files[name] = name
		if err := os.WriteFile(filepath.Join(root, name), []byte("other"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := bundletest.New(t).Run("run-1", files)
	show := []string{"preview", "--restore-root", root, run.Dir}
	id := strings.TrimSpace(must(t, show...))
	_ = command(t, "commit", "--preview", id, "--approve", "Approved: x").Run()
	for _, lines := range []int{24, 30, 40} {
		said := onScreenOf(t, 80, lines, show...)
		if !strings.Contains(said, "QUARANTINED: ") || !strings.Contains(said, "hint: \"spectrum ") {
			t.Errorf("%d lines: it is not held:\n%s", lines, said)
		}
		if height := heightOf(said, 80); height >= lines && !strings.Contains(said, "THE PAGER") {
			t.Errorf("%d lines, and the summary has %d:\n%s", lines, height, said)
		}
	}
}

// TestSavepointShowPaged: the report of a savepoint is shown in a pager where it is longer than the
// screen, and nowhere else.
func TestSavepointShowPaged(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"})
	id := strings.TrimSpace(must(t, "preview", "--restore-root", root, run.Dir))
	must(t, "commit", "--preview", id, "--approve", "Approved: commit the restore preview exactly as proposed.")
	show := []string{"savepoint", "show", "latest"}
	whole := must(t, show...)
	if said := onScreenOf(t, 80, 24, show...); !strings.Contains(said, "THE PAGER") {
		t.Errorf("no pager:\n%s", said)
	}
	if said := onScreenOf(t, 80, 24, append(show, "--no-pager")...); said != whole {
		t.Errorf("%s\nis not\n%s", said, whole)
	}
}

// TestSummaryOfChain: the summary of a chain names the command that shows its content, unless that
// would be a screen of its own.
func TestSummaryOfChain(t *testing.T) {
	o := preview.Origin{ProjectRoot: "/p", RestoreRoot: "/r", Chain: true, RunDirs: []string{"/p/CONTRACTS/_runs/a", "/p/CONTRACTS/_runs/b"}}
	app := &app{}
	if got, want := app.diffLine(o), "spectrum diff /p/CONTRACTS/_runs/a /p/CONTRACTS/_runs/b /r"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	o.RunDirs = o.RunDirs[:1]
	if got, want := app.diffLine(o), "spectrum diff --chain /p/CONTRACTS/_runs/a /r"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for range 20 {
		o.RunDirs = append(o.RunDirs, "/p/CONTRACTS/_runs/another-one")
	}
	if got := app.diffLine(o); got != "" {
		t.Errorf("%q", got)
	}
}
