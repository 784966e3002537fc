package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// Write makes what the snapshot has at p, the root directory itself for the
// zero path, as name in to: contents, extended attributes, owners, modes and
// times, hard links as such. Every byte is checked while it is copied; a damaged
// object is a [*DamageError]. To make it durable, and to remove what an error
// leaves half made, is the caller's.
func (s *Store) Write(ctx context.Context, snap *Snapshot, p pathsafe.Path, to *pathsafe.Dir, name string) error {
	err := s.write(ctx, snap, []Part{{Path: p, Name: name}}, on(to, s.sysHook))
	if err != nil && p.String() == "" {
		return fmt.Errorf("writing snapshot %s: %w", snap.header.ID, err)
	}
	if err != nil {
		return fmt.Errorf("writing %q of snapshot %s: %w", p, snap.header.ID, err)
	}
	return nil
}

// A Part is what a snapshot has at a path, and the name that it gets.
type Part struct {
	Path pathsafe.Path
	Name string
	Skip func(Entry) bool // unless nil, what is left out, with all that is in it
}

// WriteParts is Write for several paths, none of which is beneath another one. Names of
// one file are names of one file again, whichever of the parts they are in.
func (s *Store) WriteParts(ctx context.Context, snap *Snapshot, parts []Part, to *pathsafe.Dir) error {
	if err := s.write(ctx, snap, parts, on(to, s.sysHook)); err != nil {
		return fmt.Errorf("writing snapshot %s: %w", snap.header.ID, err)
	}
	return nil
}

func (s *Store) write(ctx context.Context, snap *Snapshot, parts []Part, to dir) error {
	entries, err := snap.moved(parts)
	if err != nil {
		return err
	}
	return s.writeEntries(ctx, snap, entries, to)
}

