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
	cmd.Flags().StringVar(&o.restoreRoot, "restore-root", "", "existing `directory` to restore under, as an absolute path")
	lockFlag(cmd, &o.wait)
	cmd.Flags().StringVar(&o.fromMount, "from-mount", "", "take the candidate that the view on this `mountpoint` shows")
	cmd.Flags().StringVar(&o.savepoint, "savepoint", "", "take the savepoint with this `ID` as the candidate: its own, that of its commit, or latest")
	addChain(cmd, &o.chain)
	cmd.Flags().StringVar(&o.html, "html", "", "write the preview as a web page to this `file` too, which must not exist")
	cmd.Flags().StringVar(&o.report, "report", "", "print the full report with its ten sections, also on a terminal; or, with =`FILE`, write it to this file, which must not exist")
	cmd.Flags().Lookup("report").NoOptDefVal = onStream
	cmd.Flags().StringVar(&o.agent, "agent", "", "`name` of the agent that goes on with what is restored (default: nobody is named)")
	cmd.Flags().StringSliceVar(&o.scopes, "scope", nil, "restore `scope` that is wanted, in place of the default ones; a list, or repeated (default: project_state,decisions,open_questions,next_actions)")
	cmd.Flags().BoolVar(&o.replace, "replace", false, "replace existing files that differ, and leave those as they are that are the same; a rollback brings them back")
	cmd.Flags().StringArrayVar(&o.decisions, "decide", nil, "decision on a conflict that a preview has shown, as `C-001=acknowledged`, =rejected or =resolved; for a file that is not what a change set started from, =replace or =keep; may be repeated")
}

// onStream is the value of --report without a file.
const onStream = "-"

// imperatives are the verdicts as the words of a statement.
var imperatives = map[string]string{
	"acknowledge": string(statement.Acknowledged), "reject": string(statement.Rejected), "resolve": string(statement.Resolved),
}

// decisions are what can be decided with --decide.
var decisions = append(statement.Verdicts(), preview.Replace, preview.Keep)

// asked is what the operator asks of the preview.
func (o *previewOptions) asked(cmd *cobra.Command) (preview.Asked, error) {
	asked := preview.Asked{Agent: o.agent, Replace: o.replace, Decisions: map[string]statement.Verdict{}}
	for _, word := range o.scopes {
		s, err := scope.Parse(word)
		if err != nil {
			return preview.Asked{}, usage(cmd, "--scope: %w", err)
		}
		asked.Scopes = append(asked.Scopes, s)
	}
	slices.SortFunc(asked.Scopes, scope.Compare)
	asked.Scopes = slices.Compact(asked.Scopes)
	for _, text := range o.decisions {
		id, verdict, ok := strings.Cut(text, "=")
		if _, double := asked.Decisions[id]; !ok || double {
			return preview.Asked{}, usage(cmd, "--decide %q is not one decision on one conflict", text)
		}
		if said, ok := imperatives[verdict]; ok { // as a statement says it
			verdict = said
		}
		if !slices.Contains(decisions, statement.Verdict(verdict)) {
			return preview.Asked{}, usage(cmd, "--decide %q: a conflict is acknowledged, rejected or resolved; one with a file that is not what a change set started from is replace or keep", text)
		}
		asked.Decisions[id] = statement.Verdict(verdict)
	}
	return asked, nil
}

