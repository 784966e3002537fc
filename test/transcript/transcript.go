// Package transcript runs what the documents show: every command of their "sh"
// blocks, as it is shown, and where a "text" block follows one it holds that
// against what was printed. It is for the tests of the program and for those of a
// fresh machine.
package transcript

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// refused are the commands that the documents show in order to be rejected.
var refused = []string{"bin/spectrum verify /tmp/demo/tampered/CONTRACTS/_runs/run-001"}

// The least that the pages show together. With less, this package no longer finds it.
const (
	leastCommands = 100
	leastOutputs  = 20
)

// Pages returns README.md, which comes first, CONTRIBUTING.md, and the pages under docs/.
func Pages(t testing.TB, repository string) []Page {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var pages []Page
	commands, outputs := 0, 0
	for _, name := range append([]string{filepath.Join(repository, "README.md"), filepath.Join(repository, "CONTRIBUTING.md")}, names...) {
		p := read(t, name)
		pages = append(pages, p)
		for _, b := range p.blocks {
			commands += len(b.commands)
			outputs += min(1, len(b.shown))
		}
	}
	if commands < leastCommands || outputs < leastOutputs {
		t.Errorf("found only %d commands and %d outputs: this no longer finds them", commands, outputs)
	}
	return pages
}

// A Page is what one document shows.
type Page struct {
	Name   string
	blocks []block
}

// block is an "sh" block, and the lines of the "text" block that follows it; none
// where the page does not show what is printed.
type block struct {
	commands []string
	shown    []string
}

func read(t testing.TB, name string) Page {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	p := Page{Name: filepath.Base(name)}
	parts := strings.Split(string(raw), "```")
	for i := 1; i < len(parts); i += 2 {
		text, isShell := strings.CutPrefix(parts[i], "sh\n")
		if isShell {
			lines := strings.Split(strings.TrimSpace(text), "\n")
			lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "#") })
			p.blocks = append(p.blocks, block{commands: lines})
		}
		if isShell && i+2 < len(parts) && strings.TrimSpace(parts[i+1]) == "" {
			p.blocks[len(p.blocks)-1].shown = outputLines(parts[i+2])
		}
	}
	return p
}

// outputLines are the lines of a "text" block, none of any other.
func outputLines(block string) []string {
	output, ok := strings.CutPrefix(block, "text\n")
	if !ok {
		return nil
	}
	return strings.Split(strings.TrimSuffix(output, "\n"), "\n")
}

// A Place is where the commands of a page are run.
type Place struct {
	Dir string   // the directory that they are run in, with the program in bin
	Tmp string   // what stands for /tmp
	Env []string // all that the shell has of an environment

	// Make is given the commands that are calls of make.
	Make func(line string) error
}

// endOfBlock ends the output of a block.
const endOfBlock = "\x00END OF BLOCK\n"

// Run runs the commands of a page in one shell, each whatever became of the one
// before. It compares those that failed with those that are meant to, and what is
// printed with what is shown.
func (p Page) Run(t *testing.T, at Place) {
	t.Helper()
	var script strings.Builder
	var commands []string
	for _, b := range p.blocks {
		for _, line := range b.commands {
			if strings.HasPrefix(line, "make") {
				if err := at.Make(line); err != nil {
					t.Errorf("%s: %v", line, err)
				}
				continue
			}
			fmt.Fprintf(&script, "%s || echo FAILED %d\n", strings.ReplaceAll(line, "/tmp/", at.Tmp+"/"), len(commands))
			commands = append(commands, line)
		}
		script.WriteString("printf '\\0END OF BLOCK\\n'\n")
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", "umask 022\n"+apart(script.String()))
	cmd.Dir, cmd.Env = at.Dir, at.Env
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	}
	raw, err := cmd.CombinedOutput()
	out := strings.ReplaceAll(string(raw), at.Tmp+"/", "/tmp/")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkRefused(t, commands, out)
	checkPrinted(t, p.blocks, strings.Split(out, endOfBlock))
}

// apart begins a script that root runs in a mount namespace of its own by taking the
// views of others out of it: a rollback would tell of those it cannot ask.
func apart(script string) string {
	if os.Geteuid() != 0 {
		return script
	}
	const views = `awk '/ - fuse\.spectrum / { print $5 }' /proc/self/mountinfo`
	return views + " | while read -r view; do umount -l \"$(printf %b \"$view\")\"; done\n" + script
}

func checkRefused(t *testing.T, commands []string, out string) {
	t.Helper()
	for n, line := range commands {
		failed := strings.Contains(out, fmt.Sprintf("FAILED %d\n", n))
		if failed != slices.Contains(refused, line) {
			t.Errorf("failed: %v: %s\n%s", failed, line, out)
		}
	}
}
