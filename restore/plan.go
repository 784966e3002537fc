package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// The names of the two result artifacts (section 7.1).
const (
	ManifestName = "RESTORE_MANIFEST.json"
	ReportName   = "RESTORE_REPORT.json"
)

// Plan is what a candidate would put where. It can only be made from verified
// bundles, and it does not change. The view, the preview and the commit all
// read the same plan.
type Plan struct {
	chainRoot string // "" in single mode
	runs      []Run
}

// Run is one bundle's part of a plan.
type Run struct {
	bundle   *verify.Bundle
	prefix   string // "" in single mode, "run_id/" in a chain
	bytes    int64
	manifest string
	report   string
	perm     fs.FileMode // of both
}

// Runs yields the bundles' parts in chain order; one in single mode.
func (p *Plan) Runs() iter.Seq[*Run] {
	return func(yield func(*Run) bool) {
		for i := range p.runs {
			if !yield(&p.runs[i]) {
				return
			}
		}
	}
}

// IsChain reports whether the plan is a chain's.
func (p *Plan) IsChain() bool { return p.chainRoot != "" }

// ChainRoot is the chain root, or "" in single mode.
func (p *Plan) ChainRoot() string { return p.chainRoot }

// Files is the number of outputs; the result artifacts do not count.
func (p *Plan) Files() int {
	n := 0
	for _, r := range p.runs {
		n += r.bundle.Len()
	}
	return n
}

// Bytes is the sum of the outputs' sizes.
func (p *Plan) Bytes() int64 {
	var n int64
	for _, r := range p.runs {
		n += r.bytes
	}
	return n
}

// Bytes is the sum of the sizes of this bundle's outputs.
func (r *Run) Bytes() int64 { return r.bytes }

// Bundle is the verified bundle.
func (r *Run) Bundle() *verify.Bundle { return r.bundle }

// Target is where an output goes, or an artifact: its path beneath the restore
// root. Every path of a plan has passed the path rules.
func (r *Run) Target(path string) string { return r.prefix + path }

// Dir is the directory of a chain's run beneath the restore root, which the
// restore makes (section 6.3); "" in single mode.
func (r *Run) Dir() string { return strings.TrimSuffix(r.prefix, "/") }

// Artifact is a result artifact as it will be written, byte for byte.
type Artifact struct {
	Path string // beneath the restore root
	Data string
	// Perm are its permission bits, before the umask: it names every output, so only users who
	// may read all outputs can read it.
	Perm fs.FileMode
}

// Dir is a directory on the way to targets.
type Dir struct {
	Path string      // beneath the restore root; "" is that itself
	Perm fs.FileMode // what its source grants, at most
}

// Dirs lists the directories on the way to targets in ascending order of their paths,
// the restore root first. In a chain the source of the restore root is the project root,
// as is that of every run's own directory. What several sources are for is granted by
// all of them.
func (p *Plan) Dirs() []Dir {
	var all []Dir
	for i := range p.runs {
		r := &p.runs[i]
		all = appendDirs(all, r.prefix, r.bundle.Dirs())
	}
	return mergeDirs(all)
}

// appendDirs appends the directories of a run.
func appendDirs(all []Dir, prefix string, dirs iter.Seq2[string, fs.FileMode]) []Dir {
	for path, perm := range dirs {
		if path == "" && prefix != "" {
			all = append(all, Dir{"", perm})
			path = strings.TrimSuffix(prefix, "/")
		} else {
			path = prefix + path
		}
		all = append(all, Dir{path, perm})
	}
	return all
}

func mergeDirs(all []Dir) []Dir {
	slices.SortStableFunc(all, func(a, b Dir) int { return strings.Compare(a.Path, b.Path) })
	merged := all[:0]
	for _, d := range all {
		if n := len(merged); n > 0 && merged[n-1].Path == d.Path {
			merged[n-1].Perm &= d.Perm
			continue
		}
		merged = append(merged, d)
	}
	return merged
}

