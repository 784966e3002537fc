package main

import (
	"maps"
	"os"
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
var ofState = regexp.MustCompile(`(^|"|: )spectrum (audit|commit|doctor|log|preview|quarantine|recover|rollback|savepoint|snapshot|trust)\b`)

// here is a text whose commands are for the state directory that was named to this one.
func (a *app) here(text string) string {
	if a.stateDir == os.Getenv(stateVariable) {
		return text
	}
	named := "spectrum --state-dir " + shellQuote(a.stateDir) + " "
	return ofState.ReplaceAllStringFunc(text, func(found string) string { return strings.Replace(found, "spectrum ", named, 1) })
}

// commandLine is a command of this program, as a shell takes it, for the state
// directory that was named to this one.
func (a *app) commandLine(words ...string) string {
	line := []string{"spectrum"}
	if a.stateDir != os.Getenv(stateVariable) {
		line = append(line, "--state-dir", a.stateDir)
	}
	line = append(line, words...)
	for i, word := range line {
		line[i] = shellQuote(word)
	}
	return strings.Join(line, " ")
}

// previewWords are the words of the command that makes a preview.
func previewWords(origin preview.Origin, asked preview.Asked) []string {
	words := []string{"preview", "--restore-root", origin.RestoreRoot}
	if asked.Agent != "" {
		words = append(words, "--agent", asked.Agent)
	}
	for _, s := range asked.Scopes {
		words = append(words, "--scope", string(s))
	}
	for _, id := range slices.Sorted(maps.Keys(asked.Decisions)) {
		words = append(words, "--decide", id+"="+string(asked.Decisions[id]))
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
