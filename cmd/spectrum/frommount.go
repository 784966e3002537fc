package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/go-json-experiment/json"
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
	var status statusRecord
	if err := readControl(path, statusFile, &status); err != nil {
		return nil, err
	}
	if err := status.untampered(path); err != nil {
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
func readCandidate(mountpoint string) (path string, record candidateRecord, err error) {
	if path, err = ownView(mountpoint); err != nil {
		return "", candidateRecord{}, err
	}
	err = readControl(path, candidateFile, &record)
	if errors.Is(err, fs.ErrNotExist) {
		err = refusedHint(fmt.Errorf("the view on %q shows no single candidate", path), "name run directories instead")
	}
	if err != nil {
		return "", candidateRecord{}, err
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
func (s *statusRecord) untampered(path string) error {
	if s.Tampered {
		return fmt.Errorf("view on %q: %w", path, errTampered)
	}
	return nil
}

// maxControl bounds what is read of a control file of the user's own view, in bytes.
const maxControl = 256 << 20

func readControl(path, name string, v any) error {
	raw, err := fusemount.ReadView(path, name, maxControl)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("%s of the view on %q: %w", name, path, err)
	}
	return nil
}

// checkShown makes sure that a view on which a preview rests is still there and
// has found nothing.
func checkShown(view *preview.View) error {
	if view == nil {
		return nil
	}
	var status statusRecord
	path, err := fusemount.FindView(view.Mountpoint)
	if err == nil {
		err = readControl(path, statusFile, &status)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotShown, err)
	}
	if status.ViewID != view.ID { // first: what another view has found is of no account
		return fmt.Errorf("%w: another one is mounted on %q", errNotShown, path)
	}
	return status.untampered(path)
}

// isAsShown makes sure that what was planned is what the view shows.
func (c *candidate) isAsShown(plan *restore.Plan) error {
	if c.shown == nil {
		return nil
	}
	if !slices.Equal(bundleRoots(plan), c.shown) {
		return refusedHint(errors.New("the run directories hold another bundle than the view shows"), "mount again, and look again")
	}
	return nil
}