// Artifacts are the two result artifacts in the order in which they are put in
// place (sections 7.1 to 7.5).
func (r *Run) Artifacts() []Artifact {
	return []Artifact{
		{r.Target(ManifestName), r.manifest, r.perm},
		{r.Target(ReportName), r.report, r.perm},
	}
}

// ForView plans a candidate for a view, which has no restore root: section
// 8.4.4 does not apply, and of path safety only what concerns a path's form.
func ForView(ctx context.Context, c Candidate) (*Plan, error) {
	g, err := eligible(ctx, c, wholly)
	if err != nil {
		return nil, err
	}
	if err := checkForms(ctx, g); err != nil {
		return nil, err
	}
	p, err := newPlan(ctx, g)
	if err != nil {
		return nil, err
	}
	if err := p.checkReserved(); err != nil {
		return nil, err
	}
	return p, nil
}

// checkForms is what a view needs of path safety.
func checkForms(ctx context.Context, g gated) error {
	s := survey{}
	for i := range g.bundles {
		if err := s.bundle(ctx, g, i); err != nil {
			return err
		}
	}
	return nil
}

// newPlan is the phase PLAN (section 5.3), for all bundles in chain order.
func newPlan(ctx context.Context, g gated) (*Plan, error) {
	p := &Plan{chainRoot: g.chainRoot}
	for _, b := range g.bundles {
		bundle, ok := b.Bundle()
		if !ok {
			return nil, Internal(Planning, fmt.Errorf("run %q passed PREFLIGHT but was not verified", b.RunID()))
		}
		r := Run{bundle: bundle}
		if g.chain {
			r.prefix = b.RunID() + "/"
		}
		if err := r.checkSources(ctx); err != nil {
			return nil, nameRun(err, g, b.RunID())
		}
		p.runs = append(p.runs, r)
	}
	for i := range p.runs {
		if err := p.runs[i].makeArtifacts(g.chainRoot); err != nil {
			return nil, Internal(Planning, err)
		}
	}
	return p, nil
}

func nameRun(err error, g gated, runID string) error {
	var f *Failure
	if errors.As(err, &f) {
		return g.name(f, runID)
	}
	return Internal(Planning, err)
}

// checkSources is step 2.3: every source exists and is a regular file, in path
// order.
func (r *Run) checkSources(ctx context.Context) error {
	outputs := slices.Collect(r.bundle.Outputs())
	for _, o := range outputs {
		r.bytes += o.Size()
	}
	newOpener := func() *pathsafe.Opener { return new(pathsafe.Opener) }
	return inorder.Each(ctx, 0, len(outputs), newOpener, func(near *pathsafe.Opener, i int) error {
		return checkSource(near, outputs[i])
	})
}

// checkSource checks one source.
func checkSource(near *pathsafe.Opener, o verify.Output) error {
	st, err := o.LstatNear(near)
	name := o.Path().String()
	switch {
	case errors.Is(err, pathsafe.ErrSymlink):
		return Fail(SourceNotRegularFile, name, err)
	case errors.Is(err, fs.ErrNotExist):
		return Fail(SourceMissing, name, err)
	case err != nil:
		return err
	case !st.Mode.IsRegular():
		return Fail(SourceNotRegularFile, name, errors.New("the source is not a regular file"))
	}
	return nil
}

// checkReserved rejects an output at a name that is reserved for the restore. It is a failure
// of the phase VERIFY that is known before anything is written.
func (p *Plan) checkReserved() error {
	for i := range p.runs {
		r := &p.runs[i]
		f := r.checkReserved()
		if f != nil && p.IsChain() {
			f = f.in(r.bundle.RunID())
		}
		if f != nil {
			return f
		}
	}
	return nil
}

func (r *Run) checkReserved() *Failure {
	for o := range r.bundle.Outputs() {
		if f := reservedOutput(r.prefix, o.Path()); f != nil {
			return f
		}
	}
	return nil
}

func reservedOutput(prefix string, path pathsafe.Path) *Failure {
	if bundle.Reserved(path) || strings.HasPrefix(prefix, bundle.ReservedPrefix) {
		return Fail(ResultArtifactWriteFailed, prefix+path.String(), errors.New("this name is reserved for the restore"))
	}
	return nil
}
