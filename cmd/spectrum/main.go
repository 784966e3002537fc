// Command spectrum verifies signed bundles, shows them as a read-only view,
// previews what a restore would change, and carries an approved restore out,
// all of it or nothing.
//
// This package has flags, terminals, progress and words. It has no law: every
// decision is made in the packages below it.
package main

import (
	"cmp"
	"context"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	_ "github.com/spectrumfs/spectrum/internal/descriptors" // ends a program that has too few
	"github.com/spectrumfs/spectrum/internal/overlay"
	"github.com/spectrumfs/spectrum/verify/store"
	"github.com/spf13/cobra"
)

// init keeps the first thread for the main goroutine, which only waits for calls that may not
// answer (see unlessStuck). The kernel delivers signals to this thread: if it waited for a FUSE
// server itself, and had been woken once, an interrupt would not be handled.
func init() { runtime.LockOSThread() }

func main() { os.Exit(run(os.Args[0], os.Args[1:])) }

// run is the whole program but for its exit.
func run(program string, args []string) int {
	if len(args) > 0 && args[0] == overlay.HelperArg {
		return overlay.Serve(args[1:])
	}
	_ = os.Unsetenv("PWD") // os.Getwd would access the file system of the path
	if zone := strings.TrimPrefix(os.Getenv("TZ"), ":"); strings.HasPrefix(zone, "/") || strings.Contains(zone, "..") {
		time.Local = time.UTC // the log would access the file system of that file
	}
	ctx, stop := signal.NotifyContext(context.Background(), endings...)
	defer stop()
	signal.Ignore(syscall.SIGPIPE) // a reader that went away is an error of the write, not our end
	return execute(ctx, &app{stdout: os.Stdout, stderr: os.Stderr, progressDelay: progressDelay}, program, args)
}

// execute runs a command line and returns its exit status. The name of the program decides which
// program it is.
func execute(ctx context.Context, app *app, program string, args []string) int {
	root := newRoot(app)
	if isMountHelper(program) {
		root = newMountHelper(app, filepath.Base(program))
	}
	root.SetArgs(args)
	help := &keepsError{w: app.stdout}
	root.SetOut(help)
	app.patience = store.Patience
	cmd, err := root.ExecuteContextC(ctx)
	app.hasPatience = cmd != nil && cmd.Flags().Lookup(patienceFlag) != nil
	if err != nil {
		app.meant = app.meantName(cmd, err)
	} else {
		err = unlessGone(help.err)
	}
	app.json = app.json || asksJSON(err, args)
	return app.finish(err)
}

// keepsError is a writer that keeps the first error, for help texts, which are printed
// without a look at it.
type keepsError struct {
	w   io.Writer
	err error
}

func (k *keepsError) Write(p []byte) (int, error) {
	n, err := k.w.Write(p)
	k.err = cmp.Or(k.err, err)
	return n, err
}

// endings are the signals that end the program. None may end it at once: a commit has to be undone,
// and a view to be unmounted.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

func newRoot(app *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "spectrum",
		Short: "preview a restore before it happens, then do all of it or nothing",
		Long: `spectrum verifies signed bundles of a run's outputs, mounts them as a read-only
view in which every byte is checked as it is read, previews what a restore
would change, and commits exactly what was approved: all of it or nothing.

Start with:  spectrum demo /tmp/demo`,
	}
	setUp(root, app)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case !configurable(cmd):
			return nil
		case cmd.CommandPath() == "spectrum doctor":
			app.config = configLeniently(cmd)
			return nil
		}
		return configure(cmd)
	}
	root.Version = programVersion() // for --version
	root.SetVersionTemplate("spectrum {{.Version}}\n")
	root.AddCommand(
		newDemo(app), newKeygen(app), newSeal(app), newRun(app), newVerify(app), newMount(app), newUmount(app),
		newLs(app), newCat(app), newDiff(app), newPreview(app), newReview(app), newCommit(app), newRollback(app), newRecover(app), newStatus(app), newLog(app), newSnapshot(app), newSavepoint(app), newTrust(app), newQuarantine(app), newAudit(app), newPush(app), newPull(app), newStore(app), newDoctor(app), newVersion(app), newManual(app),
	)
	suggestFor(root)
	root.SetHelpCommand(newHelp())
	addCompletion(root)
	app.addLatestRoot(root)
	app.addRootAfterID(root)
	addRootFlag(root)
	addExamples(root)
	settle(root)
	completeWords(root)
	app.completeIDs(root)
	app.completeValues(root)
	return root
}

// setUp has a root command speak as the whole program does.
func setUp(root *cobra.Command, app *app) {
	root.SetOut(app.stdout)
	root.SetErr(app.stderr)
	root.SetFlagErrorFunc(badFlag)
	root.SilenceErrors, root.SilenceUsage = true, true
	app.commonFlags(root)
	layOutHelp(root, app)
}
