package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spf13/cobra"
)

func newDoctor(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor [DIR]...",
		Short: "say what this machine can and cannot do, and why",
		Long: `doctor looks at what spectrum needs of this machine: the kernel, the means to
mount, views whose server has died, the state directory, and the file system that
it is on. It looks at the file system of each DIR too; name your restore roots.
What is not well is said with what follows from it and with what to do.

A file system is tried in a directory ".spectrum-doctor-..." that is made in DIR
and removed again, under the lock that a commit takes. Nothing else is changed, and
no state directory is made. But the time of DIR changes by it: previews of a restore
root from before are stale afterwards. Where a commit is at work, or was killed,
nothing is tried.

The exit status is 0 when nothing fails, whatever is warned of; 69 when it is only
mounting that cannot be done here; 1 when something else fails.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			return (&doctor{app: app, patience: doctorPatience}).run(cmd.Context(), dirs)
		},
	}
}

// doctorPatience is how long each part of the machine has to answer. To make a file
// system durable takes its time where others write.
const doctorPatience = 30 * time.Second

// health is how a check came out. What scripts read is fixed.
type health string

const (
	isFine  health = "ok"
	isWarn  health = "warn"    // it works, but not all of it, or less surely
	isFail  health = "fail"    // something cannot be done
	skipped health = "skipped" // it was not tried
)

// A diagnosis is one thing that was looked at. What scripts know it by is its id.
type diagnosis struct {
	id          string
	path        string // what it is about; "" for the machine
	status      health
	found       string
	consequence string // "" when there is none
	remedy      string // what to do about it: the next command, where there is one
	isFeature   bool   // of a file system, and it is there
}

// fine is a check that came out well.
func fine(id, path, format string, args ...any) diagnosis {
	return diagnosis{id: id, path: path, status: isFine, found: fmt.Sprintf(format, args...)}
}

// but is a check that did not come out well.
func (c diagnosis) but(status health, consequence, remedy string) diagnosis {
	c.status, c.consequence, c.remedy = status, consequence, remedy
	return c
}

func (c *diagnosis) fields() map[string]any {
	return map[string]any{
		"consequence": orNull(jsonText(c.consequence)), "found": jsonText(c.found), "id": c.id,
		"path": orNull(jsonText(c.path)), "remedy": orNull(jsonText(c.remedy)), "status": string(c.status),
	}
}

// A section is a part of the machine, with what was found there.
type section struct {
	title    string
	mounting bool // without it everything works but views
	checks   []diagnosis
}

// doctor is one call of the command.
type doctor struct {
	*app
	patience time.Duration
	sections []section
}

// doctorDescriptors are more than the doctor ever has open at a time.
const doctorDescriptors = 24

func (d *doctor) run(ctx context.Context, dirs []string) error {
	if err := machine.CanOpen(doctorDescriptors); err != nil { // it would be taken for what is wrong with the rest
		return fmt.Errorf("nothing can be looked at: %w", err)
	}
	d.examine(ctx, section{title: "this machine"}, func(context.Context) []diagnosis { return kernelChecks() })
	d.examine(ctx, section{title: "mounting", mounting: true}, func(ctx context.Context) []diagnosis { return meansChecks(fusemount.FindMeans(ctx)) })
	d.examine(ctx, section{title: "views", mounting: true}, viewChecks)
	if err := d.examineState(ctx); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := d.examineDir(ctx, dir, rootElsewhere); err != nil {
			return err
		}
	}
	return d.report()
}

// examine adds a section, and says whether there was an answer. Where there is none
// that is a check that failed, and who waits for it is left behind.
func (d *doctor) examine(ctx context.Context, s section, look func(context.Context) []diagnosis) (answered bool) {
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	checks, err := unlessStuck(ctx, func() ([]diagnosis, error) { return look(ctx), nil })
	if err != nil {
		stuck := fine("answer", "", "it does not answer within %v", d.patience)
		checks = []diagnosis{stuck.but(isFail, "every command that needs it waits for it as well", "look into which disk, network or mount is stuck: \"findmnt\", \"dmesg\"")}
	}
	s.checks = checks
	d.sections = append(d.sections, s)
	return err == nil
}

// report prints what was found, and says whether it will do.
func (d *doctor) report() error {
	if !d.json {
		if err := d.text(strings.Join(d.lines(), "\n")); err != nil {
			return err
		}
	}
	if err := d.verdict(); err != nil {
		return err
	}
	if !d.json {
		return nil
	}
	return d.result("", map[string]any{"code": "OK", "details": d.details(), "ok": true})
}

// unfitError is a machine on which something fails.
type unfitError struct {
	failed  []diagnosis
	details map[string]any
	all     int
}

func (e *unfitError) Error() string {
	ids := make([]string, 0, len(e.failed))
	for _, c := range e.failed {
		ids = append(ids, c.id)
	}
	return fmt.Sprintf("%d of %d checks failed: %s", len(e.failed), e.all, strings.Join(ids, ", "))
}

// verdict is nil when nothing fails.
func (d *doctor) verdict() error {
	e := &unfitError{details: d.details()}
	onlyMounting := true
	for _, s := range d.sections {
		for _, c := range s.checks {
			e.all++
			if c.status == isFail {
				e.failed = append(e.failed, c)
				onlyMounting = onlyMounting && s.mounting
			}
		}
	}
	switch {
	case len(e.failed) == 0:
		return nil
	case onlyMounting:
		return fmt.Errorf("%w: %w", fusemount.ErrUnavailable, e)
	}
	return e.coded()
}

func (e *unfitError) coded() error {
	return &codedError{code: codeUnfit, details: e.details, err: e, hint: "mend what failed; \"spectrum doctor -v\" shows every check"}
}

func (d *doctor) details() map[string]any {
	all := []any{}
	for _, s := range d.sections {
		for _, c := range s.checks {
			all = append(all, c.fields())
		}
	}
	return map[string]any{"checks": all}
}

// lines are the report for people. Those who want quiet hear of what is not well.
func (d *doctor) lines() []string {
	var lines []string
	for _, s := range d.sections {
		if of := d.linesOf(s); len(of) > 0 {
			lines = append(append(lines, s.title+":"), of...)
		}
	}
	return lines
}

// linesOf are a section. What a file system has is one line unless all is wanted.
func (d *doctor) linesOf(s section) (lines []string) {
	features := 0
	for _, c := range s.checks {
		switch {
		case c.isFeature && !d.verbose:
			features++
		case !d.quiet || c.status != isFine:
			lines = append(lines, c.lines(d.verbose)...)
		}
	}
	if features > 0 && !d.quiet {
		all := fine("features", "", "%d of the features that are used are there; -v lists them", features)
		lines = append(lines, all.lines(false)...)
	}
	return lines
}

// lines are a check, and what follows from it unless all is well.
func (c *diagnosis) lines(verbose bool) []string {
	lines := []string{oneLine(fmt.Sprintf("  %-7s %-16s %s", c.status, c.id, c.found))}
	if c.status == isFine && !verbose {
		return lines
	}
	const indent = "                           "
	if c.consequence != "" {
		lines = append(lines, indent+oneLine(c.consequence))
	}
	if c.remedy != "" {
		lines = append(lines, indent+"hint: "+oneLine(c.remedy))
	}
	return lines
}
