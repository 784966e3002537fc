package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// rolledBack is the directory of the marks for rolled-back commits: an empty file for each bundle
// and each restore root. They record that it happened, but not when or why (rollback and snapshot
// contract, section 11). They are never removed, not even after a later commit.
const rolledBack = "rolled-back"

// bundleMark and rootMark return the names of the marks. The hash of a root's path and the ID of a
// bundle have the same form, so each has a prefix.
func bundleMark(bundleRoot string) string { return "bundle-" + bundleRoot }
func rootMark(root string) string         { return "root-" + attemptsOf(root) }

// MarkRolledBack records, durably, that a commit in a restore root (an absolute path) was rolled
// back, and the bundle roots (64 hex digits each) that the commit had restored. After an error some
// of the marks may exist; the call can be repeated.
func (d *Dir) MarkRolledBack(root string, bundleRoots []string) error {
	names := []string{rootMark(root)}
	for _, bundleRoot := range bundleRoots {
		if !isDigest(bundleRoot) {
			return fmt.Errorf("%q is not a bundle root", bundleRoot)
		}
		names = append(names, bundleMark(bundleRoot))
	}
	err := d.markRolledBack(names)
	if _, is := errors.AsType[*PartError](err); is {
		return err
	}
	if err != nil {
		return fmt.Errorf("state directory %q: remembering a rollback: %w", d.path, err)
	}
	return nil
}

func (d *Dir) markRolledBack(names []string) error {
	dir, err := d.open(rolledBack)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, name := range names {
		if err := dir.WriteFile(name, nil, 0o600); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return errors.Join(dir.Sync(), d.root.Sync())
}

// WasRolledBack reports whether a commit in the restore root ("" for none), or one of any of
// the bundles, was ever rolled back. An error means that this is unknown.
func (d *Dir) WasRolledBack(root string, bundleRoots []string) (bool, error) {
	was, err := d.wasRolledBack(root, bundleRoots)
	if _, is := errors.AsType[*PartError](err); is {
		return false, err
	}
	if err != nil {
		return false, fmt.Errorf("state directory %q: %w", d.path, err)
	}
	return was, nil
}

func (d *Dir) wasRolledBack(root string, bundleRoots []string) (bool, error) {
	dir, err := d.root.OpenDir(rolledBack)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, d.part(rolledBack, err)
	}
	defer dir.Close()
	var names []string
	if root != "" {
		names = append(names, rootMark(root))
	}
	for _, bundleRoot := range bundleRoots {
		names = append(names, bundleMark(bundleRoot))
	}
	for _, name := range names {
		if is, err := isThere(dir, name); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// StrangeMarks are the names of the marks that are of none of these restore roots and bundles,
// sorted.
func (d *Dir) StrangeMarks(roots, bundleRoots []string) ([]string, error) {
	dir, err := d.root.OpenDir(rolledBack)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.part(rolledBack, err)
	}
	defer dir.Close()
	known := map[string]bool{}
	for _, root := range roots {
		known[rootMark(root)] = true
	}
	for _, bundleRoot := range bundleRoots {
		known[bundleMark(bundleRoot)] = true
	}
	names, err := dir.Names()
	names = slices.DeleteFunc(names, func(name string) bool { return known[name] })
	slices.Sort(names)
	return names, err
}

// isThere reports whether a mark exists, whatever its type.
func isThere(dir *pathsafe.Dir, name string) (bool, error) {
	_, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// WasRolledBack is [Dir.WasRolledBack] of the state directory at a path, which it does not create:
// if there is none, it returns false.
func WasRolledBack(path, root string, bundleRoots []string) (bool, error) {
	d, err := Find(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer d.Close()
	return d.WasRolledBack(root, bundleRoots)
}
