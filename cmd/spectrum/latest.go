package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

// This file is the short names of candidates: "latest", and the beginning of a run's name.

// makesCandidate is the next step if there is no candidate.
const makesCandidate = "make one with \"spectrum run -- COMMAND\" or \"spectrum seal .\", or name a run directory; a path that is called latest is ./latest"

// noteCandidate records a sealed candidate, so that "latest" names it. It does not make a state
// directory. A failure to record does not undo the seal.
func (a *app) noteCandidate(s *sealedRun, over string) {
	state, err := a.existingState()
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err == nil {
		defer state.Close()
		var runDir string
		if runDir, err = filepath.Abs(s.runDir); err == nil {
			err = state.KeepCandidate(statedir.SealedCandidate{At: time.Now(), BundleRoot: s.BundleRoot, Over: []byte(over), RunDir: []byte(runDir)})
		}
	}
	if err != nil {
		a.tell("spectrum: \"latest\" does not name this candidate: %v", err)
	}
}

// candidates returns those of [app.allCandidates] whose run directories are still there.
func (a *app) candidates() ([]statedir.SealedCandidate, error) {
	all, err := a.allCandidates()
	return statedir.Present(all), err
}

// allCandidates returns the candidates that were sealed, the newest first.
func (a *app) allCandidates() ([]statedir.SealedCandidate, error) {
	state, err := a.existingState()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer state.Close()
	return state.Candidates()
}

// unreviewed returns the candidates that were sealed and that no preview shows, the newest first; of a
// root, unless that is "", those that would change it.
func (a *app) unreviewed(state *statedir.Dir, root string) []statedir.SealedCandidate {
	shown := map[string]bool{}
	previews, _ := state.Previews()
	for _, p := range previews {
		raw, err := state.LoadPreview(p.ID)
		if err != nil {
			continue
		}
		if record, err := preview.ParseRecord(raw, p.ID); err == nil {
			for _, dir := range record.Origin().RunDirs {
				shown[dir] = true
			}
		}
	}
	all, _ := state.Candidates() // what cannot be read is not listed
	return statedir.Unreviewed(all, root, func(runDir string) bool { return shown[runDir] })
}

// Of the candidates that were not reviewed, status has the commands that review the newest, and the names
// of some others.
const (
	maxUnreviewed = 3
	maxEarlier    = 10
)

// earlierText names candidates without the commands that review them.
func earlierText(all []statedir.SealedCandidate) string {
	names := make([]string, 0, maxEarlier)
	for _, c := range all[:min(len(all), maxEarlier)] {
		names = append(names, shellQuote(filepath.Base(string(c.RunDir))))
	}
	text := strings.Join(names, ", ")
	if more := len(all) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	was := "were"
	if len(all) == 1 {
		was = "was"
	}
	return fmt.Sprintf("%s %s not reviewed either: %s; \"spectrum review NAME\" shows one", numberOf(len(all), "earlier candidate"), was, text)
}

// reviewLine is the command that reviews a candidate.
func (a *app) reviewLine(runDir, over string) string {
	if over == "" {
		return a.commandLine("review", runDir) + " RESTORE_ROOT"
	}
	return a.commandLine("review", "--restore-root", over, runDir)
}

// candidateText says of a candidate that was not reviewed when it was sealed, and how it is reviewed.
func (a *app) candidateText(c statedir.SealedCandidate) string {
	return fmt.Sprintf("%s\n  candidate  sealed %s, and not reviewed\n  to review  %s",
		shellQuote(string(c.RunDir)), c.At.UTC().Format("2006-01-02 15:04:05 UTC"), a.reviewLine(string(c.RunDir), string(c.Over)))
}

