package main

import (
	"os"
	"path/filepath"
	"regexp"
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
			if _, after, _ := strings.Cut(said, "ITS END\n"); c.paged && (!strings.Contains(after, "READY: ") || !idAtEnd.MatchString(after)) {
				t.Errorf("after the pager: %q", after)
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

// seenOf runs a command at a terminal, with these variables, and returns what it has written there.
func seenOf(t *testing.T, env []string, args ...string) string {
	t.Helper()
	seat := terminal.Sit(t, 80, 24)
	cmd := command(t, args...)
	cmd.Env = append(append(cmd.Env, "TERM=xterm", "NO_COLOR=", "SPECTRUM_PAGER=cat"), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = seat.Program, seat.Program, seat.Program
	_ = cmd.Run()
	return strings.ReplaceAll(seat.Hang(t), "\r\n", "\n")
}

// TestColors: one flag is for the colors of all that a preview prints, and wins over the environment.
func TestColors(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha\n"})
	for name, c := range map[string]struct {
		env    []string
		flags  []string
		colors bool
	}{
		"as it is":         {nil, nil, true},
		"never":            {nil, []string{"--color", "never"}, false},
		"NO_COLOR":         {[]string{"NO_COLOR=1"}, nil, false},
		"dumb":             {[]string{"TERM=dumb"}, nil, false},
		"always, NO_COLOR": {[]string{"NO_COLOR=1"}, []string{"--color=always"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, command := range [][]string{{"preview", "--diff"}, {"preview"}} {
				said := seenOf(t, c.env, append(append(command, c.flags...), "--restore-root", root, run.Dir)...)
				if strings.Contains(said, "\x1b[") != c.colors || !strings.Contains(said, "READY: ") {
					t.Errorf("%q: colors %t are wrong:\n%q", command, !c.colors, said)
				}
			}
		})
	}
}

// TestPagerLeft: when a pager is left before its end, the screen still has the verdict, the signer,
// the conflicts, the command that approves and the file with the report.
func TestPagerLeft(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha", "b": "beta"})
	seat := terminal.Sit(t, 80, 12)
	cmd := command(t, "preview", "--restore-root", root, run.Dir)
	cmd.Env = append(cmd.Env, "SPECTRUM_PAGER=head -n 1; echo LEFT", "TERM=xterm", "NO_COLOR=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = seat.Program, seat.Program, seat.Program
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	said := strings.ReplaceAll(seat.Hang(t), "\r\n", "\n")
	_, after, left := strings.Cut(said, "LEFT\n")
	for _, want := range []string{"READY: 2 to create, ", "signed by ", "conflicts: 1 authority, which the approval acknowledges; not in quarantine", "approve: spectrum commit --preview ", "report: /"} {
		if !left || !strings.Contains(after, want) {
			t.Errorf("no %q after the pager:\n%s", want, said)
		}
	}
}

// TestCatOnTerminal: a terminal gets no byte that it would act on; a file that is not text is an error
// that names the way.
func TestCatOnTerminal(t *testing.T) {
	t.Parallel()
	text := "one\x1b[31m\ttwo\u202e\né\n" + strings.Repeat("ä", catBuffer/2) + "€\n"
	run := bundletest.New(t).Run("run-1", map[string]string{"text": text, "binary": "GIF89a\x00\xff\x1b", "cut": "caf\xc3"})
	if said := seenOf(t, nil, "cat", run.Dir, "text"); !strings.HasPrefix(said, `one\x1b[31m	two\u202e`+"\né\nää") || !strings.HasSuffix(said, "ää€\n") {
		t.Errorf("%.100q", said)
	}
	for _, path := range []string{"binary", "cut"} {
		said := seenOf(t, nil, "cat", run.Dir, path)
		if strings.ContainsAny(said, "\x00\x1b") || strings.Contains(said, "\xff") || !strings.Contains(said, "is not text, and stdout is a terminal") || !strings.Contains(said, ">FILE") {
			t.Errorf("%s: %q", path, said)
		}
	}
	if got := must(t, "cat", run.Dir, "text"); got != text {
		t.Errorf("a pipe gets other bytes: %.100q", got)
	}
}

// idAtEnd is the id of a preview on a line of its own, at the end.
var idAtEnd = regexp.MustCompile(`\n[0-9a-f]{64}\n$`)

// TestLessOptions: less always has the option R, also where the user's options are without it.
func TestLessOptions(t *testing.T) {
	for less, want := range map[string]string{"-i": "-R -i", "": "-R", "FRX": "-R FRX", "-Pprompt": "-R -Pprompt"} {
		t.Setenv("LESS", less)
		if got := lessOptions(); got != want {
			t.Errorf("LESS=%q: %q", less, got)
		}
		if got := stayingLess(); got != want+" -+F -+E -+X" {
			t.Errorf("LESS=%q: %q", less, got)
		}
	}
	for charset, want := range map[string]string{"": "LESS=x LESSCHARSET=utf-8", "latin1": "LESS=x"} {
		t.Setenv("LESSCHARSET", charset)
		if got := strings.Join(lessVariables("x"), " "); got != want {
			t.Errorf("LESSCHARSET=%q: %q", charset, got)
		}
	}
	_ = os.Unsetenv("LESS")
	if got := lessOptions(); got != "FRX" {
		t.Errorf("without LESS: %q", got)
	}
}
