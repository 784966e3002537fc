package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/doctor"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spf13/cobra"
)

func newDoctor(app *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor [DIR]...",
		Short: "check this machine: kernel, mounting, file systems, state directory",
		Long: `doctor checks what spectrum requires of this machine: the kernel, mounting, views
whose server has died, the state directory and its file system. Give it your
restore roots as DIR to check their file systems too. For each problem it prints
the consequence and the fix.

To test a file system, doctor makes a directory ".spectrum-doctor-..." in DIR and
removes it again, under the same lock that a commit takes. It changes nothing else
and makes no state directory. It does not test a DIR in which a commit is running
or was killed.

The exit status is 0 if no check fails (warnings do not count), 69 if only mounting
is impossible, and 1 if another check fails.`,
		Args: atLeast(0),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			sections, err := (&doctor.Doctor{StatePath: app.statePath, Patience: doctorPatience}).Run(cmd.Context(), dirs)
			if err != nil {
				return err
			}
			config := doctor.Section{Title: "defaults of flags", Checks: configChecks(app.config)}
			sections = slices.Insert(sections, min(3, len(sections)), config) // before the state directory, which it may set
			return (&examined{app, sections}).report()
		},
	}
}

// configChecks list the config files in force and their mistakes. The doctor itself uses only the
// valid keys.
func configChecks(files []config) []doctor.Check {
	const id = "config"
	var checks []doctor.Check
	for _, c := range files {
		for _, wrong := range c.wrongs {
			checks = append(checks, doctor.Check{
				ID: id, Path: c.file, Status: doctor.Fail, Found: wrong.Error(),
				Consequence: "every other command that reads the config files fails; " + configVariable + "= before the command ignores the files",
				Remedy:      (&badConfig{err: wrong}).hints()[0],
			})
		}
		if c.isThere && len(c.wrongs) == 0 {
			found := fmt.Sprintf("%q is used, and sets nothing", c.file)
			if len(c.keys) > 0 {
				found = fmt.Sprintf("%q is in force: %s", c.file, strings.Join(c.keys, ", "))
			}
			checks = append(checks, doctor.Check{ID: id, Path: c.file, Status: doctor.OK, Found: found})
		}
	}
	if len(checks) == 0 {
		found := "there is no config file"
		if only, isSet := os.LookupEnv(configVariable); isSet && only == "" {
			found = configVariable + " is set and empty: no config file is read"
		}
		checks = append(checks, doctor.Check{ID: id, Status: doctor.OK, Found: found})
	}
	return checks
}

// doctorPatience is how long each part of the machine may take to answer. A sync of a file system
// is slow while other processes write.
const doctorPatience = 30 * time.Second

// examined is a machine with what was found there.
type examined struct {
	*app
	sections []doctor.Section
}

// report prints the findings, and reports whether the machine is fit.
func (d *examined) report() error {
	if !d.json {
		if err := d.text(d.here(strings.Join(d.lines(), "\n"))); err != nil {
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
	failed       []doctor.Check
	details      map[string]any
	all          int
	onlyMounting bool
}

func (e *unfitError) Error() string {
	ids := make([]string, 0, len(e.failed))
	for _, c := range e.failed {
		ids = append(ids, c.ID)
	}
	return fmt.Sprintf("%s failed: %s", words.Of(len(e.failed), e.all, "check"), strings.Join(ids, ", "))
}

// verdict is nil when nothing fails.
func (d *examined) verdict() error {
	e := &unfitError{details: d.details(), onlyMounting: true}
	for _, s := range d.sections {
		for _, c := range s.Checks {
			e.all++
			if c.Status == doctor.Fail {
				e.failed = append(e.failed, c)
				e.onlyMounting = e.onlyMounting && s.Mounting
			}
		}
	}
	switch {
	case len(e.failed) == 0:
		return nil
	case e.onlyMounting:
		return fmt.Errorf("%w: %w", fusemount.ErrUnavailable, e)
	}
	return e
}

func (d *examined) details() map[string]any {
	all := []any{}
	for _, s := range d.sections {
		for _, c := range s.Checks {
			all = append(all, c.Fields())
		}
	}
	return map[string]any{"checks": all}
}

// lines returns the report as text. With --quiet it has only the problems.
func (d *examined) lines() []string {
	var lines []string
	for _, s := range d.sections {
		if of := d.linesOf(s); len(of) > 0 {
			lines = append(append(lines, s.Title+":"), of...)
		}
	}
	return lines
}

// linesOf returns a section. The features of a file system are one line unless all are requested.
func (d *examined) linesOf(s doctor.Section) (lines []string) {
	features := 0
	for _, c := range s.Checks {
		switch {
		case c.IsFeature && !d.verbose:
			features++
		case !d.quiet || c.Status != doctor.OK:
			lines = append(lines, checkLines(&c, d.verbose)...)
		}
	}
	if features > 0 && !d.quiet {
		lines = append(lines, checkLines(&doctor.Check{ID: "features", Status: doctor.OK, Found: fmt.Sprintf("%d required features are present; -v lists them", features)}, false)...)
	}
	return lines
}

// checkLines are a check, and what follows from it unless all is well.
func checkLines(c *doctor.Check, verbose bool) []string {
	lines := []string{oneLine(fmt.Sprintf("  %-7s %-16s %s", c.Status, c.ID, c.Found))}
	if c.Status == doctor.OK && !verbose {
		return lines
	}
	const indent = "                           "
	if c.Consequence != "" {
		lines = append(lines, indent+oneLine(c.Consequence))
	}
	if c.Remedy != "" {
		lines = append(lines, indent+"hint: "+oneLine(c.Remedy))
	}
	return lines
}
