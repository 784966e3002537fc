package view

import (
	"io/fs"
	"iter"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Signed is a bundle whose signature was verified: a [verify.Bundle], or a [verify.Attested].
type Signed interface {
	RunID() string
	TaskID() string
	Root() string
	ValidatorID() string
	TaskSpec() canonjson.Object
	Len() int
	Granted() fs.FileMode
	Artifacts() iter.Seq[verify.Artifact]
	ArtifactsIntact() error
	Completed() time.Time
	Blocks() (*blocktable.Table, error)
}

// Scene is what a view shows of a candidate, whether its outputs were read before or not.
type Scene struct {
	parts       []Part
	chainRoot   string // "" in single mode
	dirs        []restore.Dir
	removes     []pathsafe.Path
	isChangeSet bool
}

// Part is one run of a scene.
type Part struct {
	Bundle    Signed
	Changes   *bundle.Changes    // nil for none
	Bytes     *int64             // of its outputs; nil if not known
	Artifacts []restore.Artifact // none if the sizes of its outputs are not known
	Target    func(path string) string
	Paths     iter.Seq[string] // of its outputs
}

// SceneOf returns what a view of a plan shows.
func SceneOf(plan *restore.Plan) *Scene {
	s := &Scene{chainRoot: plan.ChainRoot(), dirs: plan.Dirs(), removes: plan.Removes(), isChangeSet: plan.IsChangeSet()}
	for run := range plan.Runs() {
		bytes := run.Bytes()
		s.parts = append(s.parts, Part{run.Bundle(), run.Changes(), &bytes, run.Artifacts(), run.Target, func(yield func(string) bool) {
			for o := range run.Bundle().Outputs() {
				if !yield(o.Path().String()) {
					return
				}
			}
		}})
	}
	return s
}

// LazySceneOf returns what a view shows of a candidate whose outputs were not read.
func LazySceneOf(a *restore.Attested) *Scene {
	s := &Scene{chainRoot: a.ChainRoot(), dirs: a.Dirs(), removes: a.Removes(), isChangeSet: a.IsChangeSet()}
	for run := range a.Runs() {
		part := Part{run.Bundle(), run.Changes(), nil, run.Artifacts(), run.Target, func(yield func(string) bool) {
			for o := range run.Bundle().Outputs() {
				if !yield(o.Name()) {
					return
				}
			}
		}}
		if table, _ := run.Bundle().Blocks(); table != nil {
			bytes := table.Size()
			part.Bytes = &bytes
		}
		s.parts = append(s.parts, part)
	}
	return s
}

// Parts are the runs in chain order.
func (s *Scene) Parts() []Part { return s.parts }

// Bundles yields their bundles.
func (s *Scene) Bundles() iter.Seq[Signed] {
	return func(yield func(Signed) bool) {
		for _, p := range s.parts {
			if !yield(p.Bundle) {
				return
			}
		}
	}
}

// IsChain reports whether the candidate is a chain.
func (s *Scene) IsChain() bool { return s.chainRoot != "" }

// ChainRoot is the chain root, or "" in single mode.
func (s *Scene) ChainRoot() string { return s.chainRoot }

// SourceID identifies the candidate: the chain root, or the bundle root.
func (s *Scene) SourceID() string {
	if s.IsChain() || len(s.parts) == 0 {
		return s.chainRoot
	}
	return s.parts[0].Bundle.Root()
}

// BundleRoots are those of the bundles, in chain order.
func (s *Scene) BundleRoots() (roots []string) {
	for b := range s.Bundles() {
		roots = append(roots, b.Root())
	}
	return roots
}

// Files is the number of outputs; the result artifacts do not count.
func (s *Scene) Files() int {
	n := 0
	for b := range s.Bundles() {
		n += b.Len()
	}
	return n
}

// Bytes are those of the outputs; nil if the sizes are not all signed.
func (s *Scene) Bytes() *int64 {
	var all int64
	for _, p := range s.parts {
		if p.Bytes == nil {
			return nil
		}
		all += *p.Bytes
	}
	return &all
}

// Removes returns the paths that a restore removes, in ascending order.
func (s *Scene) Removes() []pathsafe.Path { return s.removes }

// IsChangeSet reports whether the candidate is a change set.
func (s *Scene) IsChangeSet() bool { return s.isChangeSet }

// Scoped is what decides the scopes of the outputs.
func (s *Scene) Scoped() (runs []preview.Scoped) {
	for _, p := range s.parts {
		runs = append(runs, preview.Scoped{TaskSpec: p.Bundle.TaskSpec(), Outputs: func(yield func(target, path string) bool) {
			for path := range p.Paths {
				if !yield(p.Target(path), path) {
					return
				}
			}
		}})
	}
	return runs
}

// privatePerm is the mode of a file that the view makes about everything that it shows: only for
// users that may read every output. Of outputs without a signed mode that is not known: then it is
// for the user of the view alone.
func (s *Scene) privatePerm() fs.FileMode {
	perm := fs.FileMode(0o444)
	for _, p := range s.parts {
		for _, a := range p.Artifacts {
			perm &= a.Perm
		}
		if len(p.Artifacts) == 0 {
			perm = 0
		}
	}
	return perm&^umask() | 0o400
}
