package view

import (
	"runtime/debug"

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

// Mount mounts the view of a plan. The report is that of its preview, "" for none.
func (c *Candidate) Mount(o preview.Origin, plan *restore.Plan, report, mountpoint string, opts fusemount.Options) (*fusemount.View, error) {
	roots := BundleRoots(plan)
	c.status.shown = func() []string { return roots }
	perm := privatePerm(plan)
	control := append(candidateFiles(o, plan, c.status.since, grantedAbove),
		c.status.file(perm), heldFile(shownFile, string(c.status.shownJSON()), perm, c.status.since))
	if report != "" {
		control = append(control, heldFile(previewFile, report, perm, c.status.since))
	}
	tree, err := treeOf(plan, control)
	if err != nil {
		return nil, err
	}
	c.status.watch(&opts)
	view, err := fusemount.Mount(tree, mountpoint, opts)
	go debug.FreeOSMemory() // verifying a million files takes more than keeping their tree does
	return view, err
}