func newPreview(app *app) *cobra.Command {
	var opts previewOptions
	cmd := &cobra.Command{
		Use:   "preview --restore-root DIR [--chain] RUN_DIR... | --from-mount MOUNTPOINT | --savepoint ID",
		Short: "show what a restore would do, and print the id of this preview",
		Long: `preview verifies the candidate, plans the restore, and shows the plan held
against the restore root: on a terminal a summary, elsewhere the full report, both
on stderr, and its id on stdout. The id is what "spectrum commit --preview ID"
takes. Nothing is restored; only what a killed commit has left in the restore root
is ended first. The full report is always kept in the state directory; the summary
names the file.

Identity layer, operator context and restricted context are proposed only when
--scope asks for them, the identity layer only with the --agent that the candidate
names. What --scope asks for takes the place of the default scopes.

With --savepoint the candidate is what a commit here has restored before, as its
savepoint says: the files are those in its restore root, and must be as they were
then. The key of this host, which signed it, needs no pin.

With --diff the lines of text files that change are shown before that, as "spectrum diff"
shows them, on stderr, and on a terminal in a pager.

With --replace existing files are replaced, and those that are the same stay as they
are; the report names each, and a rollback brings back what was replaced.

The exit status is 0 also for a candidate with conflicts, or one that is held in
quarantine: the report says so, and commit refuses it. So it is where a disk has no room
for the restore: that is said on stderr, in the report and on the page, with what is
needed and what is free; the JSON is the same whatever is free.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, runDirs []string) error {
			return runPreview(cmd, app, opts, runDirs)
		},
	}
	opts.flags(cmd)
	cmd.Flags().BoolVar(&opts.diff, "diff", false, "show the lines of text files that change too")
	opts.paged.addFlags(cmd)
	return cmd
}

func runPreview(cmd *cobra.Command, app *app, opts previewOptions, runDirs []string) error {
	if err := opts.check(cmd, runDirs); err != nil {
		return err
	}
	if opts.diff && app.json {
		return usage(cmd, "--diff is for people; \"spectrum diff --json\" has what differs")
	}
	if err := opts.paged.check(cmd); err != nil {
		return err
	}
	if err := opts.takeRoot(); err != nil {
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
		if err := a.showDiff(cmd, opts.paged, made.candidate.origin); err != nil {
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
	held, err := a.judge(ctx, state, s.preview, s.candidate)
	if err != nil {
		return shownPreview{}, err
	}
	p := s.preview.HeldBy(held)
	s.preview, s.held = p, held
	var report bytes.Buffer
	if err := p.WriteReport(&report); err != nil {
		return shownPreview{}, err
	}
	if err := state.SaveReport(p.ID(), report.Bytes()); err != nil {
		return shownPreview{}, fmt.Errorf("keeping the report: %w", err)
	}
	raw, err := keepPreview(state, p)
	if err != nil {
		return shownPreview{}, err
	}
	a.hasDone("preview %s was kept", p.ID()[:shortest])
	if err := s.files.write(ctx, p, report.Bytes(), a.approveLine(p)); err != nil {
		return shownPreview{}, err
	}
	switch {
	case s.opts.silent:
	case s.opts.report == onStream || s.opts.report == "" && !onTerminal(a.stderr):
		err = a.showReport(a.stderr, report.Bytes(), s.opts.paged)
	default:
		err = a.showSummary(ctx, state, s)
	}
	return shownPreview{p.ID(), p.Recommended(), raw, p.Source(), held, p, report.String()}, err
}

// judge marks a candidate with what the rules of quarantine have found, and
// returns what holds it.
func (a *app) judge(ctx context.Context, state *statedir.Dir, p *preview.Preview, c *candidate) ([]quarantine.Mark, error) {
	store, err := openQuarantine(state)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	held, changed, err := action.Judge(ctx, store, c.origin, p)
	if changed {
		a.hasDone("what holds the candidate in quarantine was noted")
	}
	return held, err
}

// check refuses what says too little or too much about the candidate.
func (o *previewOptions) check(cmd *cobra.Command, runDirs []string) error {
	switch {
	case o.fromMount != "" && (len(runDirs) > 0 || o.chain || cmd.Flags().Changed("project-root")):
		return usage(cmd, "--from-mount says already which run directories are meant")
	case o.savepoint != "" && (len(runDirs) > 0 || o.chain || o.fromMount != "" || cmd.Flags().Changed("project-root")):
		return usage(cmd, "--savepoint says already what is meant")
	case o.fromMount == "" && o.savepoint == "" && len(runDirs) == 0 && !o.chain:
		return usage(cmd, "no run directory was given")
	}
	return nil
}

// takeRoot takes the restore root from the view where none was given. It has to
// be known before the state directory is opened, which must not lie in it.
func (o *previewOptions) takeRoot() error {
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

// checkText refuses names that a preview cannot hold.
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
	r, err := examine(ctx, c, func() (*restore.Restore, error) {
		return forRoot(ctx, state, c, c.restore(bar))
	})
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
		c.warning = "a commit of this would fail: " + wordsOf(full)
	}
	request.Warning = c.warning
	p, err := preview.New(ctx, r, request)
	if errors.Is(err, preview.ErrQuarantined) || errors.Is(err, preview.ErrRevoked) {
		return nil, errors.Join(err, c.markUntrusted(ctx, state, r, request, err))
	}
	if errors.Is(err, preview.ErrDecision) {
		return nil, refusedHint(err, "conflicts have the numbers of the preview without this --decide")
	}
	return p, err
}

// markUntrusted marks a candidate that whom the operator trusts speaks against.
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
	return action.JudgeUntrusted(ctx, store, c.origin, preview.SourceID(r.Plan()), found)
}

// requestOf gathers what a preview has to know beside the restore; root is the real path of
// the restore root.
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