// writeEntries makes entries of a snapshot under the paths that they have now.
func (s *Store) writeEntries(ctx context.Context, snap *Snapshot, entries []Entry, to dir) error {
	lock, err := s.share(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	w := &writing{snap: snap, sysHook: s.sysHook, shards: shardDirs{objects: s.objects}, base: to}
	defer w.shards.close()
	s.sysHook.watch.begin("writing", only(entries, func(e *Entry) bool { return e.Type == File && e.Hard == "" }))
	for _, step := range []func(context.Context, []Entry) error{w.dirs, w.fill, w.links, w.finish} {
		if err := step(ctx, entries); err != nil {
			return err
		}
	}
	return nil
}

// moved returns the entries of parts under their new names. Hard is the path of the first
// name among them.
func (s *Snapshot) moved(parts []Part) ([]Entry, error) {
	var all []Entry
	first := map[string]string{}
	for _, part := range parts {
		entries, err := s.tree(part.Path)
		if err != nil {
			return nil, err
		}
		if !entries[0].Type.Kept() {
			return nil, refuse("snapshot %s has only the name of %q", part.Path, s.header.ID)
		}
		top, gone := entries[0].Path, ""
		for _, e := range entries {
			if gone != "" && beneath(e.Path, gone) {
				continue
			}
			if !e.Type.Kept() || part.Skip != nil && part.Skip(e) {
				gone = e.Path
				continue
			}
			of := e.First()
			e.Path, e.Hard = join(part.Name, strings.TrimPrefix(strings.TrimPrefix(e.Path, top), "/")), ""
			if e.Type != Dir {
				if e.Hard = first[of]; e.Hard == "" {
					first[of] = e.Path
				}
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// A writing is one call of Write.
type writing struct {
	*sysHook
	snap    *Snapshot
	shards  shardDirs
	base    dir // which the entries are beneath
	noClone atomic.Bool
}

// bare removes the access lists that the top has inherited.
func (w *writing) bare(to dir, name string, e *Entry) error {
	inherited, err := to.xattrs(name)
	if err != nil {
		return err
	}
	for _, x := range inherited {
		if !strings.HasPrefix(x.Name, "system.posix_acl_") || e.hasXattr(x) {
			continue
		}
		err := w.Do("remove attribute", name, func() error {
			node, err := to.H.Pin(name)
			if err != nil {
				return err
			}
			defer node.Close()
			return node.RemoveXattr(x.Name)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (e *Entry) hasXattr(x pathsafe.Xattr) bool {
	for _, own := range e.xattrs {
		if own == x {
			return true
		}
	}
	return false
}

// dirs makes all directories. What is in a part has lists of its own: the part itself
// must not hand down those that it has inherited.
func (w *writing) dirs(ctx context.Context, entries []Entry) error {
	at := descent{base: w.base}
	defer at.close()
	for i := range entries {
		if entries[i].Type != Dir {
			continue
		}
		in, name := split(entries[i].Path)
		d, err := at.open(in)
		if err == nil {
			err = errors.Join(ctx.Err(), d.Mkdir(name, 0o700))
		}
		if err == nil && in == "" {
			err = w.bare(d, name, &Entry{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill makes all that is not a directory and not a further name.
func (w *writing) fill(ctx context.Context, entries []Entry) error {
	work := batches(entries, func(e *Entry) bool { return e.Type != Dir && e.Hard == "" })
	start := func() *maker { return w.maker(w.base) }
	return inorder.Each(ctx, 0, len(work), start, func(m *maker, i int) error {
		in, _ := split(work[i][0].Path)
		d, err := m.at.open(in)
		if err != nil {
			return err
		}
		defer m.at.close()
		for _, e := range work[i] {
			_, name := split(e.Path)
			err := m.one(ctx, e, d, name)
			if err == nil && in == "" {
				err = w.bare(d, name, e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func (w *writing) links(ctx context.Context, entries []Entry) error {
	from, to := descent{base: w.base}, descent{base: w.base}
	defer from.close()
	defer to.close()
	for i := range entries {
		if entries[i].Hard == "" {
			continue
		}
		oldIn, oldName := split(entries[i].Hard)
		newIn, newName := split(entries[i].Path)
		old, err := from.open(oldIn)
		if err != nil {
			return err
		}
		in, err := to.open(newIn)
		if err == nil {
			err = w.Do("link", newName, func() error { return old.H.LinkName(oldName, in.H, newName) })
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// finish sets the metadata of directories, the deepest first: until now a user who may not
// write or search in one still could.
func (w *writing) finish(ctx context.Context, entries []Entry) error {
	at := descent{base: w.base}
	defer at.close()
	for i := len(entries) - 1; i >= 0; i-- {
		if entries[i].Type != Dir {
			continue
		}
		d, err := at.open(entries[i].Path)
		if err == nil {
			err = w.metadata(d.H.Node(), &entries[i])
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// metadata sets what an inode has beside its content. A new owner takes away
// capabilities and set-id bits, and a time must come last.
func (w *writing) metadata(node *pathsafe.Node, e *Entry) error {
	return w.Do("set metadata", e.Path, func() error {
		if err := node.Chown(e.UID, e.GID); err != nil {
			return err
		}
		for _, x := range e.xattrs {
			if err := setXattr(node, x); err != nil {
				return err
			}
		}
		if e.Type != Link {
			if err := node.Chmod(e.Mode); err != nil {
				return err
			}
		}
		if err := keepsMode(node, e); err != nil {
			return err
		}
		return node.SetModTime(e.ModTime)
	})
}

// keepsMode requires the set-id bits: the kernel clears the set-group-id bit, without an
// error, when a user outside the group sets the mode.
func keepsMode(node *pathsafe.Node, e *Entry) error {
	if e.Mode&0o6000 == 0 || e.Type == Link {
		return nil
	}
	st, err := node.Stat()
	if err == nil && st.Perm != e.Mode {
		err = fmt.Errorf("mode %04o: %w", e.Mode, pathsafe.ErrGroup)
	}
	return err
}

// setXattr accepts an error if the attribute already has the value: some are set by the
// system, and users may not set them.
func setXattr(node *pathsafe.Node, x pathsafe.Xattr) error {
	err := node.SetXattr(x)
	if err == nil {
		return nil
	}
	all, failed := node.Xattrs()
	if failed == nil && (&Entry{xattrs: all}).hasXattr(x) {
		return nil
	}
	return fmt.Errorf("attribute %q: %w", x.Name, err)
}

// A maker is a worker of Write.
type maker struct {
	*writing
	at  descent
	buf []byte
}

func (w *writing) maker(base dir) *maker {
	return &maker{writing: w, at: descent{base: base}, buf: make([]byte, chunk)}
}

// one makes what is not a directory.
func (m *maker) one(ctx context.Context, e *Entry, in dir, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var err error
	switch e.Type {
	case File:
		return m.file(ctx, e, in, name)
	case Link:
		err = m.Do("make link", name, func() error { return in.H.Symlink(e.Target, name) })
	case Fifo:
		err = m.Do("make fifo", name, func() error { return in.H.Mkfifo(name, 0o600) })
	}
	if err != nil {
		return err
	}
	node, err := in.H.Pin(name)
	if err != nil {
		return err
	}
	defer node.Close()
	return m.metadata(node, e)
}

func (m *maker) file(ctx context.Context, e *Entry, in dir, name string) error {
	f, err := in.Create(name, 0o600)
	if err != nil {
		return err
	}
	err = m.content(ctx, f, e)
	if err == nil {
		err = m.metadata(pathsafe.FileNode(f), e)
	}
	return errors.Join(err, m.CloseFile(f))
}

// content copies an object, and checks what it copies.
func (m *maker) content(ctx context.Context, dst *os.File, e *Entry) error {
	src, err := m.shards.object(e)
	if err != nil {
		return m.damage(e, err)
	}
	defer src.Close()
	sum := sha256.New()
	if e.Size <= chunk {
		n, err := m.read(src, m.buf)
		if err != nil {
			return m.damage(e, err)
		}
		if int64(n) != e.Size || sha256.Sum256(m.buf[:n]) != e.Digest {
			return m.damage(e, errContent)
		}
		w := filler{s: m.sysHook, f: dst, sparse: e.Sparse}
		if err := w.write(m.buf[:n]); err != nil {
			return err
		}
		return w.end()
	}
	c := copier{s: m.sysHook, buf: m.buf, noClone: &m.noClone}
	n, err := c.copy(ctx, dst, src, sum, e)
	if err != nil {
		return err
	}
	if n != e.Size || Digest(sum.Sum(nil)) != e.Digest {
		return m.damage(e, errContent)
	}
	return nil
}

var errContent = errors.New("its content does not match the hash in its name")

// damage names all paths that need the object of e.
func (m *maker) damage(e *Entry, err error) error {
	return damage(e.Digest.path(), needing(m.snap, e.Digest), err)
}

func needing(snap *Snapshot, d Digest) (names []string) {
	for i := range snap.entries {
		if e := &snap.entries[i]; e.Type == File && e.Digest == d {
			names = append(names, e.Path)
		}
	}
	return names
}

// object opens the object of a file, which must have its size.
func (s *shardDirs) object(e *Entry) (*os.File, error) {
	shard, err := s.open(e.Digest, false)
	if err != nil {
		return nil, err
	}
	f, st, err := shard.OpenFile(e.Digest.name())
	if err != nil {
		return nil, err
	}
	if st.Size != e.Size {
		_ = f.Close()
		return nil, fmt.Errorf("it has %d bytes, not %d", st.Size, e.Size)
	}
	return f, nil
}
