package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// ErrBlockTable means that the signed block table of a run cannot be used, so its outputs cannot
// be checked block by block.
var ErrBlockTable = errors.New("the block table cannot be used")

// Attested is what a candidate would put where, by its signatures alone: no output was read. A view
// of it checks each block when it is read. It is no [Plan], so it can be neither previewed nor
// committed. Only [ForLazyView] makes one.
type Attested struct {
	chainRoot string // "" in single mode
	runs      []AttestedRun
}

// AttestedRun is one bundle's part of it.
type AttestedRun struct {
	bundle   *verify.Attested
	prefix   string // "" in single mode, "run_id/" in a chain
	manifest string
	report   string
	perm     fs.FileMode // of both
}

// ForLazyView is [ForView] without reading outputs: phase 9 of SPECTRUM-05 and step 2.3 do not
// apply. A block table that cannot be used is [ErrBlockTable].
func ForLazyView(ctx context.Context, c Candidate) (*Attested, error) {
	g, err := eligible(ctx, c, attesting)
	if err != nil {
		return nil, err
	}
	if err := checkForms(ctx, g); err != nil {
		return nil, err
	}
	a := &Attested{chainRoot: g.chainRoot}
	for _, b := range g.bundles {
		attested, ok := b.Attested()
		if !ok {
			return nil, Internal(Planning, fmt.Errorf("run %q passed PREFLIGHT but was not verified", b.RunID()))
		}
		if _, err := attested.Blocks(); err != nil {
			return nil, fmt.Errorf("run %q: %w: %w", b.RunID(), ErrBlockTable, err)
		}
		r := AttestedRun{bundle: attested}
		if g.chain {
			r.prefix = b.RunID() + "/"
		}
		for o := range attested.Outputs() {
			if f := reservedOutput(r.prefix, o.Path()); f != nil {
				return nil, g.name(f, b.RunID())
			}
		}
		a.runs = append(a.runs, r)
	}
	for i := range a.runs {
		if err := a.runs[i].makeArtifacts(g.chainRoot); err != nil {
			return nil, Internal(Planning, err)
		}
	}
	return a, nil
}

// makeArtifacts makes both result artifacts of a run whose sizes are signed.
func (r *AttestedRun) makeArtifacts(chainRoot string) (err error) {
	table, _ := r.bundle.Blocks()
	if table == nil {
		return nil
	}
	r.manifest, r.report, err = artifactsOf(r.bundle.Root(), chainRoot, func(yield func(entry) bool) {
		for o := range r.bundle.Outputs() {
			if !yield(entry{o.Name(), table.Attributes(o.Number()).Size, o.Digest()}) {
				return
			}
		}
	})
	perm := fs.FileMode(0o644)
	for o := range r.bundle.Outputs() {
		perm &= r.Perm(o.Name(), table.Attributes(o.Number()).Perm)
	}
	r.perm = listedPerm(perm, r.bundle.Dirs())
	return err
}

// Runs yields the bundles' parts in chain order; one in single mode.
func (a *Attested) Runs() iter.Seq[*AttestedRun] {
	return func(yield func(*AttestedRun) bool) {
		for i := range a.runs {
			if !yield(&a.runs[i]) {
				return
			}
		}
	}
}

// IsChain reports whether the candidate is a chain.
func (a *Attested) IsChain() bool { return a.chainRoot != "" }

// ChainRoot is the chain root, or "" in single mode.
func (a *Attested) ChainRoot() string { return a.chainRoot }

// Files is the number of outputs; the result artifacts do not count.
func (a *Attested) Files() int {
	n := 0
	for i := range a.runs {
		n += a.runs[i].bundle.Len()
	}
	return n
}

// Dirs lists the directories on the way to targets, as [Plan.Dirs] does.
func (a *Attested) Dirs() []Dir {
	var all []Dir
	for i := range a.runs {
		all = appendDirs(all, a.runs[i].prefix, a.runs[i].bundle.Dirs())
	}
	return mergeDirs(all)
}

// IsChangeSet reports whether the candidate is a change set.
func (a *Attested) IsChangeSet() bool { return len(a.runs) == 1 && a.runs[0].Changes() != nil }

// Removes returns the paths that a restore removes, in ascending order.
func (a *Attested) Removes() []pathsafe.Path {
	if !a.IsChangeSet() {
		return nil
	}
	return a.runs[0].Changes().Removes()
}

// Bundle is the attested bundle.
func (r *AttestedRun) Bundle() *verify.Attested { return r.bundle }

// Target is where an output goes, or an artifact: its path beneath the restore root.
func (r *AttestedRun) Target(path string) string { return r.prefix + path }

// Dir is the directory of a chain's run beneath the restore root; "" in single mode.
func (r *AttestedRun) Dir() string { return strings.TrimSuffix(r.prefix, "/") }

// Changes returns the change set of the run, as [Run.Changes] does.
func (r *AttestedRun) Changes() *bundle.Changes {
	if r.prefix != "" {
		return nil
	}
	c, _ := r.bundle.Changes()
	return c
}

// Perm returns the permission bits that a restore gives an output that has these, as [Run.Perm]
// does.
func (r *AttestedRun) Perm(path string, perm fs.FileMode) fs.FileMode {
	return permOf(r.Changes(), path, perm)
}

// Artifacts are the two result artifacts, as [Run.Artifacts]; none if the sizes are not signed.
func (r *AttestedRun) Artifacts() []Artifact {
	if r.manifest == "" {
		return nil
	}
	return []Artifact{
		{r.Target(ManifestName), r.manifest, r.perm},
		{r.Target(ReportName), r.report, r.perm},
	}
}