// findCandidate returns the candidate that a word names, if it is the name of one and no path.
// "latest" is always a name. Another word is one where nothing is at that path.
func (a *app) findCandidate(word string) (c statedir.SealedCandidate, isName bool, err error) {
	if word != latest && (len(word) < least || strings.Contains(word, "/") || isThere(word)) {
		return c, false, nil
	}
	all, err := a.candidates()
	if word == latest && (err != nil || len(all) == 0) {
		if err == nil {
			err = refusedHint(errors.New("there is no candidate, so \"latest\" names none"), makesCandidate)
		}
		return c, false, err
	}
	if word == latest {
		return all[0], true, checkSealed(all[0])
	}
	found := statedir.NamedBy(all, word)
	if len(found) == 0 {
		return c, false, nil // with no state directory that can be read, it is a path
	}
	if len(found) > 1 {
		return c, false, refusedHint(fmt.Errorf("%s begin with %q", numberOf(len(found), "candidate"), word),
			fmt.Sprintf("type more of the name, such as %s, or %q, which is the newest", shellQuote(filepath.Base(string(found[0].RunDir))), latest))
	}
	return found[0], true, checkSealed(found[0])
}

// checkSealed is an error where the run directory of a candidate is not the one that was sealed there.
func checkSealed(c statedir.SealedCandidate) error {
	path := string(c.RunDir)
	err := notServed("run directory", path)
	if err == nil {
		err = bundle.CheckSealed(path, c.BundleRoot)
	}
	if err != nil {
		return refusedHint(fmt.Errorf("candidate %q is not as it was sealed: %w", path, err), "name another run directory by its path, or make a new candidate")
	}
	return nil
}

// namedRuns replaces names of candidates by the paths of their run directories, and prints them.
// roots are the bundle roots that were sealed there; "" for a path.
func (a *app) namedRuns(words []string) (paths, roots []string, err error) {
	for _, word := range words {
		c, isName, err := a.findCandidate(word)
		if err != nil {
			return nil, nil, err
		}
		if !isName {
			paths, roots = append(paths, word), append(roots, "")
			continue
		}
		of := ""
		if len(c.Over) > 0 {
			of = ", over " + shellQuote(string(c.Over))
		}
		if word == latest {
			a.tellPassedOver()
		}
		a.say("%s is %s, sealed %s%s", word, shellQuote(string(c.RunDir)), c.At.UTC().Format("2006-01-02 15:04:05 UTC"), of)
		paths, roots = append(paths, string(c.RunDir)), append(roots, c.BundleRoot)
	}
	return paths, roots, nil
}

// tellPassedOver reports that the newest candidate is gone, so latest is an earlier one.
func (a *app) tellPassedOver() {
	all, _ := a.allCandidates()
	if len(all) > 0 && all[0].IsGone() {
		a.tell("spectrum: the newest candidate is gone: %s, sealed %s; the one before it is used", shellQuote(string(all[0].RunDir)), all[0].At.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
}

// overOf returns the directory that a candidate would change, where that was recorded when it was sealed.
func (a *app) overOf(word string) (string, error) {
	c, isName, err := a.findCandidate(word)
	if isName || err != nil {
		return string(c.Over), err
	}
	path, err := absoluteRunDir(word)
	if err != nil {
		return "", nil //nolint:nilerr // the caller that opens it reports it
	}
	all, _ := a.candidates() // without a record there is none
	for _, c := range all {
		if string(c.RunDir) == path {
			return string(c.Over), nil
		}
	}
	return "", nil
}

// candidateNames completes the names of candidates: "latest", and those of the run directories.
// With none, the shell completes directories.
func (a *app) candidateNames(cmd *cobra.Command, typed string) []cobra.Completion {
	configLeniently(cmd)
	all, _ := a.candidates()
	var names []cobra.Completion
	for n, c := range all {
		about := c.At.Local().Format("2006-01-02 15:04")
		if len(c.Over) > 0 {
			about += " " + shellQuote(string(c.Over))
		}
		if n == 0 && strings.HasPrefix(latest, typed) {
			names = append(names, cobra.CompletionWithDesc(latest, oneLine(about)))
		}
		if name := filepath.Base(string(c.RunDir)); strings.HasPrefix(name, typed) {
			names = append(names, cobra.CompletionWithDesc(name, oneLine(about)))
		}
	}
	return names
}
