package snapshot

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// A descent keeps the parent directories of the last requested path open: neighbours need few
// calls. It follows no links.
type descent struct {
	base  dir
	names []string
	dirs  []dir
}

// open returns the directory at path. It stays the descent's.
func (d *descent) open(path string) (dir, error) {
	if path == "" {
		d.pop(0)
		return d.base, nil
	}
	depth := 0
	for name := range strings.SplitSeq(path, "/") {
		if depth < len(d.names) && d.names[depth] == name {
			depth++
			continue
		}
		d.pop(depth)
		sub, err := d.top().open(name)
		if err != nil {
			return dir{}, err
		}
		d.names, d.dirs = append(d.names, name), append(d.dirs, sub)
		depth++
	}
	d.pop(depth)
	return d.top(), nil
}

func (d *descent) top() dir {
	if len(d.dirs) == 0 {
		return d.base
	}
	return d.dirs[len(d.dirs)-1]
}

func (d *descent) pop(depth int) {
	for len(d.dirs) > depth {
		d.top().Close()
		d.dirs = d.dirs[:len(d.dirs)-1]
	}
	d.names = d.names[:len(d.dirs)]
}

func (d *descent) close() { d.pop(0) }

// A gatherer collects the entries of a scope.
type gatherer struct {
	*take
	at    *descent
	found map[string]Entry
}

// gather adds the entry at p, and on the way to it.
func (g *gatherer) gather(ctx context.Context, p pathsafe.Path) error {
	w := way{todo: p.Components()}
	for {
		name, ok, err := w.next()
		if err != nil {
			return err
		}
		if !ok {
			return errors.New("a symbolic link leads to a directory above it")
		}
		path := join(w.path(), name)
		if len(w.todo) == 0 {
			return g.whole(ctx, w.path(), name, true)
		}
		e, err := g.onTheWay(w.path(), name)
		switch {
		case err != nil:
			return err
		case e.Type == Dir:
			w.enter(name)
		case e.Type == Link:
			if err := w.follow(e.Target); err != nil {
				return err
			}
		default:
			return g.missing(ctx, &w, path, e.Type)
		}
	}
}

// missing adds a name that cannot be there, since path is not a directory.
func (g *gatherer) missing(ctx context.Context, w *way, path string, is Type) error {
	if is != Absent {
		dir, name := split(path)
		if err := g.whole(ctx, dir, name, false); err != nil {
			return err
		}
	}
	rest := join(path, strings.Join(w.todo, "/"))
	g.found[rest] = Entry{Path: rest, Type: Absent, Asked: true}
	return checkPath(rest)
}

// onTheWay returns, and adds, the entry of something that the way leads
// through, without what is in it.
func (g *gatherer) onTheWay(dir, name string) (Entry, error) {
	path := join(dir, name)
	if e, seen := g.found[path]; seen {
		return e, nil
	}
	d, err := g.at.open(dir)
	if err != nil {
		return Entry{}, err
	}
	e, err := g.shallow(d, name, path)
	if err != nil {
		return Entry{}, err
	}
	if e.Type != File {
		g.found[path] = e
	}
	return e, nil
}

func (g *gatherer) shallow(d dir, name, path string) (Entry, error) {
	s := scanner{mount: g.mount, own: func(pathsafe.ID) bool { return false }, fill: g.fill}
	var e Entry
	err := s.look(d, name, path, &e)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{Path: path, Type: Absent}, nil
	}
	if err == nil && e.Type == Dir {
		e.xattrs, err = d.xattrs(name)
		err = errors.Join(err, boundXattrs(e.xattrs))
	}
	return e, err
}

// whole adds the entry at name, with everything in it.
func (g *gatherer) whole(ctx context.Context, in, name string, asked bool) error {
	path := join(in, name)
	if strings.HasPrefix(path, reserved) {
		return errors.New("a name of transactions")
	}
	d, err := g.at.open(in)
	if err != nil {
		return err
	}
	e, err := g.shallow(d, name, path)
	if err != nil {
		return err
	}
	e.Asked = asked || g.found[path].Asked
	all := []Entry{e}
	if e.Type == Dir {
		sub, err := d.open(name)
		if err != nil {
			return err
		}
		defer sub.Close()
		if all, err = g.scan(ctx, sub, e); err != nil {
			return err
		}
	}
	for _, e := range all {
		e.Asked = e.Asked || g.found[e.Path].Asked
		g.found[e.Path] = e
	}
	return checkPath(path)
}
