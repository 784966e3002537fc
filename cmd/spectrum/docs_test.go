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
// docs/ show, page by page, as it is shown but for the place of /tmp. Where a
// "text" block follows a block of commands it is held against what they print.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	pages = append(pages, filepath.Join(repository, "README.md"))
	commands, outputs := 0, 0
	for _, page := range pages {
		blocks := blocksOf(t, page)
		for _, b := range blocks {
			commands += len(b.commands)
			outputs += min(1, len(b.shown))
		}
		t.Run(filepath.Base(page), func(t *testing.T) { runShown(t, blocks) })
	}
	if commands < 100 || outputs < 20 {
		t.Errorf("found only %d commands and %d outputs: this test no longer finds them", commands, outputs)
	}
}

// shownBlock is an "sh" block of a page, and the lines of the "text" block that
// follows it; none where the page does not show what is printed.
type shownBlock struct {
	commands []string
	shown    []string
}

// blocksOf are the "sh" blocks of a page.
func blocksOf(t *testing.T, page string) (blocks []shownBlock) {
	t.Helper()
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(raw), "```")
	for i := 1; i < len(parts); i += 2 {
		text, isShell := strings.CutPrefix(parts[i], "sh\n")
		if isShell {
			lines := strings.Split(strings.TrimSpace(text), "\n")
			lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "#") })
			blocks = append(blocks, shownBlock{commands: lines})
		}
		if isShell && i+2 < len(parts) && strings.TrimSpace(parts[i+1]) == "" {
			blocks[len(blocks)-1].shown = outputLines(parts[i+2])
		}
	}
	return blocks
}

// outputLines are the lines of a "text" block, none of any other.
func outputLines(block string) []string {
	output, ok := strings.CutPrefix(block, "text\n")
	if !ok {
		return nil
	}
	return strings.Split(strings.TrimSuffix(output, "\n"), "\n")
}

// endOfBlock ends the output of a block.
const endOfBlock = "\x00END OF BLOCK\n"

// runShown runs the commands of a page in one shell, each whatever became of the
// one before. It compares those that failed with those that are meant to, and
// what is printed with what is shown.
func runShown(t *testing.T, blocks []shownBlock) {
	work := workPlace(t)
	var script strings.Builder
	var commands []string
	for _, b := range blocks {
		for _, line := range b.commands {
			if strings.HasPrefix(line, "make") {
				checkTarget(t, line)
				continue
			}
			commands = append(commands, line)
			script.WriteString(strings.ReplaceAll(line, "/tmp/", work+"/") + " || echo FAILED " + shellQuote(line) + "\n")
		}
		script.WriteString("printf '\\0END OF BLOCK\\n'\n")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "umask 022\n"+script.String())
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(work, "state"))
	raw, err := cmd.CombinedOutput()
	out := strings.ReplaceAll(string(raw), work+"/", "/tmp/")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkRefused(t, commands, out)
	checkPrinted(t, blocks, strings.Split(out, endOfBlock))
}

// workPlace is a directory with a link to the program in bin.
func workPlace(t *testing.T) string {
	t.Helper()
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
	return work
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
