package restore

import (
	"context"
	"crypto/sha256"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Restore is a plan compared with a restore root: everything up to and
// including the phase PLAN has passed, and nothing has been written.
type Restore struct {
	plan      *Plan
	root      *pathsafe.Dir
	conflicts []Conflict
	replaces  bool               // see ForRootReplacing
	targets   map[string]*Target // by their paths
	diverged  map[string]Divergence
}

// ForRoot runs PREFLIGHT and PLAN (sections 5.2, 5.3 and 6.4) for a restore
// root: single runs in the order of section 5, chains in that of section 6. The error is a [*Failure]. The
// caller closes the Restore. Of a change set it finds out what is replaced and removed, as
// [ForRootOwning] does for a root in which nothing was committed before.
func ForRoot(ctx context.Context, c Candidate, restoreRoot string) (*Restore, error) {
	return ForRootOwning(ctx, c, restoreRoot, func(*pathsafe.Dir) (map[string][sha256.Size]byte, error) { return nil, nil })
}

func forRoot(ctx context.Context, c Candidate, restoreRoot string) (*Restore, error) {
	g, err := eligible(ctx, c, wholly)
	if err != nil {
		return nil, err
	}
	root, err := openRoot(restoreRoot)
	if err != nil {
		return nil, err
	}
	r := &Restore{root: root}
	if err := r.prepare(ctx, g); err != nil {
		root.Close()
		return nil, err
	}
	return r, nil
}

// prepare is what follows once the restore root is known to be good.
func (r *Restore) prepare(ctx context.Context, g gated) error {
	if err := checkRunDirs(r.root, g); err != nil {
		return err
	}
	s := survey{root: r.root}
	for i := range g.bundles {
		if err := s.bundle(ctx, g, i); err != nil {
			return err
		}
	}
	plan, err := newPlan(ctx, g)
	if err != nil {
		return err
	}
	if err := s.artifacts(g); err != nil {
		return err
	}
	r.plan, r.conflicts = plan, s.conflicts
	if err := r.removals(); err != nil {
		return err
	}
	return r.reserved()
}

// reserved rejects outputs at reserved names. An existing target is the earlier failure
// (section 8.4.1).
func (r *Restore) reserved() error {
	err := r.plan.checkReserved()
	if blocked := r.Blocked(); err != nil && blocked != nil {
		return blocked
	}
	return err
}

// Plan is what would be put where.
func (r *Restore) Plan() *Plan { return r.plan }

// Root is the handle of the restore root. It belongs to the Restore.
func (r *Restore) Root() *pathsafe.Dir { return r.root }

// Conflicts are the targets that exist or cannot be reached, in path order.
func (r *Restore) Conflicts() []Conflict { return slices.Clone(r.conflicts) }

// Blocked returns the failure that EXECUTE begins with while there are conflicts: the first
// existing target, otherwise the first that cannot be moved to, otherwise the first that has
// diverged and was not overruled. It is a nil error if there are none.
func (r *Restore) Blocked() error {
	for _, c := range r.conflicts {
		if c.mount == "" {
			return c.Failure()
		}
	}
	if len(r.conflicts) > 0 {
		return r.conflicts[0].Failure()
	}
	return r.divergedFailure()
}

// Close closes the restore root.
func (r *Restore) Close() error { return r.root.Close() }
