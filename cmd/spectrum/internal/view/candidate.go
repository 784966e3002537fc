package view

import (
	"iter"
	"runtime/debug"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
)

// A Candidate is a view of one candidate: what a restore of it would put under the restore
// root.
type Candidate struct{ status *status }

// NewCandidate returns a view that is not mounted yet.
func NewCandidate(marks Marks) *Candidate { return &Candidate{newStatus(marks)} }

// ID is what the view is known by from its beginning.
func (c *Candidate) ID() string { return c.status.id }

// Shown is what a view of one candidate shows: a plan, or what is checked as it is read.
type Shown struct {
	Origin  preview.Origin
	Plan    *restore.Plan
	Lazy    *Lazy       // in place of a plan
	Report  string      // of the preview; "" for none
	Changes fusefs.Made // the patch from the restore root to the candidate; nil for none
}

func (s *Shown) scene() (*Scene, iter.Seq[fusefs.File]) {
	if s.Lazy != nil {
		return s.Lazy.scene, s.Lazy.Files()
	}
	return SceneOf(s.Plan), Files(s.Plan)
}

// Mount mounts the view of a candidate.
func (c *Candidate) Mount(s Shown, mountpoint string, opts fusemount.Options) (*fusemount.View, error) {
	scene, files := s.scene()
	roots := scene.BundleRoots()
	c.status.shown, c.status.lazy = func() []string { return roots }, s.Lazy
	perm := scene.privatePerm()
	control := append(candidateFiles(s.Origin, scene, s.Lazy != nil, c.status.since, grantedAbove),
		c.status.file(perm), heldFile(shownFile, string(c.status.shownJSON()), perm, c.status.since))
	if s.Report != "" {
		control = append(control, heldFile(previewFile, s.Report, perm, c.status.since))
	}
	if s.Changes != nil {
		control = append(control, fusefs.File{Path: changesFile, Mode: changesPerm, Source: s.Changes})
	}
	tree, err := treeOf(scene, files, control)
	if err != nil {
		return nil, err
	}
	c.status.watch(&opts)
	view, err := fusemount.Mount(tree, mountpoint, opts)
	go debug.FreeOSMemory() // verifying a million files takes more than keeping their tree does
	return view, err
}
