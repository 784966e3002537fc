package main

import (
	"fmt"
	"path/filepath"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
)

// checkMountpoint rejects a directory that cannot be the mount point, a path through another user's
// link, and a place that would hide what the view shows. It returns the real path of the directory.
func (a *app) checkMountpoint(places []reserved, mountpoint string) (string, error) {
	if err := fusemount.CheckMountpoint(mountpoint); err != nil { // accesses no server that may be there
		return "", mountpointError(err, mountpoint)
	}
	way, err := pathsafe.WayFrom(mountpoint)
	if err == nil {
		err = way.CheckLinks()
	}
	if err != nil {
		return "", refusedHint(fmt.Errorf("mount point %q: %w", mountpoint, err), "make an empty directory and mount on that")
	}
	state, err := a.statePath()
	if err != nil {
		return "", err
	}
	places = append(places, reserved{"the state directory", state})
	return way.Real, refusedHint(overlapReal("mountpoint", mountpoint, way.Real, places), "mount on an empty directory somewhere else")
}

func mountpointError(err error, path string) error {
	return refusedHint(err, mountpointHint(err, path))
}

// reserved is a directory that another must keep clear of.
type reserved struct{ what, path string }

// overlap reports whether a directory is one of the places, is in one, or has one in it. Links are
// resolved, and a bind mount is known by what it leads to.
func overlap(what, path string, places []reserved) error {
	real, err := realPath(path)
	if err != nil {
		return err
	}
	return overlapReal(what, path, real, places)
}

// overlapReal is overlap for a path of which the links are resolved already.
func overlapReal(what, path, real string, places []reserved) error {
	for _, p := range places {
		if p.path == "" {
			continue
		}
		other, err := realPath(p.path)
		if err != nil {
			continue // a broken path does not overlap; other checks report it
		}
		if action.ShareDirectories(real, other) {
			return fmt.Errorf("%s %q overlaps %s %q", what, path, p.what, p.path)
		}
	}
	return nil
}

// realPath resolves links; what does not exist is resolved as far as it does.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	way, err := pathsafe.WayTo(abs) // accesses no other user's server on the path
	if err == nil || abs == "/" {
		return way.Real, err
	}
	parent, err := realPath(filepath.Dir(abs))
	return filepath.Join(parent, filepath.Base(abs)), err
}
