package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/preview/report"
	"github.com/spectrumfs/spectrum/restore/privacy"
	"github.com/spectrumfs/spectrum/restore/quarantine"
	"github.com/spectrumfs/spectrum/restore/scope"
	"github.com/spectrumfs/spectrum/restore/statement"
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spf13/cobra"
)

type previewOptions struct {
	restoreRoot string
	chain       bool
	fromMount   string
	savepoint   string
	html        string
	report      string // a file, or onStream
	agent       string
	scopes      []string
	decisions   []string
	replace     bool
	diff        bool // the lines that change are shown too
	paged       paged
	silent      bool // nothing is to be shown
	asks        bool // the statement is asked for next
	reread      bool // the content of the candidate is read again
	wait        time.Duration
}

func (o *previewOptions) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.restoreRoot, "restore-root", "", "existing `directory` to restore to, as an absolute path; the same as RESTORE_ROOT")
	lockFlag(cmd, &o.wait)
	cmd.Flags().StringVar(&o.fromMount, "from-mount", "", "use the candidate that is mounted on this `mountpoint`")
	cmd.Flags().StringVar(&o.savepoint, "savepoint", "", "use the savepoint with this `ID` as the candidate: its own ID, that of its commit, or latest")
	addChain(cmd, &o.chain)
	cmd.Flags().StringVar(&o.html, "html", "", "also write the preview as a web page to this new `file`")
	cmd.Flags().StringVar(&o.report, "report", "", "print the full report, even on a terminal; with =`FILE`, write it to this new file")
	cmd.Flags().Lookup("report").NoOptDefVal = onStream
	cmd.Flags().StringVar(&o.agent, "agent", "", "`name` of the agent that will use the restored files (default: none)")
	cmd.Flags().StringSliceVar(&o.scopes, "scope", nil, "restore `scope` to propose, instead of the default ones; a list, or repeated (default: project_state,decisions,open_questions,next_actions)")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "replace existing files that differ; a rollback brings them back")
	cmd.Flags().StringArrayVar(&o.decisions, "decide", nil, "decide a conflict of the preview, as `C-001=acknowledged`, =rejected or =resolved, or =replace or =keep for a file that has diverged, also by its item (R-002=keep); may be repeated")
}

// onStream is the value of --report without a file.
const onStream = "-"

// imperatives are the verdicts as the words of a statement.
var imperatives = map[string]string{
	"acknowledge": string(statement.Acknowledged), "reject": string(statement.Rejected), "resolve": string(statement.Resolved),
}

// decisions are what can be decided with --decide.
var decisions = append(statement.Verdicts(), preview.Replace, preview.Keep)

// asked are the options of the preview.
func (o *previewOptions) asked(cmd *cobra.Command) (preview.Requested, error) {
	asked := preview.Requested{Agent: o.agent, Replace: o.replace, Decisions: map[string]statement.Verdict{}}
	for _, word := range o.scopes {
		s, err := scope.Parse(word)
		if err != nil {
			return preview.Requested{}, badScope(cmd, word, err)
		}
		asked.Scopes = append(asked.Scopes, s)
	}
	slices.SortFunc(asked.Scopes, scope.Compare)
	asked.Scopes = slices.Compact(asked.Scopes)
	for _, text := range o.decisions {
		id, verdict, err := decisionOf(cmd, text)
		if err != nil {
			return preview.Requested{}, err
		}
		if _, double := asked.Decisions[id]; double {
			return preview.Requested{}, usage(cmd, "--decide has several decisions on %s", id)
		}
		asked.Decisions[id] = verdict
	}
	return asked, nil
}

// badScope is the error of a word that is not a scope, with the one that may be meant.
func badScope(cmd *cobra.Command, word string, err error) error {
	use := &usageError{command: cmd.CommandPath(), err: fmt.Errorf("--scope: %w", err)}
	var names []string
	for _, s := range scope.All() {
		names = append(names, string(s))
		if len(use.meant) == 0 && slipsBetween(word, string(s)) <= nearest {
			use.meant = []string{"--scope " + string(s)}
		}
	}
	if len(use.meant) == 0 {
		use.next = "the scopes are " + strings.Join(names, ", ")
	}
	return use
}

