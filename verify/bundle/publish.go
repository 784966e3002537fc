package bundle

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// runDir is the path where a bundle will be published. Nothing is created before.
type runDir struct {
	in     *pathsafe.Dir // the directory that above is relative to, or nil
	above  string        // the directory that it will be in: an absolute path, or one in in
	name   string        // its last component: the run_id
	parent *pathsafe.Dir
}

// findRunDir requires that the name of the run directory is free. If in is a directory, path
// is one in it.
func findRunDir(in *pathsafe.Dir, path string) (runDir, error) {
	at := filepath.Clean(path)
	if in == nil {
		abs, err := filepath.Abs(path)
		if err != nil {
			return runDir{}, fmt.Errorf("run directory %q: %w", path, err)
		}
		at = abs
	} else if !filepath.IsLocal(path) || at == "." {
		return runDir{}, fmt.Errorf("run directory %q: it is not in %q", path, in.Name())
	}
	r := runDir{in: in, above: filepath.Dir(at), name: filepath.Base(at)}
	if err := r.checkFree(); err != nil {
		return runDir{}, fmt.Errorf("run directory %q: %w", path, err)
	}
	return r, nil
}

// checkFree returns an error unless the name does not exist, or is an empty directory.
func (r runDir) checkFree() error {
	parent, err := r.openParent()
	if err != nil {
		return orFree(err) // it will be created
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

func (r runDir) openParent() (*pathsafe.Dir, error) {
	if r.in == nil {
		return pathsafe.OpenOwn(r.above)
	}
	dir, err := r.in.Reopen()
	for name := range strings.SplitSeq(r.above, "/") {
		if err != nil || name == "." {
			break
		}
		above := dir
		dir, err = above.OpenDir(name)
		above.Close()
	}
	return dir, err
}

// orFree ignores fs.ErrNotExist.
func orFree(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// publish creates the run directory and its missing parents. On an error it removes what it
// created.
func (r runDir) publish(files []file) (err error) {
	m, err := makeDirs(r.in, r.above)
	defer func() {
		m.close(err != nil)
		if err != nil {
			err = fmt.Errorf("writing the bundle: %w", err)
		}
	}()
	if err != nil {
		return err
	}
	r.parent = m.last()
	return r.place(files)
}

// makings are open directories: the nearest existing one, and those that were missing beneath it,
// each in the one before.
type makings struct {
	dirs  []*pathsafe.Dir
	names []string // of all but the first
	ours  []bool   // whether this call created each, rather than another process at the same time
}

func (m *makings) last() *pathsafe.Dir { return m.dirs[len(m.dirs)-1] }

// makeDirs creates a directory and its missing parents. It resolves the path once: directories are
// created, and removed again, beneath the existing directory, or beneath in.
func makeDirs(in *pathsafe.Dir, path string) (*makings, error) {
	m := &makings{}
	var missing []string
	open := pathsafe.OpenOwn
	if in != nil {
		open = func(path string) (*pathsafe.Dir, error) {
			if path != "." {
				return nil, fs.ErrNotExist // it is created, or opened, in the one above
			}
			return in.Reopen()
		}
	}
	for {
		dir, err := open(path)
		if err == nil {
			m.dirs = append(m.dirs, dir)
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return m, err
		}
		missing, path = append(missing, filepath.Base(path)), filepath.Dir(path)
	}
	for _, name := range slices.Backward(missing) {
		in := m.last()
		err := in.Mkdir(name, 0o777)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return m, err
		}
		dir, openErr := in.OpenDir(name)
		if openErr != nil {
			if err == nil {
				_ = in.Rmdir(name)
			}
			return m, openErr
		}
		m.dirs, m.names, m.ours = append(m.dirs, dir), append(m.names, name), append(m.ours, err == nil)
	}
	return m, nil
}

// close closes the directories and, if remove is set, removes those that were created, unless
// another process uses them.
func (m *makings) close(remove bool) {
	for i, dir := range slices.Backward(m.dirs) {
		_ = dir.Close()
		if remove && i > 0 && m.ours[i-1] {
			_ = m.dirs[i-1].Rmdir(m.names[i-1])
		}
	}
}

// place writes the artifacts into a directory of another name and renames it. On an error it
// removes that directory.
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

// rename gives the directory its name. It first removes an empty directory of that name, and fails
// if that is not empty.
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

// discard removes the files that write created.
func (r runDir) discard(temp string, files []file) {
	if dir, err := r.parent.OpenDir(temp); err == nil {
		defer dir.Close()
		for _, f := range files {
			_ = dir.Unlink(f.name)
		}
	}
	_ = r.parent.Rmdir(temp)
}
