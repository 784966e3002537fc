package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// TestHelpFits: no line of any help is wider than 80 columns, unless it is one word, and each word of
// it is there in the same order.
func TestHelpFits(t *testing.T) {
	var out bytes.Buffer
	root := newRoot(&app{stdout: &out, stderr: &out})
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		out.Reset()
		cmd.InitDefaultHelpFlag()
		cmd.SetOut(&out)
		if err := cmd.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpColumns && len(strings.Fields(line)) > 1 {
				t.Errorf("%s: %d columns: %q", cmd.CommandPath(), n, line)
			}
		}
		if got, want := strings.Fields(out.String()), strings.Fields(cmd.Long+"\n"+cmd.UsageString()); cmd.Long != "" && strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: other words:\n%s", cmd.CommandPath(), out.String())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
}

// TestHelpLayout: a paragraph is filled again, and what explains a flag stays in its column.
func TestHelpLayout(t *testing.T) {
	text := "one two three four five six\nseven\n\nas it is\nstays\n\nFlags:\n  -f, --flag   what it does, at length\n      --long-name-of-a-flag   more\n  plain line that is too long\n"
	const want = "one two three four five six\nseven\n\nas it is\nstays\n\nFlags:\n  -f, --flag   what it does,\n               at length\n      --long-name-of-a-flag\n              more\n  plain line that is too long\n"
	if got := laidOut(text, 30); got != want {
		t.Errorf("%s", got)
	}
	if got, want := laidOut(text[:33], 20), "one two three four\nfive six seven\n"; got != want {
		t.Errorf("%q", got)
	}
}

// TestHelpLists: a list of a help text stays a list, with a tab or with spaces before its entries; an
// entry that goes on in its column is filled again.
func TestHelpLists(t *testing.T) {
	for _, indent := range []string{"\t", "    "} {
		text := "a list:\n\n" + indent + "one    what it\n" + indent + "       is\n" + indent + "three  what that is, which is more\n\nend\n"
		if got, want := laidOut(text, 26), "a list:\n\n    one    what it is\n    three  what that is,\n           which is more\n\nend\n"; got != want {
			t.Errorf("%q:\n%s", indent, got)
		}
	}
	for _, words := range [][]string{{"status", "    state      clean", "\n    space      free for"}, {"log", "    done        completed", "\n    refused     a rollback"}} {
		var out bytes.Buffer
		root := newRoot(&app{stdout: &out, stderr: &out})
		root.SetOut(&out)
		root.SetArgs([]string{words[0], "--help"})
		if err := root.Execute(); err != nil || !strings.Contains(out.String(), words[1]) || !strings.Contains(out.String(), words[2]) {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
}
