// This file is law: what a change set may replace and remove.

package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// errChain is why the change set of a run in a chain cannot be used.
var errChain = errors.New("a change set has no form in a chain; restore each run alone")

// Changes returns the change set of the run; nil without one, or if it cannot be used, see
// [Run.ChangesFault].
func (r *Run) Changes() *bundle.Changes {
	if r.prefix != "" {
		return nil
	}
	c, _ := r.bundle.Changes()
	return c
}

// ChangesFault returns the reason why the change set of the run cannot be used: nothing of the
// run may then be restored.
func (r *Run) ChangesFault() error {
	c, err := r.bundle.Changes()
	if r.prefix != "" && (c != nil || err != nil) {
		return errChain
	}
	return err
}

// Perm returns the permission bits that a restore gives an output: the signed ones of a block table,
// else those of its source, but for the executable ones of a change set, which are signed.
func (r *Run) Perm(o verify.Output) fs.FileMode {
	return permOf(r.Changes(), o.Path().String(), o.Perm())
}

func permOf(c *bundle.Changes, path string, perm fs.FileMode) fs.FileMode {
	if c == nil {
		return perm
	}
	perm &^= 0o111
	if c.Executable(path) {
		perm |= (perm&0o444)>>2 | 0o100
	}
	return perm
}

// BlocksFault returns the reason why the block table of the run cannot be used, such as that an
// output is not what the table says: nothing of the run may then be restored.
func (r *Run) BlocksFault() error {
	_, err := r.bundle.Blocks()
	return err
}

// SignsModes reports whether the permission bits of the run's outputs are signed, by its block table.
func (r *Run) SignsModes() bool {
	table, _ := r.bundle.Blocks()
	return table != nil
}

// IsChangeSet reports whether the plan is that of a change set.
func (p *Plan) IsChangeSet() bool { return p.changes() != nil }

func (p *Plan) changes() *bundle.Changes {
	if len(p.runs) != 1 {
		return nil
	}
	return p.runs[0].Changes()
}

// Removes returns the paths that the plan removes, in ascending order.
func (p *Plan) Removes() []pathsafe.Path {
	if c := p.changes(); c != nil {
		return c.Removes()
	}
	return nil
}

// removals finds the entries at the paths that are removed. A missing entry is as required; a link
// on the way that leaves the root is a failure, as on the way to an output (8.4.5).
func (r *Restore) removals() error {
	s := survey{root: r.root}
	for _, path := range r.plan.Removes() {
		_, err := Standing(r.root, path)
		switch {
		case err == nil:
			r.conflicts = append(r.conflicts, Conflict{Path: path.String(), State: s.describe(path), removed: true})
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ENAMETOOLONG), errors.Is(err, pathsafe.ErrTooLong):
		case errors.Is(err, pathsafe.ErrCrossesMount):
			at := s.mountOn(path)
			r.conflicts = append(r.conflicts, Conflict{Path: path.String(), State: fmt.Sprintf("%q %v", at, pathsafe.ErrCrossesMount), mount: at, removed: true})
		case errors.Is(err, pathsafe.ErrEscape):
			return pathFailure(path.String(), err)
		case verify.IsMachineFault(err):
			return Internal(Preflight, err)
		default:
			r.conflicts = append(r.conflicts, Conflict{Path: path.String(), State: "it cannot be reached: " + err.Error(), removed: true})
		}
	}
	slices.SortStableFunc(r.conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	return nil
}

// holdAgainstBase finds what diverged: what is at a path is neither what the producer started from
// nor what the change set makes of it.
func (r *Restore) holdAgainstBase(outputs map[string]verify.Output) {
	c := r.plan.changes()
	if c == nil {
		return
	}
	for path, t := range r.targets {
		was, exists := c.Base(path)
		if isNew := t.Identical || t.ModeOnly; !IsResult(path) && !isNew && (!exists || was != t.Digest) {
			r.diverge(path, t.state)
		}
	}
	blocked := map[string]bool{}
	for _, conflict := range r.conflicts {
		blocked[conflict.Path] = true
	}
	for path := range outputs {
		if _, exists := c.Base(path); exists && r.targets[path] == nil && !blocked[path] {
			r.diverge(path, "nothing is there")
		}
	}
}

func (r *Restore) diverge(path, state string) {
	if r.diverged == nil {
		r.diverged = map[string]Divergence{}
	}
	r.diverged[path] = Divergence{Path: path, State: state}
}

// A Divergence is a path of a change set at which something else is than the producer started from.
type Divergence struct {
	Path      string
	State     string // what is there now, in words
	Overruled bool   // see [Restore.Overrule]
}

// Divergence returns the divergence at a path, if there is one.
func (r *Restore) Divergence(path string) (Divergence, bool) {
	d, is := r.diverged[path]
	return d, is
}

// Overrule notes that the operator has decided that a change set is restored at a path although what
// is there has diverged.
func (r *Restore) Overrule(path string) {
	if d, is := r.diverged[path]; is {
		d.Overruled = true
		r.diverged[path] = d
	}
}

// divergedFailure is the failure of a restore that would overwrite what has diverged; nil for none.
func (r *Restore) divergedFailure() error {
	var first *Divergence
	for _, d := range r.diverged {
		if !d.Overruled && (first == nil || d.Path < first.Path) {
			first = &d
		}
	}
	if first == nil {
		return nil
	}
	return Fail(TargetPathExists, first.Path, errors.New("it is not what the change set started from: "+first.State))
}

// IsResult reports whether a path beneath the restore root is that of a result artifact.
func IsResult(path string) bool { return path == ManifestName || path == ReportName }
