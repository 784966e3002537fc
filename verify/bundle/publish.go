package bundle

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// runDir is where a bundle will appear. Nothing is made until it is published.
type runDir struct {
	path   string // absolute
	name   string // its last component: the run_id
	parent *pathsafe.Dir
}

// findRunDir makes sure that nothing stands where the run directory will be.
func findRunDir(path string) (runDir, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return runDir{}, fmt.Errorf("run directory %q: %w", path, err)
	}
	r := runDir{path: abs, name: filepath.Base(abs)}
	if err := r.checkFree(); err != nil {
		return runDir{}, fmt.Errorf("run directory %q: %w", path, err)
	}
	return r, nil
}

// checkFree accepts a name that is not there, or an empty directory.
func (r runDir) checkFree() error {
	parent, err := pathsafe.OpenRoot(filepath.Dir(r.path))
	if err != nil {
		return orFree(err) // it will be made
	}
	defer parent.Close()
	if _, err := parent.Lstat(r.name); err != nil {
		return orFree(err)
	}
	dir, err := parent.OpenDir(r.name)
	if err != nil {
		return fs.ErrExist
	}
	defer dir.Close()
	names, err := dir.Names()
	if err == nil && len(names) > 0 {
		err = fmt.Errorf("%w and is not empty", fs.ErrExist)
	}
	return err
}

// orFree takes "there is no such thing" for good news.
func orFree(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// publish makes the run directory, and the missing ones above it. On an error
// all that it made is gone again.
func (r runDir) publish(files []file) (err error) {
	made, err := makeDirs(filepath.Dir(r.path))
	defer func() {
		if err != nil {
			removeDirs(made)
			err = fmt.Errorf("writing the bundle: %w", err)
		}
	}()
	if err != nil {
		return err
	}
	if r.parent, err = pathsafe.OpenRoot(filepath.Dir(r.path)); err != nil {
		return err
	}
	defer r.parent.Close()
	return r.place(files)
}

// makeDirs makes a directory and those above it that are missing, and returns
// what it made, the deepest last. Someone else may make the same at this time.
func makeDirs(path string) (made []string, err error) {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if made, err = makeDirs(filepath.Dir(path)); err != nil {
		return made, err
	}
	if err = os.Mkdir(path, 0o777); err == nil {
		made = append(made, path)
	} else if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return made, err
}

// removeDirs removes what makeDirs made, unless someone else uses it by now.
func removeDirs(made []string) {
	for _, path := range slices.Backward(made) {
		_ = os.Remove(path)
	}
}

// place writes the artifacts into a directory of another name and renames it.
// On an error that directory is gone.
func (r runDir) place(files []file) (err error) {
	temp := ".sealing-" + rand.Text()
	defer func() {
		if err != nil {
			r.discard(temp, files)
		}
	}()
	if err := r.write(temp, files); err != nil {
		return err
	}
	if err := r.rename(temp); err != nil {
		return err
	}
	if err := r.parent.Sync(); err != nil {
		return errors.Join(err, r.parent.RenameNoReplace(r.name, r.parent, temp))
	}
	return nil
}

func (r runDir) write(temp string, files []file) error {
	if err := r.parent.Mkdir(temp, 0o777); err != nil {
		return err
	}
	dir, err := r.parent.OpenDir(temp)
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, f := range files {
		if err := dir.WriteFile(f.name, f.raw, 0o666); err != nil {
			return err
		}
	}
	return dir.Sync()
}

// rename gives the directory its name. An empty directory of that name is
// removed first, which fails if it is not empty.
func (r runDir) rename(temp string) error {
	err := r.parent.RenameNoReplace(temp, r.parent, r.name)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := r.parent.Rmdir(r.name); err != nil {
		return err
	}
	if err := r.parent.RenameNoReplace(temp, r.parent, r.name); err != nil {
		return errors.Join(err, r.parent.Mkdir(r.name, 0o777))
	}
	return nil
}

// discard removes what write made, as far as it got.
func (r runDir) discard(temp string, files []file) {
	if dir, err := r.parent.OpenDir(temp); err == nil {
		defer dir.Close()
		for _, f := range files {
			_ = dir.Unlink(f.name)
		}
	}
	_ = r.parent.Rmdir(temp)
}
