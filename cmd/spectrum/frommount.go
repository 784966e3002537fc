package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/preview"
)

var (
	// errTampered: a view has found that its sources are not what was verified.
	errTampered = errors.New("the view found tampering: nothing that it shows may be committed")

	// errNotShown: the view that somebody looked at does not vouch for the
	// candidate any more.
	errNotShown = errors.New("the view that was looked at is gone")
)

// openMounted opens the candidate that a view shows. The view is asked who it
// is and what it has seen; the candidate is verified again all the same.
func openMounted(ctx context.Context, mountpoint, restoreRoot string) (*candidate, error) {
	path, record, err := readCandidate(mountpoint)
	if err != nil {
		return nil, err
	}
	status, err := view.ReadStatus(path)
	if err != nil {
		return nil, err
	}
	if err := untampered(&status, path); err != nil {
		return nil, err
	}
	c, err := reopen(ctx, preview.Origin{
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

// readCandidate asks a view what it shows, and gives its real path too.
func readCandidate(mountpoint string) (path string, record view.CandidateRecord, err error) {
	if path, err = ownView(mountpoint); err != nil {
		return "", view.CandidateRecord{}, err
	}
	record, err = view.ReadCandidate(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = refusedHint(fmt.Errorf("the view on %q shows no single candidate", path), "name run directories instead")
	}
	if err != nil {
		return "", view.CandidateRecord{}, err
	}
	return path, record, nil
}

// ownView gives the real path of a live view that this user, or root, has
// mounted: what another user's server says is not worth asking for.
func ownView(mountpoint string) (string, error) {
	path, err := fusemount.FindView(mountpoint)
	if errors.Is(err, fusemount.ErrDeadMount) {
		return "", refusedHint(err, "\"spectrum umount MOUNTPOINT\" clears it; then mount again")
	}
	if err != nil {
		return "", refusedHint(err, "name the directory that \"spectrum mount\" has mounted on")
	}
	return path, nil
}

// untampered is [errTampered] when the view on a path says that it has found
// anything.
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
	if status.ViewID != looked.ID { // first: what another view has found is of no account
		return fmt.Errorf("%w: another one is mounted on %q", errNotShown, path)
	}
	return untampered(&status, path)
}

// isAsShown makes sure that what was planned is what the view shows.
func (c *candidate) isAsShown(plan *restore.Plan) error {
	if c.shown == nil {
		return nil
	}
	if !slices.Equal(view.BundleRoots(plan), c.shown) {
		return refusedHint(errors.New("the run directories hold another bundle than the view shows"), "mount again, and look again")
	}
	return nil
}
