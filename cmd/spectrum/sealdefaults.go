package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spf13/cobra"
)

// This file has the defaults of "spectrum seal": the project, the run directory and the key.

// taskName is what --task takes: it becomes a part of a name.
var taskName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// sealRoots finds the project root and the run directory as absolute paths.
func (a *app) sealRoots(cmd *cobra.Command, opts sealOptions) (root, dir string, err error) {
	if opts.runDir != "" {
		if dir, err = filepath.Abs(opts.runDir); err != nil {
			return "", "", err
		}
		if a.projectRoot == "" {
			if root, err = projectRootOf([]string{dir}); err != nil {
				return "", "", usage(cmd, "%w", err)
			}
			return root, dir, nil
		}
	}
	if root, err = filepath.Abs(a.projectRoot); err != nil { // "" is this directory
		return "", "", err
	}
	if a.projectRoot == "" {
		root = projectAt(root)
	}
	if dir == "" {
		dir = freeRunDir(root, time.Now(), opts.task)
	}
	return root, dir, nil
}

// runsDirs are where the run directories of a project can be.
var runsDirs = bundle.RunsDirs()

// projectAt returns the nearest directory at or above a path that has run directories, or the path.
// A directory above counts only if its runs belong to this user: other users can make some in a
// directory like /tmp.
func projectAt(path string) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		for _, runs := range runsDirs {
			way, err := pathsafe.WayTo(filepath.Join(dir, runs))
			if err == nil && !way.Missing && way.End.Mode.IsDir() && (dir == path || int(way.End.UID) == os.Geteuid()) {
				return dir
			}
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// freeRunDir returns the path of a run directory that is not there yet.
func freeRunDir(root string, now time.Time, task string) string {
	runs := runsDirs[0]
	if !isThere(filepath.Join(root, runs)) && isThere(filepath.Join(root, runsDirs[1])) {
		runs = runsDirs[1]
	}
	name := now.UTC().Format("20060102T150405.000Z")
	if task != "" {
		name += "-" + task
	}
	path := filepath.Join(root, runs, name)
	dir, err := pathsafe.OpenRoot(filepath.Dir(path))
	if err != nil {
		return path // nothing is in it, or the seal finds out why
	}
	defer dir.Close()
	for n := 2; ; n++ {
		if _, err := dir.Lstat(filepath.Base(path)); err != nil {
			return path
		}
		path = filepath.Join(root, runs, fmt.Sprintf("%s-%d", name, n))
	}
}

// isThere reports whether something is at a path.
func isThere(path string) bool {
	way, err := pathsafe.WayFrom(path)
	return err == nil && !way.Missing
}

// sealingKey is the key that was named, or the operator's own, which is made when it is missing. It
// warns of a key that is revoked.
func (a *app) sealingKey(named string) (bundle.Key, error) {
	if named != "" {
		key, err := loadKey(named)
		if err == nil {
			a.warnRevoked(key, "sign with another key: --key FILE")
		}
		return key, err
	}
	state, err := a.openState()
	if err != nil {
		return bundle.Key{}, err
	}
	defer state.Close()
	if _, err := state.Root().Lstat(filepath.Base(state.KeyPath())); errors.Is(err, fs.ErrNotExist) {
		if err := a.makeOperatorKey(state); err != nil {
			return bundle.Key{}, err
		}
	}
	key, err := loadKey(state.KeyPath())
	if err == nil {
		path := shellQuote(state.KeyPath())
		a.warnRevoked(key, fmt.Sprintf("move the key away, and the next seal makes a new one: mv %s %s", path, shellQuote(state.KeyPath()+".revoked")))
	}
	return key, err
}

// warnRevoked warns of a key that is revoked here, with the next step.
func (a *app) warnRevoked(key bundle.Key, next string) {
	policy, err := a.trustHere()
	if id := key.ValidatorID(); err == nil && policy.Of(id) == trust.Revoked {
		a.tell("spectrum: warning: the signing key is revoked (%s): what it signs can be verified, and never restored here", oneLine(strconv.Quote(policy.Reason(id))))
		a.tell("hint: %s", oneLine(next))
	}
}

// makeOperatorKey makes the key of the state directory, durably. Of two processes that make
// one, both get the first.
func (a *app) makeOperatorKey(state *statedir.Dir) error {
	key, err := bundle.GenerateKey()
	if err != nil {
		return err
	}
	err = key.SaveIn(state.Root(), filepath.Base(state.KeyPath()))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		err = state.Sync()
	}
	if err != nil {
		return refusedHint(err, "name another key with --key FILE, or another state directory with --state-dir DIR")
	}
	a.hasDone("a key was made, %q", state.KeyPath())
	a.say("made the key %s (mode 0600), validator_id %s; every user who can read it can sign as this validator", shellQuote(state.KeyPath()), key.ValidatorID())
	if policy, err := a.trustHere(); err == nil && len(policy.Pinned()) > 0 {
		a.tell("spectrum: other validators are pinned, so what this key signs is held in quarantine until it is pinned too: %s", a.commandLine("trust", "add", key.ValidatorID()))
		return nil
	}
	a.say("to pin it, and reject keys that are not pinned: %s", a.commandLine("trust", "add", key.ValidatorID()))
	return nil
}

// loadKey reads a key file.
func loadKey(path string) (bundle.Key, error) {
	key, err := bundle.LoadKey(path)
	if err != nil {
		return bundle.Key{}, refusedHint(err, keyHint(path, err))
	}
	return key, nil
}
