package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/restore/preview"
)

// againError is an approval that counts no longer, with the command that makes the
// same preview of what is there now.
type againError struct {
	command string
	err     error
}

func (e *againError) Error() string { return e.err.Error() }
func (e *againError) Unwrap() error { return e.err }

// ofState are the commands that look into the state directory, where a text names one of
// them to be typed.
var ofState = regexp.MustCompile(`(^|"|: )spectrum (audit|commit|doctor|keygen|log|preview|quarantine|recover|review|rollback|run|savepoint|seal|snapshot|status|trust)\b`)

// namedState is the state directory that a printed command has to name, as a path that leads there from
// anywhere; "" where it finds the same without it.
func (a *app) namedState() string {
	abs, err := filepath.Abs(a.stateDir)
	if a.stateDir == "" || err != nil || abs == os.Getenv(stateVariable) {
		return ""
	}
	return abs
}

// here is a text whose commands are for the state directory that was named to this one.
func (a *app) here(text string) string {
	state := a.namedState()
	if state == "" {
		return text
	}
	named := "spectrum --state-dir " + shellQuote(state) + " "
	return ofState.ReplaceAllStringFunc(text, func(found string) string { return strings.Replace(found, "spectrum ", named, 1) })
}

// commandLine returns a command of this program, quoted for a shell, with the state directory of
// this command.
func (a *app) commandLine(words ...string) string {
	line := []string{"spectrum"}
	if state := a.namedState(); state != "" {
		line = append(line, "--state-dir", state)
	}
	line = append(line, words...)
	for i, word := range line {
		line[i] = shellQuote(word)
	}
	return strings.Join(line, " ")
}

// reviewAgain is the command that makes a preview again and shows it on the whole screen.
func (a *app) reviewAgain(origin preview.Origin, asked preview.Requested) string {
	words := previewWords(origin, asked)
	words[0] = "review"
	return a.commandLine(words...)
}

// previewWords are the words of the command that makes a preview.
func previewWords(origin preview.Origin, asked preview.Requested) []string {
	words := []string{"preview", "--restore-root", origin.RestoreRoot}
	if asked.Agent != "" {
		words = append(words, "--agent", asked.Agent)
	}
	for _, s := range asked.Scopes {
		words = append(words, "--scope", string(s))
	}
	for _, id := range slices.Sorted(maps.Keys(asked.Decisions)) {
		if !conflictID.MatchString(id) { // the number of a conflict may be another's in the next preview
			words = append(words, "--decide", id+"="+string(asked.Decisions[id]))
		}
	}
	if asked.Replace {
		words = append(words, "--replace")
	}
	if origin.View != nil {
		return append(words, "--from-mount", origin.View.Mountpoint)
	}
	if origin.Savepoint != "" {
		return append(words, "--savepoint", origin.Savepoint[:shortest])
	}
	if derived, err := projectRootOf(origin.RunDirs); err != nil || derived != origin.ProjectRoot {
		words = append(words, "--project-root", origin.ProjectRoot)
	}
	if origin.Chain && len(origin.RunDirs) < 2 {
		words = append(words, "--chain")
	}
	return append(words, origin.RunDirs...)
}