func newPreview(app *app) *cobra.Command {
	var opts previewOptions
	cmd := &cobra.Command{
		Use:   "preview [--chain] RUN_DIR... RESTORE_ROOT | --from-mount MOUNTPOINT [RESTORE_ROOT] | --savepoint ID RESTORE_ROOT",
		Short: "show what a restore would do, and print the ID of the preview",
		Long: `preview verifies the candidate, compares it with the restore root, and shows what a
restore would do. It prints a summary on a terminal, otherwise the full report, both
on stderr, and the ID of the preview on stdout, for "spectrum commit --preview ID".
Nothing is restored; preview only ends a killed commit in the restore root first.
The full report is always kept in the state directory, in a file that the summary
names.

` + rootArgumentHelp + `
For one candidate of "spectrum run" or "seal --base" it is optional: the default is
the directory that the candidate was made from.

--scope replaces the default scopes. Identity layer, operator context and restricted
context are proposed only if --scope names them, and the identity layer only if
--agent names the agent of the candidate.

--savepoint previews the files of an earlier commit of this host. They are read from
the restore root of that commit and must be unchanged. The key of this host requires
no pin.

--diff first shows the changed lines of text files, as "spectrum diff" does, on
stderr, and on a terminal in a pager.

--replace replaces existing files that differ. The report names each one, and a
rollback brings them back. Identical files stay as they are.

The exit status is 0 even if there are conflicts, or the candidate is in quarantine,
or the disk has too little space: the report shows this, and commit rejects it. The JSON
does not depend on the free space.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, runDirs []string) error {
			return runPreview(cmd, app, opts, runDirs)
		},
	}
	opts.flags(cmd)
	cmd.Flags().BoolVar(&opts.diff, "diff", false, "also show the changed lines of text files")
	opts.paged.addFlags(cmd)
	return cmd
}

func runPreview(cmd *cobra.Command, app *app, opts previewOptions, args []string) error {
	runDirs, err := opts.takeRoot(cmd, app, args, true)
	if err != nil {
		return err
	}
	if err := opts.check(cmd, runDirs); err != nil {
		return err
	}
	if opts.diff && app.json {
		return usage(cmd, "--diff cannot be combined with --json; \"spectrum diff --json\" lists the differences")
	}
	if err := opts.paged.check(cmd); err != nil {
		return err
	}
	if err := opts.rootOfView(); err != nil {
		return err
	}
	opts.silent = app.quiet || app.json
	state, err := app.openStateApart(opts.restoreRoot)
	if err != nil {
		return err
	}
	defer state.Close()
	shown, err := app.showPreview(cmd, state, opts, runDirs)
	if err != nil {
		return err
	}
	app.tellHeld(shown)
	if app.json {
		return app.raw(shown.json)
	}
	return app.text(shown.id)
}

// shownPreview is a preview that was shown and kept.
type shownPreview struct {
	id          string
	recommended string // statement
	json        []byte
	source      string
	held        []quarantine.Mark // in quarantine, for these reasons
	preview     *preview.Preview
	report      string // the full one
}

// showPreview plans a restore, keeps its preview, and shows it.
func (a *app) showPreview(cmd *cobra.Command, state *statedir.Dir, opts previewOptions, runDirs []string) (shownPreview, error) {
	made, err := a.propose(cmd, state, opts, runDirs)
	if err != nil {
		return shownPreview{}, err
	}
	defer made.close()
	if opts.diff {
		if err := a.showDiff(cmd, opts.paged, &made); err != nil {
			return shownPreview{}, err
		}
	}
	shown, err := a.present(cmd.Context(), state, made.presented)
	if err == nil && made.candidate.warning != "" {
		a.tell("spectrum: %s", oneLine(made.candidate.warning))
	}
	return shown, err
}

// proposal is a preview that was made, with all that is open for it.
type proposal struct {
	presented
	in *action.Root // nil once it was left
}

// leave leaves the restore root, which can still be read.
func (p *proposal) leave() {
	if p.in != nil {
		p.in.Leave()
		p.in = nil
	}
}

// close closes all that is open.
func (p *proposal) close() {
	if p.restore != nil && !p.candidate.stuck {
		p.restore.Close()
	}
	p.leave()
	if p.candidate != nil {
		p.candidate.close()
	}
	p.files.close()
}

// propose plans a restore and makes its preview. The caller closes it.
func (a *app) propose(cmd *cobra.Command, state *statedir.Dir, opts previewOptions, runDirs []string) (made proposal, err error) {
	defer func() {
		if err != nil {
			made.close()
			made = proposal{}
		}
	}()
	made.opts = opts
	asked, err := opts.asked(cmd)
	if err != nil {
		return made, err
	}
	if made.files, err = opts.openFiles(state); err != nil {
		return made, err
	}
	if made.candidate, err = a.openProposed(cmd, state, opts, runDirs); err != nil {
		return made, err
	}
	c := made.candidate
	c.asked, c.reread = asked, opts.reread
	if err := checkText(c); err != nil {
		return made, err
	}
	if made.in, err = a.enterFor(cmd.Context(), state, c.origin.RestoreRoot, opts.wait); err != nil {
		return made, err
	}
	made.restore, made.preview, err = a.makePreview(cmd.Context(), state, c)
	for tries := 3; errors.Is(err, preview.ErrUnsettled) && tries > 0; tries-- { // a commit may be at work
		if err := made.in.Wait(cmd.Context()); err != nil {
			return made, err
		}
		made.restore, made.preview, err = a.makePreview(cmd.Context(), state, c)
	}
	if err == nil {
		c.asked = made.preview.Asked()
	}
	return made, err
}

// presented is a preview that is to be shown, with what it was made of.
type presented struct {
	preview   *preview.Preview
	restore   *restore.Restore
	candidate *candidate
	opts      previewOptions
	files     previewFiles
	held      []quarantine.Mark // what holds the candidate
}

// present keeps a preview and shows it: on a terminal its summary, elsewhere the full report.
func (a *app) present(ctx context.Context, state *statedir.Dir, s presented) (shownPreview, error) {
	held, err := a.assess(ctx, state, s.preview, s.candidate)
	if err != nil {
		return shownPreview{}, err
	}
	p := s.preview.HeldBy(held)
	s.preview, s.held = p, held
	var text bytes.Buffer
	if err := report.Of(p).WriteMarkdown(&text); err != nil {
		return shownPreview{}, err
	}
	if err := state.SaveReport(p.ID(), text.Bytes()); err != nil {
		return shownPreview{}, fmt.Errorf("keeping the report: %w", err)
	}
	raw, err := keepPreview(state, p)
	if err != nil {
		return shownPreview{}, err
	}
	a.hasDone("preview %s was kept", p.ID()[:shortest])
	if err := s.files.write(ctx, p, text.Bytes(), a.approveLine(p), freeFor(s.restore)); err != nil {
		return shownPreview{}, err
	}
	switch {
	case s.opts.silent:
	case s.opts.report == onStream || s.opts.report == "" && !onTerminal(a.stderr):
		err = a.showReport(a.stderr, text.Bytes(), s.opts.paged)
	default:
		err = a.showSummary(ctx, state, s)
	}
	return shownPreview{p.ID(), p.Recommended(), raw, p.Source(), held, p, text.String()}, err
}

// assess marks a candidate with what the rules of quarantine have found, and
// returns what holds it.
func (a *app) assess(ctx context.Context, state *statedir.Dir, p *preview.Preview, c *candidate) ([]quarantine.Mark, error) {
	store, err := openQuarantine(state)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	held, changed, err := action.Assess(ctx, store, c.origin, p)
	if changed {
		a.hasDone("the findings that hold the candidate in quarantine were recorded")
	}
	return held, err
}

// check rejects too few or too many arguments that name the candidate.
func (o *previewOptions) check(cmd *cobra.Command, runDirs []string) error {
	switch {
	case o.fromMount != "" && (len(runDirs) > 0 || o.chain || cmd.Flags().Changed("project-root")):
		return usage(cmd, "--from-mount already determines the run directories")
	case o.savepoint != "" && (len(runDirs) > 0 || o.chain || o.fromMount != "" || cmd.Flags().Changed("project-root")):
		return usage(cmd, "--savepoint names the candidate, so give no run directory, --chain, --from-mount or --project-root with it")
	case o.fromMount == "" && o.savepoint == "" && len(runDirs) == 0 && !o.chain:
		return withoutRuns(usage(cmd, "no run directory was given"))
	}
	return nil
}

// rootOfView takes the restore root from the view where none was given. It has to
// be known before the state directory is opened, which must not lie in it.
func (o *previewOptions) rootOfView() error {
	if o.fromMount == "" || o.restoreRoot != "" {
		return nil
	}
	_, record, err := readCandidate(o.fromMount)
	if err == nil && record.RestoreRoot != nil {
		o.restoreRoot = *record.RestoreRoot
	}
	return err
}

// keepPreview keeps a preview in the state directory, for its approval, and
// returns its decision block.
func keepPreview(state *statedir.Dir, p *preview.Preview) ([]byte, error) {
	record, err := p.Keep()
	if err != nil {
		return nil, err
	}
	if err := state.SavePreview(p.ID(), record); err != nil {
		return nil, fmt.Errorf("keeping the preview: %w", err)
	}
	return p.JSON()
}

// checkText rejects names that a preview cannot hold.
func checkText(c *candidate) error {
	o := c.origin
	if !utf8.ValidString(c.asked.Agent) {
		return refusedHint(fmt.Errorf("--agent %q is not UTF-8, so a preview cannot name it", c.asked.Agent), "name the agent in UTF-8")
	}
	paths := append([]string{o.ProjectRoot, o.RestoreRoot}, o.RunDirs...)
	if o.View != nil {
		paths = append(paths, o.View.Mountpoint)
	}
	for _, path := range paths {
		if !utf8.ValidString(path) {
			return refusedHint(fmt.Errorf("path %q is not UTF-8, so a preview cannot name it", path), "rename it, or reach it by another path")
		}
	}
	return nil
}

// makePreview runs PREFLIGHT and PLAN and makes the preview of what came out.
// The caller closes the restore.
func (a *app) makePreview(ctx context.Context, state *statedir.Dir, c *candidate) (*restore.Restore, *preview.Preview, error) {
	bar := a.newBar("verifying")
	defer bar.done()
	r, err := c.forRoot(ctx, state, bar)
	if err != nil {
		return nil, nil, c.savepointHint(err)
	}
	bar.begin("looking at the restore root", 0, 0)
	p, err := previewOf(ctx, state, c, r)
	if err != nil {
		r.Close()
		return nil, nil, err
	}
	return r, p, nil
}

func previewOf(ctx context.Context, state *statedir.Dir, c *candidate, r *restore.Restore) (*preview.Preview, error) {
	if err := c.isAsShown(r.Plan()); err != nil {
		return nil, err
	}
	root, err := r.Root().RealPath() // never from the path, which may lead elsewhere by now
	if errors.Is(err, pathsafe.ErrMoved) {
		err = fmt.Errorf("%w: %w", preview.ErrUnsettled, err)
	}
	if err != nil {
		return nil, err
	}
	request, err := requestOf(state, c, root)
	if err != nil {
		return nil, err
	}
	if full := action.Room(r, state.Root()); full != nil { // commit looks again, and fails then
		c.warning = "a commit of this preview would fail: " + wordsOf(full)
	}
	request.Warning = c.warning
	p, err := preview.New(ctx, r, request)
	if errors.Is(err, preview.ErrQuarantined) || errors.Is(err, preview.ErrRevoked) {
		return nil, hinted(errors.Join(err, c.markUntrusted(ctx, state, r, request, err)), unpinnedHint(c.unpinned))
	}
	return p, err
}

// markUntrusted marks a candidate that the trust policy rejects.
func (c *candidate) markUntrusted(ctx context.Context, state *statedir.Dir, r *restore.Restore, q preview.Request, why error) error {
	q.Asked.Decisions = nil // they are on conflicts of a preview that there is not
	found, err := preview.FindingsOf(ctx, r, q, why)
	if err != nil {
		return err
	}
	store, err := openQuarantine(state)
	if err != nil {
		return err
	}
	defer store.Close()
	return action.AssessUntrusted(ctx, store, c.origin, preview.SourceID(r.Plan()), found)
}

// requestOf collects what a preview needs beside the restore; root is the real path of the restore
// root.
func requestOf(state *statedir.Dir, c *candidate, root string) (preview.Request, error) {
	q := preview.Request{Origin: c.origin, Asked: c.asked, Now: time.Now()}
	var err error
	if q.Trust, err = c.trustIn(state); err != nil {
		return preview.Request{}, err
	}
	for kind, rules := range []*privacy.Rules{privacy.Secret: &q.Privacy, privacy.Automatic: &q.Automatic, privacy.Identity: &q.Followed} {
		if *rules, err = privacy.LoadKind(privacy.Kind(kind), state.Path(), trust.System); err != nil {
			return preview.Request{}, refusedHint(err, placeHint(err, "nothing can be previewed"))
		}
	}
	name, err := state.RootName(root)
	if err != nil {
		return preview.Request{}, err
	}
	if q.Attempts, err = state.Attempts(name); err != nil {
		return preview.Request{}, err
	}
	q.Current, err = activeSavepoint(state, name)
	return q, err
}
