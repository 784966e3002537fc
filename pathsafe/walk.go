package pathsafe

import (
	"context"
	"errors"
	"io/fs"
	"strings"
)

// Walk calls visit for every entry below d of any type, in the byte order of the paths ("a", "a.b",
// "a/b"). It follows no links. It visits, but does not enter, the root of another mount or
// subvolume, or a directory for which visit returns [fs.SkipDir]. It stops at the first other
// error: of visit, of ctx, or because an entry disappeared.
func (d *Dir) Walk(ctx context.Context, visit func(rel string, st Stat) error) error {
	return d.WalkEntering(ctx, func(string, *Dir) error { return nil }, visit)
}

// WalkEntering is Walk, but calls enter for d and for every directory before it visits the entries:
// with the path below d ("" for d itself) and the directory, which is open until all of its entries
// were visited. An error of enter stops the walk.
func (d *Dir) WalkEntering(ctx context.Context, enter func(rel string, dir *Dir) error, visit func(rel string, st Stat) error) error {
	top, err := d.Stat()
	if err != nil {
		return err
	}
	w := walk{enters: enter, visit: visit, top: top.ID, exact: isExact(d.Fd(), top)}
	return w.dir(ctx, d, "")
}

// WalkReadable is Walk, but continues after a permission error: it calls denied for a
// directory that this user may not list, and for an entry that this user may not stat. For d
// itself that is an error.
func (d *Dir) WalkReadable(ctx context.Context, visit func(rel string, st Stat) error, denied func(rel string)) error {
	top, err := d.Stat()
	if err != nil {
		return err
	}
	w := walk{enters: func(string, *Dir) error { return nil }, visit: visit, denied: denied, top: top.ID, exact: isExact(d.Fd(), top)}
	return w.dir(ctx, d, "")
}

type walk struct {
	enters func(rel string, dir *Dir) error
	visit  func(rel string, st Stat) error
	denied func(rel string) // nil: an entry that may not be read is an error
	top    ID
	exact  bool // see isExact: of all directories that are entered, which are on one file system
}

// skips reports whether an error means that this user may not read a path, and the walk
// continues.
func (w *walk) skips(rel string, err error) bool {
	if w.denied == nil || !errors.Is(err, fs.ErrPermission) {
		return false
	}
	w.denied(rel)
	return true
}

// dir visits the entries of d. A directory has two places in the order: its name, and for its
// entries its name with a slash. Until then it is pending. The name of a pending directory is a
// prefix of the names of the later ones, which come before it, so a stack suffices.
func (w *walk) dir(ctx context.Context, d *Dir, prefix string) error {
	if err := w.enters(strings.TrimSuffix(prefix, "/"), d); err != nil {
		return err
	}
	names, err := d.Names()
	if prefix != "" && w.skips(strings.TrimSuffix(prefix, "/"), err) {
		return nil
	}
	if err != nil {
		return err
	}
	var pending []string
	for len(names) > 0 || len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n := len(pending); n > 0 && (len(names) == 0 || pending[n-1]+"/" < names[0]) {
			err = w.enter(ctx, d, prefix, pending[n-1])
			pending = pending[:n-1]
		} else {
			pending, err = w.entry(d, prefix, names[0], pending)
			names = names[1:]
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// entry visits name, and makes it pending when it has content to visit.
func (w *walk) entry(d *Dir, prefix, name string, pending []string) ([]string, error) {
	var st Stat
	err := d.doName("stat", name, func(fd int) (err error) {
		st, err = statNear(fd, name, w.top, w.exact)
		return err
	})
	if w.skips(prefix+name, err) {
		return pending, nil
	}
	if err != nil {
		return nil, err
	}
	err = w.visit(prefix+name, st)
	if errors.Is(err, fs.SkipDir) {
		return pending, nil
	}
	if err != nil {
		return nil, err
	}
	if st.Mode.IsDir() && st.IsOn(w.top) {
		pending = append(pending, name)
	}
	return pending, nil
}

func (w *walk) enter(ctx context.Context, d *Dir, prefix, name string) error {
	sub, err := d.OpenDir(name)
	if w.skips(prefix+name, err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer sub.Close()
	return w.dir(ctx, sub, prefix+name+"/")
}
