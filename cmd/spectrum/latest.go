package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

// This file is the short names of candidates: "latest", and the beginning of a run's name.

// makesCandidate is the next step where there is no candidate.
const makesCandidate = "make one with \"spectrum run -- COMMAND\" or \"spectrum seal .\", or name a run directory; a path that is called latest is ./latest"

// noteCandidate records a candidate that was sealed, so that "latest" is its name. Where there is no
// state directory none is made for that. The seal stands if it cannot be recorded.
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
		a.tell("spectrum: the name \"latest\" is not that of this candidate: %v", err)
	}
}

// candidates returns the candidates that were sealed and whose run directories are still there, the
// newest first.
func (a *app) candidates() ([]statedir.SealedCandidate, error) {
	state, err := a.existingState()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer state.Close()
	all, err := state.Candidates()
	if err != nil {
		return nil, err
	}
	there := all[:0]
	for _, c := range all {
		if way, err := pathsafe.WayTo(string(c.RunDir)); err != nil || !way.Missing { // of an error the one who opens it is told
			there = append(there, c)
		}
	}
	return there, nil
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
			err = refusedHint(errors.New("there is no candidate that \"latest\" could name"), makesCandidate)
		}
		return c, false, err
	}
	var found []statedir.SealedCandidate
	for _, one := range all {
		if word == latest || strings.HasPrefix(filepath.Base(string(one.RunDir)), word) {
			found = append(found, one)
		}
		if word == latest {
			break
		}
	}
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
	var payload struct {
		BundleRoot string `json:"bundle_root"`
	}
	err := notServed("run directory", path)
	if err == nil {
		var dir *pathsafe.Dir
		if dir, err = pathsafe.OpenRoot(path); err == nil {
			defer dir.Close()
			f, _, failed := dir.Open(bundle.SignedPayload)
			if err = failed; err == nil {
				defer f.Close()
				var raw []byte
				raw, err = io.ReadAll(io.LimitReader(f, 1<<16))
				err = errors.Join(err, json.Unmarshal(raw, &payload))
			}
		}
	}
	if err == nil && payload.BundleRoot != c.BundleRoot {
		err = errors.New("another bundle is there")
	}
	if err != nil {
		return refusedHint(fmt.Errorf("candidate %q is not as it was sealed: %w", path, err), "name another run directory by its path, or make a new candidate")
	}
	return nil
}

// namedRuns replaces the names of candidates by the paths of their run directories, and says which
// they are. roots are the bundle roots that were sealed there; "" for what is a path.
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
		a.say("%s is %s, sealed %s%s", word, shellQuote(string(c.RunDir)), c.At.UTC().Format("2006-01-02 15:04:05 UTC"), of)
		paths, roots = append(paths, string(c.RunDir)), append(roots, c.BundleRoot)
	}
	return paths, roots, nil
}

// overOf returns the directory that a candidate would change, where that was recorded when it was sealed.
func (a *app) overOf(word string) (string, error) {
	c, isName, err := a.findCandidate(word)
	if isName || err != nil {
		return string(c.Over), err
	}
	path, err := absoluteRunDir(word)
	if err != nil {
		return "", nil //nolint:nilerr // whoever opens it says so
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
