package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
)

var (
	// errTampered: a view has found that its sources are not what was verified.
	errTampered = errors.New("the view found tampering: nothing that it shows may be committed")

	// errNotShown reports that the view does not show the previewed candidate any more.
	errNotShown = errors.New("the view that was reviewed is gone")
)

// openMounted opens the candidate that a view shows. It asks the view for its identity and
// findings, and verifies the candidate again.
func (a *app) openMounted(ctx context.Context, mountpoint, restoreRoot string) (*candidate, error) {
	path, record, err := readCandidate(mountpoint)
	if err != nil {
		return nil, err
	}
	if record.Attested {
		next := []string{"spectrum", "preview", "--restore-root", "DIR"}
		for _, dir := range record.RunDirs {
			next = append(next, shellQuote(dir))
		}
		return nil, refusedHint(fmt.Errorf("the view on %q is lazy: not all of it was read, so nothing can be approved from it", path), "to read everything: "+strings.Join(next, " "))
	}
	status, err := view.ReadStatus(path)
	if err != nil {
		return nil, err
	}
	if err := untampered(&status, path); err != nil {
		return nil, err
	}
	c, err := a.reopen(ctx, preview.Origin{
		ProjectRoot: record.ProjectRoot, RunDirs: record.RunDirs, Chain: record.Chain, RestoreRoot: restoreRoot,
		View: &preview.View{Mountpoint: path, ID: status.ViewID},
	})
	if err != nil {
		return nil, err
	}
	for _, run := range record.Runs {
		c.shown = append(c.shown, run.BundleRoot)
	}
	return c, nil
}

// readCandidate asks a view for its candidate, and returns the real path of the view.
func readCandidate(mountpoint string) (path string, record view.CandidateRecord, err error) {
	if path, err = ownView(mountpoint); err != nil {
		return "", view.CandidateRecord{}, err
	}
	record, err = view.ReadCandidate(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = refusedHint(fmt.Errorf("the view on %q does not show exactly one candidate", path), "name run directories instead")
	}
	if err != nil {
		return "", view.CandidateRecord{}, err
	}
	return path, record, nil
}

// ownView returns the real path of a live view that this user, or root, has mounted. Servers of
// other users are not trusted.
func ownView(mountpoint string) (string, error) {
	path, err := fusemount.FindView(mountpoint)
	if err != nil {
		return "", refusedHint(err, viewHint(err))
	}
	return path, nil
}

// untampered is [errTampered] if the view on a path has findings.
func untampered(s *view.StatusRecord, path string) error {
	if s.Tampered {
		return fmt.Errorf("view on %q: %w", path, errTampered)
	}
	return nil
}

// checkShown makes sure that a view on which a preview rests is still there and
// has found nothing.
func checkShown(looked *preview.View) error {
	if looked == nil {
		return nil
	}
	var status view.StatusRecord
	path, err := fusemount.FindView(looked.Mountpoint)
	if err == nil {
		status, err = view.ReadStatus(path)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotShown, err)
	}
	if status.ViewID != looked.ID { // checked first: findings of another view do not count
		return fmt.Errorf("%w: another one is mounted on %q", errNotShown, path)
	}
	return untampered(&status, path)
}

// isAsShown makes sure that what was planned is what the view shows.
func (c *candidate) isAsShown(plan *restore.Plan) error {
	if c.shown == nil {
		return nil
	}
	if !slices.Equal(view.SceneOf(plan).BundleRoots(), c.shown) {
		return refusedHint(errors.New("the bundle in the run directories is not the one in the view"), "mount the view again, and review it again")
	}
	return nil
}
