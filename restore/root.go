package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
)

// openRoot is step 1.2: the restore root, checked in the order of section
// 8.4.4. The path is resolved once; from then on the handle is the root.
func openRoot(path string) (*pathsafe.Dir, error) {
	if path == "" {
		return nil, Fail(TargetMissing, "", errors.New("no restore root was given"))
	}
	if !filepath.IsAbs(path) {
		return nil, Fail(TargetNotAbsolute, path, errors.New("the restore root is not an absolute path"))
	}
	root, err := pathsafe.OpenRoot(path)
	if err != nil {
		return nil, rootFailure(path, err)
	}
	if err := root.Writable(); err != nil {
		root.Close()
		return nil, Fail(TargetNotWritable, path, err)
	}
	return root, nil
}

// rootFailure returns the code for a root that could not be opened.
func rootFailure(path string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOTDIR) && exists(path):
		return Fail(TargetNotDirectory, path, errors.New("the restore root is not a directory"))
	case verify.IsMachineFault(err):
		return Internal(Preflight, err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOTCONN), errors.Is(err, syscall.EIO):
		return Fail(TargetNotWritable, path, err)
	case errors.Is(err, fs.ErrNotExist):
		return Fail(TargetNotExist, path, fmt.Errorf("the restore root does not exist: %w", err))
	default:
		return Fail(TargetNotExist, path, fmt.Errorf("the restore root cannot be opened: %w", err))
	}
}

// exists distinguishes a root that is not a directory from one with such a parent.
func exists(path string) bool {
	way, err := pathsafe.WayTo(path) // asks no server of another user
	return err == nil && !way.Missing
}

// checkRunDirs applies section 6.3 to a chain: no run's directory may exist.
func checkRunDirs(root *pathsafe.Dir, g gated) error {
	if !g.chain {
		return nil
	}
	for _, b := range g.bundles {
		_, err := root.Lstat(b.RunID())
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return Internal(Preflight, err).in(b.RunID())
		}
		return Fail(ChainTargetDirExists, b.RunID(), errors.New("it already exists in the restore root")).in(b.RunID())
	}
	return nil
}
