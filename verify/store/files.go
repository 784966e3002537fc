package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// files is a store in a directory. An object is a file that appears complete and synced; no link in
// the directory is followed. Names that begin with a dot are those of unfinished files.
type files struct{ path string }

// unfinished begins the name of a file that replaces an object.
const unfinished = ".new-"

func (f *files) root() (*pathsafe.Dir, error) { return pathsafe.OpenRoot(f.path) }

func (f *files) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	p, err := pathsafe.Parse(key)
	if err != nil {
		return nil, err
	}
	root, err := f.root()
	if err != nil {
		return nil, f.noRoot(err)
	}
	defer root.Close()
	file, st, err := root.OpenRegular(p, pathsafe.NoLinks)
	if err != nil {
		return nil, err
	}
	if n < 0 {
		n = st.Size - off
	}
	return counted{&section{io.NewSectionReader(file, off, n), file}, counter(ctx)}, nil
}

// noRoot is the error of a missing directory, which is not a missing object.
func (f *files) noRoot(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("there is no directory " + f.path)
	}
	return err
}

type section struct {
	*io.SectionReader
	file *os.File
}

func (s *section) Close() error { return s.file.Close() }

func (f *files) Stat(_ context.Context, key string) (Object, error) {
	p, err := pathsafe.Parse(key)
	if err != nil {
		return Object{}, err
	}
	root, err := f.root()
	if err != nil {
		return Object{}, f.noRoot(err)
	}
	defer root.Close()
	st, err := root.StatPath(p, pathsafe.NoLinks)
	if err == nil && !st.Mode.IsRegular() {
		err = pathsafe.ErrNotRegular
	}
	return Object{key, st.Size, st.ModTime}, err
}

func (f *files) PutIfAbsent(_ context.Context, key string, content []byte) error {
	return f.write(key, func(dir *pathsafe.Dir, name string) error {
		err := f.publish(dir, name, content)
		return errors.Join(err, dir.Sync())
	})
}

