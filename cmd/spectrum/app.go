package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// app is what all commands share: the streams and the common flags.
type app struct {
	stdout, stderr io.Writer

	projectRoot string
	stateDir    string
	json        bool
	quiet       bool
	verbose     bool
	noProgress  bool
	patience    time.Duration // with a store
	hasPatience bool          // the command has a flag for it

	progressDelay time.Duration // how long work may take without a bar
	shown         *bar          // the one that was begun last; nil is none

	ended       []string            // what earlier commands had left and this one has ended, in words
	endedCommit *staging.Outcome    // the last commit among that; nil for none
	done        []string            // what else this command has done and stays, in words
	detached    []string            // mount points of views that a rollback has ended
	latestOf    string              // the restore root for latest, if the command names one
	meant       string              // hint of a failed command, with the name that may be meant; "" for none
	config      []config            // what "spectrum doctor" has read of config files
	dryRun      bool                // no state directory is made
	foreign     []fusemount.Foreign // views of other users, which a rollback leaves
}

// stateVariable is the environment's word for --state-dir.
const stateVariable = "SPECTRUM_STATE_DIR"

// commonFlags defines the flags that every command takes. Flag beats
// environment beats default.
func (a *app) commonFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&a.projectRoot, "project-root", os.Getenv("SPECTRUM_PROJECT_ROOT"), "`directory` that output paths are relative to (SPECTRUM_PROJECT_ROOT)")
	flags.StringVar(&a.stateDir, "state-dir", os.Getenv(stateVariable), "state `directory` (SPECTRUM_STATE_DIR; default $XDG_STATE_HOME/spectrum)")
	flags.BoolVar(&a.json, "json", false, "print one canonical JSON value on stdout")
	flags.BoolVarP(&a.quiet, "quiet", "q", false, "print only results and errors")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "print more on stderr")
	flags.BoolVar(&a.noProgress, "no-progress", false, "show no progress bar")
}

// openState opens the state directory, which is made where it is missing, but for a dry run.
func (a *app) openState() (*statedir.Dir, error) {
	path, err := a.statePath()
	if err != nil {
		return nil, err
	}
	open := statedir.Open
	if a.dryRun {
		open = statedir.Find
	}
	state, err := open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, refusedHint(fmt.Errorf("nothing is recorded: %w", err), "name the state directory with --state-dir DIR")
	}
	if err != nil {
		return nil, refusedHint(err, stateDirHint(path, err))
	}
	return state, nil
}

// existingState opens the state directory, as openState does, and makes none: fs.ErrNotExist where
// there is none.
func (a *app) existingState() (*statedir.Dir, error) {
	look := *a
	look.dryRun = true
	return look.openState()
}

// stateHint is for a state directory that cannot be used.
const stateHint = "\"spectrum doctor\" shows what is wrong with it, and the fix; or name another one with --state-dir DIR"

// openStateApart opens the state directory of a command that looks at a
// restore root. Neither may be in the other: what is kept would change what is
// looked at, and nothing may be written beneath a restore root before a commit.
func (a *app) openStateApart(restoreRoot string) (*statedir.Dir, error) {
	path, err := a.statePath()
	if err != nil {
		return nil, err
	}
	if err := apart(path, restoreRoot); err != nil {
		return nil, err
	}
	return a.openState()
}

// openStateOf is openStateApart for a restore root that was named; it returns its absolute path, too.
func (a *app) openStateOf(path string) (root string, state *statedir.Dir, err error) {
	if root, err = filepath.Abs(path); err != nil {
		return "", nil, err
	}
	state, err = a.openStateApart(root)
	return root, state, err
}

// apart is an error when the state directory or the restore root is in the other.
func apart(state, restoreRoot string) error {
	err := overlap("state directory", state, []reserved{{"the restore root", restoreRoot}})
	return refusedHint(err, "name another state directory with --state-dir DIR")
}

func (a *app) statePath() (string, error) {
	if a.stateDir != "" {
		return a.stateDir, nil
	}
	path, err := statedir.Default()
	return path, refusedHint(err, "set HOME, or name a state directory with --state-dir DIR")
}

// result prints the one result of a command: text, or with --json the canonical
// JSON of v.
func (a *app) result(text string, v any) error {
	if !a.json {
		return a.text(text)
	}
	raw, err := canonjson.Marshal(v)
	if err != nil {
		return err
	}
	return a.raw(raw)
}

// text prints a result for people and scripts, if there is any.
func (a *app) text(result string) error {
	if result == "" {
		return nil
	}
	_, err := fmt.Fprintln(a.stdout, visible.Lines(result))
	return err
}

// raw prints one canonical JSON value, without a newline. What a reader cannot see in
// it is escaped here and nowhere else: identities are over the canonical form.
func (a *app) raw(value []byte) error {
	_, err := a.stdout.Write(visible.AppendJSON(nil, value))
	return err
}

// say prints a line on stdout, unless --quiet is set.
func (a *app) say(format string, args ...any) {
	if !a.quiet {
		a.tell(format, args...)
	}
}

// tell prints a line on stderr, above the progress bar. If stderr cannot be written, the line is
// lost.
func (a *app) tell(format string, args ...any) {
	a.bar().clear()
	_, _ = fmt.Fprintln(a.stderr, visible.Lines(a.here(fmt.Sprintf(format, args...))))
}

// tellFew prints the first lines, and how many more there are.
func (a *app) tellFew(lines []string) {
	for _, line := range words.Few(lines, words.MaxNamed) {
		a.tell("spectrum: %s", line)
	}
}

// visibleWriter writes whole lines of text for people.
type visibleWriter struct{ w io.Writer }

func (v visibleWriter) Write(lines []byte) (int, error) {
	if _, err := io.WriteString(v.w, visible.Lines(string(lines))); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// onTerminal reports whether a stream is a terminal.
func onTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
