package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/cancelable"
	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/internal/machine"
)

// Health is how a check came out. What scripts read is fixed.
type Health string

// How a check came out.
const (
	OK      Health = "ok"
	Warn    Health = "warn"    // it works, but not all of it, or less surely
	Fail    Health = "fail"    // something cannot be done
	Skipped Health = "skipped" // it was not tried
)

// A Check is one finding. Scripts identify it by its ID.
type Check struct {
	ID          string
	Path        string // what it is about; "" for the machine
	Status      Health
	Found       string
	Consequence string // "" when there is none
	Remedy      string // what to do about it: the next command, where there is one
	IsFeature   bool   // of a file system, and it is there
}

// fine is a check that came out well.
func fine(id, path, format string, args ...any) Check {
	return Check{ID: id, Path: path, Status: OK, Found: fmt.Sprintf(format, args...)}
}

// but returns a check that failed or warns.
func (c Check) but(status Health, consequence, remedy string) Check {
	c.Status, c.Consequence, c.Remedy = status, consequence, remedy
	return c
}

// Fields are a check in a result.
func (c *Check) Fields() map[string]any {
	return map[string]any{
		"consequence": words.OrNull(words.JSON(c.Consequence)), "found": words.JSON(c.Found), "id": c.ID,
		"path": words.OrNull(words.JSON(c.Path)), "remedy": words.OrNull(words.JSON(c.Remedy)), "status": string(c.Status),
	}
}

// A Section is a part of the machine, with what was found there.
type Section struct {
	Title    string
	Mounting bool // without it everything works but views
	Checks   []Check
}

// A Doctor looks at the machine.
type Doctor struct {
	StatePath func() (string, error) // the path of the state directory
	Patience  time.Duration          // how long each part of the machine has to answer

	sections []Section
}

// descriptors are more than the doctor ever has open at a time.
const descriptors = 24

// Run looks at the machine, the state directory, and the file system of each directory.
func (d *Doctor) Run(ctx context.Context, dirs []string) ([]Section, error) {
	if err := machine.CanOpen(descriptors); err != nil { // it would be taken for what is wrong with the rest
		return nil, fmt.Errorf("nothing can be looked at: %w", err)
	}
	d.examine(ctx, Section{Title: "this machine"}, func(context.Context) []Check { return kernelChecks() })
	d.examine(ctx, Section{Title: "mounting", Mounting: true}, func(ctx context.Context) []Check { return meansChecks(fusemount.FindMeans(ctx)) })
	d.examine(ctx, Section{Title: "views", Mounting: true}, viewChecks)
	if err := d.examineState(ctx); err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		if err := d.examineDir(ctx, dir, rootElsewhere); err != nil {
			return nil, err
		}
	}
	return d.sections, nil
}

// examine adds a section, and reports whether it was answered. If not, that is a failed check, and
// the waiting goroutine is left behind.
func (d *Doctor) examine(ctx context.Context, s Section, look func(context.Context) []Check) (answered bool) {
	ctx, cancel := context.WithTimeout(ctx, d.Patience)
	defer cancel()
	checks, err := cancelable.Do(ctx, func() ([]Check, error) { return look(ctx), nil })
	if err != nil {
		stuck := fine("answer", "", "it does not answer within %v", d.Patience)
		checks = []Check{stuck.but(Fail, "every command that needs it waits for it too", "find the disk, network or mount that hangs: \"findmnt\", \"dmesg\"")}
	}
	s.Checks = checks
	d.sections = append(d.sections, s)
	return err == nil
}
