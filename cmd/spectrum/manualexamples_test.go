package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// freshRoot is the command tree with nothing parsed yet.
func freshRoot() *cobra.Command {
	root := newRoot(&app{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}})
	root.InitDefaultHelpCmd()
	return root
}

// shellWords splits a line as a shell does, as far as the examples need it, without redirections.
func shellWords(t *testing.T, line string) (words []string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " > ")
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			words = append(words, part)
			continue
		}
		if strings.ContainsAny(part, "\"\\$`") {
			t.Errorf("%s: this test does not know what a shell makes of it", line)
		}
		words = append(words, strings.Fields(part)...)
	}
	return words
}

// TestManualExamples: every command has examples, each of which is a right command line of that
// command.
func TestManualExamples(t *testing.T) {
	seen := map[string]bool{helperNames[0]: true, helperNames[1]: true}
	for _, cmd := range allCommands(freshRoot()) {
		path := cmd.CommandPath()
		if cmd.Hidden || cmd.Name() == "help" {
			continue
		}
		seen[path] = true
		if len(manualExamples[path]) == 0 || cmd.Example == "" {
			t.Errorf("%s has no example", path)
		}
		for _, line := range manualExamples[path] {
			words := shellWords(t, line)
			if words[0] != "spectrum" {
				t.Errorf("%s: the example is of %s", path, words[0])
			}
			found, rest, err := freshRoot().Find(words[1:])
			if err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if !cmd.HasSubCommands() && found.CommandPath() != path {
				t.Errorf("%s is an example of %s", line, found.CommandPath())
			}
			if err := found.ParseFlags(rest); err != nil {
				t.Errorf("%s: %v", line, err)
				continue
			}
			if err := found.ValidateArgs(found.Flags().Args()); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
	for path := range manualExamples {
		if !seen[path] {
			t.Errorf("there is no command %s", path)
		}
	}
}

// TestManualSections: every page has examples and exit statuses.
func TestManualSections(t *testing.T) {
	pages := manual(freshRoot())
	if len(pages) < 40 {
		t.Errorf("only %d pages", len(pages))
	}
	for _, page := range pages {
		for _, section := range []string{"EXAMPLES", "EXIT STATUS"} {
			if strings.Count(page.Text, "\n.SH \""+section+"\"\n") != 1 {
				t.Errorf("%s does not have one section %s", page.Name, section)
			}
		}
	}
}
