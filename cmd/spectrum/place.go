package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spectrumfs/spectrum/fusefs/fusemount"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// checkMountpoint refuses a directory that cannot carry the view, or to which another user's
// link leads, or where the view would stand in the way of what it shows. It returns the real
// path of the directory.
func (a *app) checkMountpoint(places []place, mountpoint string) (string, error) {
	if err := fusemount.CheckMountpoint(mountpoint); err != nil { // asks no server that may be there
		return "", mountpointError(err)
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
	places = append(places, place{"the state directory", state})
	return way.Real, refusedHint(overlapReal("mountpoint", mountpoint, way.Real, places), "mount on an empty directory somewhere else")
}

func mountpointError(err error) error {
	hint := "make an empty directory and mount on that"
	if errors.Is(err, fusemount.ErrDeadMount) || errors.Is(err, fusemount.ErrAlreadyMounted) {
		hint = "\"spectrum umount MOUNTPOINT\" ends a view"
	}
	return refusedHint(err, hint)
}

// place is a directory that another must keep clear of.
type place struct{ what, path string }

// overlap says whether a directory is one of the places, is in one, or has one
// in it. Links are resolved.
func overlap(what, path string, places []place) error {
	real, err := realPath(path)
	if err != nil {
		return err
	}
	return overlapReal(what, path, real, places)
}

// overlapReal is overlap for a path of which the links are resolved already.
func overlapReal(what, path, real string, places []place) error {
	for _, p := range places {
		if p.path == "" {
			continue
		}
		other, err := realPath(p.path)
		if err != nil {
			continue // what leads nowhere overlaps nothing; others say what is wrong with it
		}
		if isWithin(real, other) || isWithin(other, real) {
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
	way, err := pathsafe.WayTo(abs) // asks no server of another user on the way
	if err == nil || abs == "/" {
		return way.Real, err
	}
	parent, err := realPath(filepath.Dir(abs))
	return filepath.Join(parent, filepath.Base(abs)), err
}

func isWithin(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
