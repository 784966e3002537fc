package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spf13/cobra"
)

// takesName are the usage lines of commands that take an ID or a run directory, and so "latest".
var takesName = regexp.MustCompile(`\b(RUN_DIR|[A-Z_]*ID|latest)\b`)

// nameFlags are the flags that do.
var nameFlags = []string{"savepoint", "base-run"}

// meantName is the hint of a failed command of which an argument may be a mistyped "latest", or a part
// of the name of a candidate; "" for no such argument.
func (a *app) meantName(cmd *cobra.Command, err error) string {
	if use, is := errors.AsType[*usageError](err); is && use.noRuns && cmd.Flags().NFlag() == 0 {
		return a.forNewest(cmd)
	}
	var typed []string
	if takesName.MatchString(cmd.Use) {
		typed = cmd.Flags().Args()
	}
	for _, name := range nameFlags {
		if flag := cmd.Flag(name); flag != nil && flag.Changed {
			typed = append(typed, flag.Value.String())
		}
	}
	for _, word := range typed {
		if len(word) < least || word == latest || strings.Contains(word, "/") || isThere(word) {
			continue
		}
		if slipsBetween(strings.ToLower(word), latest) <= nearest {
			return "did you mean " + latest
		}
		if at, unknown := filepath.Abs(word); unknown == nil && strings.Contains(err.Error(), fmt.Sprintf("run directory %q does not exist", at)) {
			return a.meantCandidate(word)
		}
	}
	return ""
}

// forNewest is the hint with the command for the newest candidate; "" where there is none, or the
// command needs a restore root that is not known.
func (a *app) forNewest(cmd *cobra.Command) string {
	all, _ := a.candidates() // what cannot be read is not named
	if len(all) == 0 {
		return ""
	}
	words := []string{cmd.Name(), latest}
	switch over := string(all[0].Over); {
	case cmd.Flag("restore-root") == nil: // it takes none
	case over == "":
		return ""
	case cmd.Name() == "commit": // which takes the root that is named only
		words = append(words, over)
	}
	return "for the newest candidate: " + a.commandLine(words...)
}

// meantCandidate is the hint with the candidate that has a word in its name, or whose name differs by a
// slip; "" for none.
func (a *app) meantCandidate(word string) string {
	all, _ := a.candidates() // what cannot be read is not meant
	var found []statedir.SealedCandidate
	for _, c := range all {
		name, typed := strings.ToLower(filepath.Base(string(c.RunDir))), strings.ToLower(word)
		if strings.Contains(name, typed) || len(name) == len(typed) && slipsBetween(name, typed) <= nearest {
			found = append(found, c)
		}
	}
	if len(found) == 0 {
		return ""
	}
	text := "did you mean " + shellQuote(filepath.Base(string(found[0].RunDir)))
	if len(found) > 1 {
		text += fmt.Sprintf(", the newest of %s with %q in their names", numberOf(len(found), "candidate"), word)
	}
	return text
}
