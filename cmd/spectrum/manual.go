package main

import (
	"os"
	"path/filepath"
	"strconv"

	"github.com/spectrumfs/spectrum/internal/manpage"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newManual is for whoever installs or packages the program: like the completion
// scripts, the manual pages come from the program itself.
func newManual(app *app) *cobra.Command {
	return &cobra.Command{
		Use:    "manual DIR",
		Short:  "write the manual pages below a directory, as man1 and man8",
		Hidden: true,
		Args:   exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pages := manual(cmd.Root())
			for _, page := range pages {
				if err := writeManualPage(args[0], page); err != nil {
					return refusedHint(err, "name another directory")
				}
			}
			app.say("wrote %s", numberOf(len(pages), "page"))
			return app.result("", map[string]any{"ok": true, "pages": len(pages)})
		},
	}
}

// manual are the pages of all commands, and those of the mount(8) helper.
func manual(root *cobra.Command) []manpage.Page {
	about := manpage.About{
		Section: 1,
		Date:    programDate(),
		Version: "spectrum " + programVersion(),
		Manual:  "spectrum manual",
	}
	noDefaults(root)
	pages := manpage.Pages(root, about, exitStatus, environment, files)
	about.Section = 8
	for _, name := range helperNames {
		helper := newMountHelper(&app{}, name) // an app of its own: its flags are other ones
		noDefaults(helper)
		pages = append(pages, manpage.Pages(helper, about, helperExitStatus)...)
	}
	return pages
}

// noDefaults has the common flags forget what the environment says: it is no
// default of anybody else.
func noDefaults(root *cobra.Command) {
	root.PersistentFlags().VisitAll(func(f *pflag.Flag) { f.DefValue = "" })
}

// writeManualPage writes a page into the directory of its section.
func writeManualPage(dir string, page manpage.Page) error {
	section := filepath.Join(dir, "man"+filepath.Ext(page.Name)[1:])
	if err := os.MkdirAll(section, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(section, page.Name), []byte(page.Text), 0o644)
}

// exitStatus is the part of the page that scripts rely on.
var exitStatus = manpage.Part{Title: "EXIT STATUS", Every: true, Rows: []manpage.Row{
	status(statusOK, "done, accepted; also a view in the foreground that was ended by Ctrl-C"),
	status(statusRejected, "rejected: a verdict of a law, or tampering found"),
	status(statusHalted, "a rollback failed, or the restore root is halted: a person must look"),
	status(statusApproval, "the approval is missing, vague, stale or used"),
	status(statusPolicy, "the candidate is in quarantine, or its validator is revoked or not among those that are pinned; of a view, that a rollback has revoked it"),
	status(statusUsage, "wrong usage"),
	status(statusUnavailable, "mounting is not possible here, or there is no git for a seal"),
	status(statusInternal, "internal error: a bug"),
	status(statusMachine, "a fault of the machine: disk full, I/O error, a limit, a file system that cannot do it"),
	status(statusInterrupted, "interrupted"),
}}

// helperExitStatus is that of the mount(8) helper.
var helperExitStatus = manpage.Part{Title: "EXIT STATUS", Rows: []manpage.Row{
	status(statusOK, "the view is ready; with --fake, it could be tried"),
	{Term: "other", Text: "that of \"spectrum mount\", which spectrum(1) lists"},
}}

func status(number int, text string) manpage.Row {
	return manpage.Row{Term: strconv.Itoa(number), Text: text}
}

var environment = manpage.Part{Title: "ENVIRONMENT", Rows: []manpage.Row{
	{Term: "SPECTRUM_PROJECT_ROOT", Text: "in place of --project-root; the flag wins"},
	{Term: "SPECTRUM_STATE_DIR", Text: "in place of --state-dir; the flag wins"},
	{Term: "XDG_STATE_HOME", Text: "the state directory is spectrum in it; else it is ~/.local/state/spectrum"},
	{Term: "HOME", Text: "where it is not set, at boot, it is what the password database says"},
	{Term: "NO_COLOR", Text: "when it is set, no colours on a terminal"},
	{Term: "SPECTRUM_PAGER, PAGER", Text: "the pager of diff on a terminal; when it is empty or cat there is none, when neither is set it is less"},
	{Term: "NOTIFY_SOCKET", Text: "where a mount in the foreground tells a service manager that the view is ready"},
}}

var files = manpage.Part{Title: "FILES", Rows: []manpage.Row{
	{Term: "~/.local/state/spectrum", Text: "the state directory: keys, previews, savepoints, snapshots, what is in quarantine, the audit log, view.log"},
	{Term: "/etc/spectrum/trusted.d, revoked.d", Text: "validators that are pinned, and those that are revoked, for the whole machine"},
	{Term: "/etc/spectrum/restricted.d", Text: "patterns of names that usually hold secrets, to add to the table or to take from it; those of a user are in the state directory"},
	{Term: "/etc/spectrum/INSTANCE.conf", Text: "what the unit spectrum-view@INSTANCE.service mounts: RUN=DIR and OPTIONS=-o LIST"},
	{Term: "/etc/fuse.conf", Text: "user_allow_other lets users other than root say --allow-other"},
}}