// publish makes a file, complete and synced, unless there is one.
func (f *files) publish(dir *pathsafe.Dir, name string, content []byte) error {
	file, err := dir.CreateUnnamed(0o666)
	if errors.Is(err, errors.ErrUnsupported) {
		return f.publishNamed(dir, name, content)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := fill(file, content); err != nil {
		return err
	}
	return dir.Link(file, name)
}

// publishNamed is publish for a file system without unnamed files.
func (f *files) publishNamed(dir *pathsafe.Dir, name string, content []byte) error {
	return f.replace(dir, content, func(temporary string) error { return dir.RenameNoReplace(temporary, dir, name) })
}

// replace makes an unfinished file, complete and synced, and calls move to have it take its place. What
// then has the name of the unfinished file is removed. The file is locked until then: one without a lock
// is that of a process that was killed. Where there are no locks, none is removed.
func (f *files) replace(dir *pathsafe.Dir, content []byte, move func(temporary string) error) error {
	temporary := unfinished + uuid.NewString()
	file, err := dir.Create(temporary, 0o666)
	if err != nil {
		return err
	}
	defer file.Close()
	_ = sys.Lock(file)
	if err = fill(file, content); err == nil {
		err = move(temporary)
	}
	if left := dir.Unlink(temporary); !errors.Is(left, fs.ErrNotExist) {
		err = errors.Join(err, left)
	}
	return err
}

func fill(file *os.File, content []byte) error {
	if _, err := file.Write(content); err != nil {
		return pathsafe.NoSpace(file, len(content), err)
	}
	return file.Sync()
}

func (f *files) Put(ctx context.Context, key string, content []byte) error {
	err := f.PutIfAbsent(ctx, key, content)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	return f.write(key, func(dir *pathsafe.Dir, name string) error {
		err := f.exchange(dir, name, content)
		return errors.Join(err, dir.Sync())
	})
}

// exchange replaces what has a name, but no directory.
func (f *files) exchange(dir *pathsafe.Dir, name string, content []byte) error {
	return f.replace(dir, content, func(temporary string) error {
		if err := dir.RenameExchange(temporary, dir, name); err != nil {
			return err
		}
		st, err := dir.Lstat(temporary)
		if err != nil || !st.Mode.IsDir() {
			return err
		}
		err = dir.RenameExchange(temporary, dir, name)
		return errors.Join(&fs.PathError{Op: "replace", Path: path.Join(dir.Name(), name), Err: unix.EISDIR}, err)
	})
}

func (f *files) Delete(_ context.Context, key string) error {
	err := f.at(key, false, func(dir *pathsafe.Dir, name string) error {
		err := dir.Unlink(name)
		return errors.Join(err, dir.Sync())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f *files) write(key string, do func(dir *pathsafe.Dir, name string) error) error {
	return f.at(key, true, do)
}

// at calls do with the directory of a key and the name in it. The directories on the way are made,
// durably, if make is set.
func (f *files) at(key string, make bool, do func(dir *pathsafe.Dir, name string) error) error {
	if _, err := pathsafe.Parse(key); err != nil {
		return err
	}
	dir, err := pathsafe.OpenOwn(f.path)
	if err != nil {
		return f.noRoot(err)
	}
	defer func() { dir.Close() }()
	parents := strings.Split(path.Dir(key), "/")
	if path.Dir(key) == "." {
		parents = nil
	}
	for _, name := range parents {
		sub, err := dir.OpenDir(name)
		if errors.Is(err, fs.ErrNotExist) && make {
			if err = dir.Mkdir(name, 0o777); err == nil || errors.Is(err, fs.ErrExist) {
				if err = dir.Sync(); err == nil {
					sub, err = dir.OpenDir(name)
				}
			}
		}
		if err != nil {
			return err
		}
		dir.Close()
		dir = sub
	}
	return do(dir, path.Base(key))
}

func (f *files) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		err := f.walk(ctx, prefix, func(o Object) bool { return yield(o, nil) })
		if err != nil && !errors.Is(err, errEnough) {
			yield(Object{}, err)
		}
	}
}

// listedSize is what an object in the listing of a directory counts for: about what a server sends.
const listedSize = 256

var errEnough = errors.New("no more objects are needed")

func (f *files) walk(ctx context.Context, prefix string, found func(Object) bool) error {
	root, err := f.root()
	if err != nil {
		return f.noRoot(err)
	}
	defer root.Close()
	p, err := pathsafe.Parse(strings.TrimSuffix(prefix, "/"))
	if err != nil {
		return err
	}
	dir, err := root.OpenParent(p, len(p.Components()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	count := counter(ctx)
	err = dir.Walk(ctx, func(rel string, st pathsafe.Stat) error {
		if !st.Mode.IsRegular() || strings.HasPrefix(path.Base(rel), ".") {
			return nil
		}
		count(listedSize)
		if !found(Object{prefix + rel, st.Size, st.ModTime}) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) || machine.IsDisturbed(err) {
		return Passing(errors.New("an object was removed during the listing"))
	}
	return err
}

// leftAfter is how old an unfinished file must be before it is removed: its process has locked it by then.
const leftAfter = time.Minute

// tidy removes the unfinished files of processes that were killed. What cannot be removed now stays.
func (f *files) tidy(ctx context.Context) {
	root, err := f.root()
	if err != nil {
		return
	}
	defer root.Close()
	for _, prefix := range []string{runsPrefix, packsPrefix, gcPrefix} {
		top, err := root.OpenDir(strings.TrimSuffix(prefix, "/"))
		if err != nil {
			continue
		}
		var left []string
		_ = top.Walk(ctx, func(rel string, st pathsafe.Stat) error {
			if st.Mode.IsRegular() && isUnfinished(path.Base(rel)) && time.Since(st.ModTime) > leftAfter {
				left = append(left, rel)
			}
			return nil
		})
		for _, rel := range left {
			removeUnlocked(top, rel)
		}
		top.Close()
	}
}

func isUnfinished(name string) bool {
	id, ok := strings.CutPrefix(name, unfinished)
	return ok && len(id) == len(uuid.Nil.String()) && uuid.Validate(id) == nil
}

// removeUnlocked removes a file that no process has locked.
func removeUnlocked(top *pathsafe.Dir, rel string) {
	p, err := pathsafe.Parse(rel)
	if err != nil {
		return
	}
	dir, err := top.OpenParent(p, len(p.Components())-1)
	if err != nil {
		return
	}
	defer dir.Close()
	file, _, err := dir.Open(p.Base())
	if err != nil {
		return
	}
	defer file.Close()
	if sys.Lock(file) == nil {
		_ = dir.Unlink(p.Base())
	}
}
