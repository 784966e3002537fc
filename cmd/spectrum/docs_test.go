package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const repository = "../.."

// refusedInDocs are the commands that the documents show in order to be refused.
var refusedInDocs = []string{"bin/spectrum verify /tmp/demo/tampered/CONTRACTS/_runs/run-001"}

// TestDocumentedCommands runs every command that README.md and the pages under
// docs/ show, page by page, as it is shown but for the place of /tmp.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	pages = append(pages, filepath.Join(repository, "README.md"))
	shown := 0
	for _, page := range pages {
		commands := commandsOf(t, page)
		shown += len(commands)
		t.Run(filepath.Base(page), func(t *testing.T) { runShown(t, commands) })
	}
	if shown < 15 {
		t.Errorf("found only %d commands: this test no longer finds them", shown)
	}
}

// commandsOf are the lines of a page's "sh" blocks.
func commandsOf(t *testing.T, page string) (commands []string) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for i, part := range strings.Split(string(raw), "```") {
		if block, ok := strings.CutPrefix(part, "sh\n"); ok && i%2 == 1 {
			commands = append(commands, strings.Split(strings.TrimSpace(block), "\n")...)
		}
	}
	return slices.DeleteFunc(commands, func(line string) bool { return strings.HasPrefix(line, "#") })
}

// runShown runs commands in one shell, each whatever became of the one before,
// and compares those that failed with those that are meant to.
func runShown(t *testing.T, commands []string) {
	work := t.TempDir()
	if err := os.Mkdir(filepath.Join(work, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(work, "bin", "spectrum")); err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, line := range commands {
		if strings.HasPrefix(line, "make") {
			checkTarget(t, line)
			continue
		}
		script.WriteString(strings.ReplaceAll(line, "/tmp/", work+"/") + " || echo FAILED " + shellQuote(line) + "\n")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(work, "state"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkRefused(t, commands, string(out))
}

func checkRefused(t *testing.T, commands []string, out string) {
	t.Helper()
	for _, line := range strings.Split(out, "\n") {
		if failed, ok := strings.CutPrefix(line, "FAILED "); ok && !slices.Contains(refusedInDocs, failed) {
			t.Errorf("failed: %s\n%s", failed, out)
		}
	}
	for _, line := range refusedInDocs {
		if slices.Contains(commands, line) && !strings.Contains(out, "FAILED "+line) {
			t.Errorf("not refused: %s", line)
		}
	}
}

// checkTarget makes sure that a shown make command has a target; running it
// here would run this test.
func checkTarget(t *testing.T, line string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", strings.Replace(line, "make", "make -n", 1))
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// TestReadmeShowsTheDemo holds the README to what the demo prints.
func TestReadmeShowsTheDemo(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := strings.Join(demoSteps("bin/spectrum", "/tmp/demo"), "\n")
	if !strings.Contains(string(raw), "```sh\n"+steps+"\n```") {
		t.Errorf("README.md does not show these commands:\n%s", steps)
	}
}
