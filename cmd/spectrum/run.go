package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spectrumfs/spectrum/internal/overlay"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/ignore"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// changedName is the directory of a layer in which the changes are; workName is the kernel's.
const (
	changedName = "changed"
	workName    = "work"
)

// statusRunFailed is the exit status of "spectrum run" when the command has run, and what it
// changed could not be sealed.
const statusRunFailed = 125

// A runError is a command that could not be started, or whose changes could not be sealed.
type runError struct {
	status int
	layer  string // where the changes are; "" for none
	retry  string // the command that seals them
	err    error
}

func (e *runError) Error() string { return e.err.Error() }
func (e *runError) Unwrap() error { return e.err }

// patternOf is a pattern that fits one path only.
func patternOf(path string) string {
	return "/" + strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// ignoredAtStart are the signals that the caller of this program has it ignore, as nohup does.
// What the program does with signals later is not known yet.
var ignoredAtStart = func() (all []syscall.Signal) {
	for _, s := range overlay.Passed {
		if number, ok := s.(syscall.Signal); ok && signal.Ignored(number) {
			all = append(all, number)
		}
	}
	return all
}()

func newRun(app *app) *cobra.Command {
	var opts sealOptions
	var keep bool
	cmd := &cobra.Command{
		Use:   "run [--base DIR] [--keep] -- COMMAND [ARGUMENT...]",
		Short: "run a command in a private copy of a directory, and seal its changes",
		Long: `run executes a command in a private copy of a directory, DIR, and seals what the
command changed. DIR itself does not change. The command sees DIR at its usual
path and can write to it; the kernel's overlayfs, in a mount namespace, keeps what
it writes in a separate layer. When the command ends, its changes are sealed as a
change set, and stderr shows the run directory and the command to review it. The
command has the same stdin, stdout, stderr and working directory. With --json its
stdout goes to stderr, and the result to stdout.

DIR is --base, or --project-root, or the nearest directory, from the working
directory upwards, that has run directories, or the working directory.

Only writes below DIR, by its path, are isolated. The command can use the network,
other files, other processes and your secrets as you can, and can reach DIR by
other paths: this is not a sandbox. For a sandbox, run one:

  bwrap --dev-bind / / --unshare-net --unshare-pid --proc /proc COMMAND
  podman run --rm --network none -v "$PWD:$PWD" -w "$PWD" IMAGE COMMAND

The exit status is that of the command, or 128+n if signal n ended it; 127 if the
command is not found, 126 if it cannot be executed; 125 if its changes could not be
sealed (they are kept); 69 if this user cannot mount an overlay here. If nothing
changed, no candidate is made.

Signals are passed to the command. A second Ctrl-C within 5 seconds kills it.
Processes that the command leaves running are killed before its changes are
sealed.

Other processes may change DIR meanwhile. A file counts as the command's starting
point only if it was not changed after the start. A file that the command and
another process both changed is sealed against its earlier content if that was
read in time; otherwise run rejects it and names it. run leaves out the same files
as seal: .git, run directories, and what .spectrumignore and --exclude match.

The changes are kept below runs in the state directory until you remove them,
because the candidate's outputs are there. If nothing changed they are removed,
unless --keep is given.`,
		Args: atLeast(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runRun(cmd, app, opts, keep, args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	cmd.Flags().StringVar(&opts.base, "base", "", "`directory` to run in (default: the current project)")
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the changes even if none of them is sealed, such as changes in .git")
	opts.sharedFlags(cmd)
	return cmd
}

// runRun runs a command, and seals what it changed.
func runRun(cmd *cobra.Command, app *app, opts sealOptions, keep bool, args []string) error {
	claims, err := opts.claims(cmd)
	if err != nil {
		return err
	}
	if _, err := ignore.New(nil, opts.exclude); err != nil {
		return usage(cmd, "--exclude: %w", err)
	}
	if opts.task != "" && !taskName.MatchString(opts.task) {
		return usage(cmd, "--task %q: it takes a name of letters, digits and ._-", opts.task)
	}
	r := &running{app: app, opts: opts, claims: claims, keep: keep}
	defer r.close()
	if err := r.open(); err != nil {
		return err
	}
	signals := make(chan os.Signal, 16)
	for _, s := range overlay.Passed {
		signal.Notify(signals, s)
	}
	for _, s := range ignoredAtStart {
		signal.Ignore(s)
	}
	if err := cmd.Context().Err(); err != nil { // interrupted: the command is not started
		return errors.Join(err, r.remove())
	}
	if err := r.begin(); err != nil {
		return errors.Join(err, r.remove())
	}
	streams := overlay.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
	if app.json {
		streams.Out = os.Stderr
	}
	watch := r.watch()
	status, err := overlay.Run(r.command(args), streams, signals)
	r.layer.Seen = watch()
	signal.Stop(signals)
	start, notStarted := errors.AsType[*overlay.StartError](err)
	switch {
	case notStarted:
		return errors.Join(&runError{status: start.Status, err: err}, r.remove())
	case errors.Is(err, overlay.ErrLost), errors.Is(err, overlay.ErrLeft):
		// The command could have written the record anew.
		return r.failed(errors.Join(fmt.Errorf("nothing was sealed: %w", err), writeLayerRecord(r.place, r.dir, r.layer)))
	case err != nil:
		return errors.Join(err, r.remove())
	}
	ctx, stop := signal.NotifyContext(context.WithoutCancel(cmd.Context()), endings...) // those of the command are over
	defer stop()
	return r.seal(ctx, status)
}

// running is a command over a directory.
type running struct {
	app      *app
	opts     sealOptions
	claims   map[string]any
	keep     bool
	dir      string        // without links
	lower    *pathsafe.Dir // the same
	layerDir string        // of the layer
	place    *pathsafe.Dir // the same
	upper    *pathsafe.Dir // what is in it of the command
	layer    *bundle.Layer
	id       pathsafe.ID // of lower
}

// open finds the directory, and makes the layer.
func (r *running) open() error {
	dir := r.opts.base
	if dir == "" {
		dir = r.app.projectRoot
	}
	if dir == "" {
		here, err := filepath.Abs(".")
		if err != nil {
			return err
		}
		dir = projectAt(here)
	}
	const hint = "name another directory with --base DIR"
	var err error
	if r.dir, err = pathsafe.ResolveDir(dir); err != nil {
		return refusedHint(fmt.Errorf("the directory to run over: %w", err), hint)
	}
	state, err := r.app.statePath()
	if err != nil {
		return err
	}
	if err := overlap("the state directory", state, []reserved{{"the directory to run over", r.dir}}); err != nil {
		return refusedHint(fmt.Errorf("%w: the changes of the command would be stored there", err), hint+", or another state directory with --state-dir DIR")
	}
	if _, err := r.app.sealingKey(r.opts.key); err != nil { // better now than after hours
		return err
	}
	kept, err := r.app.openState()
	if err != nil {
		return err
	}
	defer kept.Close()
	if r.lower, err = pathsafe.OpenRoot(r.dir); err != nil {
		return refusedHint(fmt.Errorf("the directory to run over: %w", err), hint)
	}
	if err := r.checkIgnore(); err != nil {
		return err
	}
	return r.makeLayer(kept)
}

func (r *running) close() {
	for _, dir := range []*pathsafe.Dir{r.lower, r.place, r.upper} {
		if dir != nil {
			dir.Close()
		}
	}
}

// makeLayer makes the directories of a layer.
func (r *running) makeLayer(state *statedir.Dir) error {
	layers, err := state.Layers()
	if err != nil {
		return err
	}
	defer layers.Close()
	st, err := r.lower.Stat()
	if err != nil {
		return err
	}
	name := time.Now().UTC().Format("20060102T150405.000Z")
	if r.opts.task != "" {
		name += "-" + r.opts.task
	}
	for n, first := 2, name; ; n++ {
		err := layers.Mkdir(name, 0o700)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) || n > 100 {
			return err
		}
		name = fmt.Sprintf("%s-%d", first, n)
	}
	if r.place, err = layers.OpenDir(name); err != nil {
		return err
	}
	for range 100 { // "spectrum status" may have it for a moment; without the lock the layer is taken for one that is left over
		if err := r.place.TryLock(); !errors.Is(err, pathsafe.ErrLocked) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	real, err := filepath.Abs(state.Path())
	if err != nil {
		return err
	}
	if r.layerDir, err = realPath(filepath.Join(real, "runs", name)); err != nil {
		return err
	}
	for _, name := range []string{changedName, workName} {
		if err := r.place.Mkdir(name, 0o700); err != nil {
			return errors.Join(err, removeAll(r.layerDir))
		}
	}
	if r.upper, err = r.place.OpenDir(changedName); err != nil {
		return errors.Join(err, removeAll(r.layerDir))
	}
	r.id = st.ID
	return r.upper.Chmod(st.Perm & 0o1777) // the overlay shows it as that of the directory
}

// begin notes the time from which on a change of the directory is another process's.
func (r *running) begin() error {
	since := time.Now()
	attributes := bundle.UserOverlay
	if overlay.Trusted() {
		attributes = bundle.TrustedOverlay
	}
	r.layer = &bundle.Layer{Lower: r.lower, Since: since, Attributes: attributes}
	// What is written later by a mapping is seen in the time of change only when the page was
	// clean, and times of change are those of a clock that ticks.
	if err := r.lower.SyncFS(); err != nil {
		return fmt.Errorf("the directory to run over: %w", err)
	}
	for {
		var tick unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &tick); err != nil {
			return os.NewSyscallError("clock_gettime", err)
		}
		if time.Unix(tick.Unix()).After(since) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return writeLayerRecord(r.place, r.dir, r.layer)
}

// changed is the path of the layer itself.
func (r *running) changed() string { return filepath.Join(r.layerDir, changedName) }

// command is what runs, with the environment that this program was started with.
func (r *running) command(args []string) overlay.Command {
	here, err := os.Getwd()
	if err != nil {
		here = r.dir
	}
	env := os.Environ()
	if raw, err := os.ReadFile("/proc/self/environ"); err == nil {
		env = nil
		for line := range bytes.SplitSeq(bytes.TrimSuffix(raw, []byte{0}), []byte{0}) {
			env = append(env, string(line))
		}
	}
	return overlay.Command{
		Args: args, Env: env, Dir: here, Ignored: ignoredAtStart,
		Lower: r.dir, Device: r.id.Dev, Inode: r.id.Ino, Upper: r.changed(), Work: filepath.Join(r.layerDir, workName),
	}
}

// seal seals what the command changed, and returns how it ended.
func (r *running) seal(ctx context.Context, status int) error {
	if err := writeLayerRecord(r.place, r.dir, r.layer); err != nil {
		return r.failed(fmt.Errorf("nothing was sealed: %w", err))
	}
	if err := r.checkPlace(); err != nil {
		return r.failed(fmt.Errorf("nothing was sealed: %w", err))
	}
	_ = removeAll(inside(r.place, workName))
	sealed, err := r.app.sealLayer(ctx, r.opts, r.claims, r.upper, r.changed(), r.layer)
	fields := map[string]any{"changes": nil, "layer": jsonText(r.layerDir), "ok": true, "run_dir": nil, "status": status}
	switch {
	case errors.Is(err, bundle.ErrUnchanged):
		r.app.say("nothing to seal: the command changed nothing in %q", r.dir)
		if r.keep {
			r.app.tell("what it wrote is kept in %q", r.layerDir)
		} else if err := r.remove(); err != nil {
			return &runError{status: statusRunFailed, err: err}
		} else {
			fields["layer"] = nil
		}
	case err != nil:
		return r.failed(sealError(err))
	default:
		r.app.noteCandidate(&sealed, r.dir)
		sealed.say(r.app)
		for name, value := range sealed.fields() {
			fields[name] = value
		}
		r.app.tell("to look at it: %s", r.app.commandLine("review", "--restore-root", r.dir, sealed.runDir))
		r.app.say("when it is not needed any more: rm -rf %s", shellQuote(r.layerDir))
	}
	if r.app.json {
		if err := r.app.result("", fields); err != nil {
			return &runError{status: statusRunFailed, err: err}
		}
	}
	if status != 0 {
		return &childError{status}
	}
	return nil
}

// failed is the error of what could not be sealed. The command that seals it leaves out what
// was the cause, where that is known.
func (r *running) failed(err error) error {
	err = hinted(err, ignoreHint(err, r.ignorePath, "before the seal below"))
	words := append([]string{"seal", "--upper", r.changed(), "--lower", r.dir}, r.opts.sharedWords()...)
	if _, is := errors.AsType[*bundle.SpecialError](err); is {
		words = append(words, "--skip-special")
	}
	if form, is := errors.AsType[*bundle.FormError](err); is {
		words = append(words, "--exclude", patternOf(form.Path))
	}
	if path := backslashIn(err); path != "" {
		words = append(words, "--exclude", patternOf(path))
	}
	return &runError{status: statusRunFailed, layer: r.layerDir, retry: r.app.commandLine(words...), err: err}
}

// checkPlace is an error where the command has put something else in the place of the layer, or the
// directory into it: then nothing may be removed or written there.
func (r *running) checkPlace() error {
	changed, err := pathsafe.OpenRoot(r.changed())
	if err != nil {
		return fmt.Errorf("the command has moved or removed its layer: %w", err)
	}
	defer changed.Close()
	here, err := changed.Stat()
	held, heldErr := r.upper.Stat()
	if err := errors.Join(err, heldErr); err != nil {
		return err
	}
	if here.ID.Dev != held.ID.Dev || here.ID.Ino != held.ID.Ino {
		return fmt.Errorf("the command has put something else in the place of its layer %q", r.changed())
	}
	home, err := r.place.RealPath()
	lower, lowerErr := r.lower.RealPath()
	if err := errors.Join(err, lowerErr); err != nil {
		return err
	}
	if strings.HasPrefix(lower, home+"/") {
		return fmt.Errorf("the command has moved the directory to run over into its layer: it is %q now", lower)
	}
	return nil
}

// inside is a path of a name in a directory, wherever that was moved to.
func inside(dir *pathsafe.Dir, name string) string {
	return fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), name)
}

// remove removes the layer. Of what the command may have put there only names are removed that are
// in the layer itself.
func (r *running) remove() error {
	err := r.checkPlace()
	if err == nil {
		var names []string
		names, err = r.place.Names()
		for _, name := range names {
			err = errors.Join(err, removeAll(inside(r.place, name)))
		}
	}
	if err == nil {
		err = os.Remove(r.layerDir)
	}
	if err != nil {
		return fmt.Errorf("the layer is still there: %w", err)
	}
	return nil
}

// removeAll removes what a command has made, in directories too that it has barred.
func removeAll(path string) error {
	if err := os.RemoveAll(path); err == nil {
		return nil
	}
	_ = filepath.WalkDir(path, func(at string, entry fs.DirEntry, _ error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(at, 0o700) // #nosec: what cannot be entered cannot be removed
		}
		return nil
	})
	return os.RemoveAll(path)
}
