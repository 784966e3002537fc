package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/ignore"
	"golang.org/x/sys/unix"
)

// Layer makes the project the upper layer of an overlayfs, with the changes since Lower:
// files, whiteouts for removals, and opaque directories.
type Layer struct {
	Lower *pathsafe.Dir
	// Attributes is the prefix of the names of the overlay's extended attributes, [TrustedOverlay]
	// or [UserOverlay]; "" means both.
	Attributes string
	// Since, unless zero, is the time when the overlay was mounted: a file of Lower that was
	// changed later is not a base, since it is unknown which content the overlay has shown. Seen
	// are files, by path, whose shown content is known nevertheless.
	Since time.Time
	Seen  map[string]BaseFile
}

// Prefixes of the names of the extended attributes of an overlay.
const (
	TrustedOverlay = "trusted.overlay."
	UserOverlay    = "user.overlay."
)

// A LowerError is returned for files whose base is not known, because they were changed or removed
// beneath the overlay while it was in use.
type LowerError struct{ Paths []string } // in ascending order

func (e *LowerError) Error() string {
	return "changed by another process after the overlay was mounted, so the base of the change is unknown: " + LeftOut{Paths: e.Paths}.String()
}

// layerReader compares an upper layer with the layer beneath it.
type layerReader struct {
	collecting
	layer     *Layer
	list      *BaseList
	moved     []string        // the files whose base is not known
	whiteouts map[string]bool // by path
}

// withBase returns the options with the base of the layer, of which only the paths in the layer are
// read.
func (o SealOptions) withBase(ctx context.Context) (SealOptions, error) {
	rules, err := ignore.New(o.Project, o.Exclude)
	if err != nil {
		return o, err
	}
	if o.lowerRules, err = ignore.New(o.Layer.Lower, o.Exclude); err != nil {
		return o, err
	}
	r := &layerReader{
		collecting: collecting{ctx: ctx, opts: o, rules: rules},
		layer:      o.Layer, list: &BaseList{Links: map[string]string{}, HasModes: true}, whiteouts: map[string]bool{},
	}
	if err := r.merge(o.Project, o.Layer.Lower, ""); err != nil {
		return o, err
	}
	err = inorder.Each(ctx, 0, len(r.list.Files), blockhash.NewHasher, func(h *blockhash.Hasher, i int) error {
		return r.hash(h, &r.list.Files[i])
	})
	if err != nil {
		return o, err
	}
	for _, f := range r.list.Files {
		if f.Bytes < 0 {
			r.moved = append(r.moved, f.Path.String())
		}
	}
	if len(r.moved) > 0 {
		slices.Sort(r.moved)
		return o, &LowerError{slices.Compact(r.moved)}
	}
	o.BaseList, o.whiteouts = r.list, r.whiteouts
	return o, nil
}

// merge processes each name of an upper directory; lower is nil if the upper directory hides
// everything beneath it.
func (r *layerReader) merge(upper, lower *pathsafe.Dir, prefix string) error {
	names, err := upper.Names()
	if err != nil {
		return err
	}
	if err := r.enter(upper, prefix, names); err != nil {
		return err
	}
	for _, name := range names {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		at := prefix + name
		st, err := upper.Lstat(name)
		if err != nil {
			return err
		}
		if why, err := r.why(at, st); err != nil || why != "" {
			if err != nil {
				return err
			}
			continue
		}
		marks, err := r.marks(upper, name, at)
		if err != nil {
			return err
		}
		below := pathsafe.Stat{Mode: fs.ModeIrregular}
		isThere := false
		if lower != nil {
			switch below, err = lower.Lstat(name); {
			case err == nil:
				isThere = true
			case !isNothing(err):
				return err
			}
		}
		if err := r.name(name, at, overlaid{upper, lower, st, below, isThere, marks}); err != nil {
			return err
		}
	}
	return nil
}

// enter makes the rules read their file in a directory, which may be a whiteout.
func (r *layerReader) enter(upper *pathsafe.Dir, prefix string, names []string) error {
	if slices.Contains(names, ignore.File) {
		st, err := upper.Lstat(ignore.File)
		if err != nil {
			return err
		}
		if st.IsWhiteout() {
			r.rules.Lacks(path.Clean(prefix))
			return nil
		}
	}
	return r.rules.Enter(strings.TrimSuffix(prefix, "/"), upper)
}

// overlaid is one name in both layers.
type overlaid struct {
	upper, lower *pathsafe.Dir
	st, below    pathsafe.Stat
	isThere      bool // in the lower layer
	marks        marks
}

// marks are the marks of the overlay on a name.
type marks struct{ opaque, whiteout, copied bool }

// marks returns the marks of a name, and rejects marks that make the name refer to another entry.
func (r *layerReader) marks(upper *pathsafe.Dir, name, at string) (m marks, err error) {
	node, err := upper.Pin(name)
	if err != nil {
		return m, err
	}
	defer node.Close()
	all, err := node.ReadableXattrs(func(string, error) {})
	if err != nil {
		return m, err
	}
	for _, x := range all {
		short, isTrusted := strings.CutPrefix(x.Name, TrustedOverlay)
		isUser := false
		if !isTrusted {
			short, isUser = strings.CutPrefix(x.Name, UserOverlay)
		}
		if !isTrusted && !isUser || isTrusted && r.layer.Attributes == UserOverlay || isUser && r.layer.Attributes == TrustedOverlay {
			continue
		}
		switch short {
		case "redirect":
			return m, &FormError{at, fmt.Sprintf("is a directory that was renamed (%s), with its content elsewhere", x.Name)}
		case "metacopy":
			return m, &FormError{at, fmt.Sprintf("is a file without its content (%s)", x.Name)}
		case "opaque":
			m.opaque = x.Value == "y"
		case "whiteout":
			m.whiteout = true
		case "origin":
			m.copied = true
		}
	}
	return m, nil
}

// name records the base of one name.
func (r *layerReader) name(name, at string, o overlaid) error {
	kind := o.below.Mode.Type()
	isWhiteout := o.st.IsWhiteout() || o.marks.whiteout && o.st.Mode.IsRegular() && o.st.Size == 0
	if isWhiteout {
		r.whiteouts[at] = true
	}
	seen, isSeen := r.layer.Seen[at]
	switch {
	case !o.isThere && isSeen:
		r.list.Files = append(r.list.Files, seen)
	case !o.isThere && o.marks.copied && o.st.Mode.IsRegular():
		wasAbsent, err := r.layer.wasAbsent(r.opts.Project, at)
		if !wasAbsent {
			r.moved = append(r.moved, at)
		}
		return err
	case !o.isThere && o.st.Mode.IsDir():
		dir, err := o.upper.OpenDir(name)
		if err != nil {
			return err
		}
		defer dir.Close()
		return r.merge(dir, nil, at+"/")
	case !o.isThere:
	case kind == fs.ModeSymlink:
		target, err := o.lower.Readlink(name)
		r.list.Links[at] = target
		return err
	case kind == 0:
		if err := r.add(at); err != nil {
			return err
		}
		if o.st.Mode.IsDir() {
			return &FormError{at, "was a file and is " + directory}
		}
	case kind != fs.ModeDir:
		now := "gone"
		if !isWhiteout {
			now = "replaced"
		}
		return &FormError{at, "was " + kindOf(kind) + " and is " + now}
	default:
		return r.lowerDir(name, at, o, isWhiteout)
	}
	return nil
}

// lowerDir is name for a directory of the lower layer.
func (r *layerReader) lowerDir(name, at string, o overlaid, isWhiteout bool) error {
	if !o.st.Mode.IsDir() && !isWhiteout {
		now := "a file"
		if !o.st.Mode.IsRegular() {
			now = kindOf(o.st.Mode)
		}
		return &FormError{at, "was " + directory + " and is " + now}
	}
	lower, err := o.lower.OpenDir(name)
	if err != nil {
		return err
	}
	defer lower.Close()
	if isWhiteout {
		return r.addAll(lower, at+"/")
	}
	upper, err := o.upper.OpenDir(name)
	if err != nil {
		return err
	}
	defer upper.Close()
	if !o.marks.opaque {
		return r.merge(upper, lower, at+"/")
	}
	if err := r.addAll(lower, at+"/"); err != nil {
		return err
	}
	return r.merge(upper, nil, at+"/")
}

// addAll notes all that is in a directory of the lower layer.
func (r *layerReader) addAll(lower *pathsafe.Dir, prefix string) error {
	return lower.Walk(r.ctx, func(rel string, st pathsafe.Stat) error {
		at := prefix + rel
		why, err := r.why(at, st)
		switch {
		case err != nil:
			return err
		case why != "" && st.Mode.IsDir():
			return fs.SkipDir
		case why != "" || st.Mode.IsDir():
			return nil
		case st.Mode.IsRegular():
			return r.add(at)
		case st.Mode.Type() != fs.ModeSymlink:
			return &FormError{at, "was " + kindOf(st.Mode) + " and is gone"}
		}
		link, err := pathsafe.Found(at)
		if err != nil {
			return err
		}
		dir, err := r.layer.Lower.OpenParent(link, len(link.Components())-1)
		if err != nil {
			return err
		}
		defer dir.Close()
		r.list.Links[at], err = dir.Readlink(link.Base())
		return err
	})
}

// add notes a file of the lower layer.
func (r *layerReader) add(at string) error {
	found, err := pathsafe.Found(at)
	r.list.Files = append(r.list.Files, BaseFile{Known: Known{Path: found}})
	return err
}

// hash reads a file of the lower layer. It sets the size to a negative number if the present
// content is not what the overlay has shown.
func (r *layerReader) hash(h *blockhash.Hasher, base *BaseFile) error {
	if seen, ok := r.layer.Seen[base.Path.String()]; ok {
		*base = seen
		return nil
	}
	known, err := r.layer.ReadBase(r.ctx, r.opts.Project, base.Path, h)
	if errors.Is(err, ErrSince) {
		base.Bytes = -1
		return nil
	}
	if err != nil {
		return fmt.Errorf("the lower layer: %w", err)
	}
	*base = known
	return nil
}

// ErrSince is returned for a file that was changed after a given time.
var ErrSince = errors.New("it was changed afterwards")

// ReadBase reads a file of the lower layer for a [BaseList]. It returns [ErrSince] if the file was
// changed after Since or while it was read, or if its directory may not be the one that the overlay
// has shown there.
func (l *Layer) ReadBase(ctx context.Context, upper *pathsafe.Dir, file pathsafe.Path, h *blockhash.Hasher) (BaseFile, error) {
	dir, err := l.parent(upper, file)
	if err != nil {
		return BaseFile{}, orSince(err, file)
	}
	defer dir.Close()
	f, before, err := dir.Open(file.Base())
	if err != nil {
		return BaseFile{}, orSince(err, file)
	}
	defer f.Close()
	if !l.Since.IsZero() && before.ChangeTime.After(l.Since) {
		return BaseFile{}, ErrSince
	}
	table, err := h.Sum(ctx, f, before.Size+1)
	if err != nil {
		return BaseFile{}, fmt.Errorf("%q: %w", file, err)
	}
	after, err := pathsafe.StatFile(f)
	if err != nil {
		return BaseFile{}, err
	}
	if table.Size() != before.Size || !after.ChangeTime.Equal(before.ChangeTime) {
		return BaseFile{}, ErrSince
	}
	return BaseFile{Known: Known{file, before.Size, table.Digest()}, Executable: before.Perm&0o100 != 0}, nil
}

// orSince returns [ErrSince] for a file that no longer exists, else err.
func orSince(err error, file pathsafe.Path) error {
	if isNothing(err) || errors.Is(err, pathsafe.ErrNotRegular) || errors.Is(err, pathsafe.ErrSymlink) || errors.Is(err, ErrSince) {
		return ErrSince
	}
	return fmt.Errorf("%q: %w", file, err)
}

// parent opens the directory of a file of the lower layer. Another directory that was moved to its
// place, or to that of one above it, has files that were not changed at all. So each directory on
// the path must be unchanged since then, or it must be the one that the overlay has copied, and its
// entries must have changed: a directory of which only the inode changed may have been moved there
// before the overlay looked at it again.
func (l *Layer) parent(upper *pathsafe.Dir, file pathsafe.Path) (*pathsafe.Dir, error) {
	dir, err := l.Lower.Reopen()
	if err != nil {
		return nil, err
	}
	parts := file.Components()
	for i, name := range parts[:len(parts)-1] {
		above := dir
		dir, err = above.OpenDir(name)
		above.Close()
		if err != nil {
			return nil, err
		}
		st, err := dir.Stat()
		if err == nil && !l.Since.IsZero() && st.ChangeTime.After(l.Since) && (!st.ModTime.After(l.Since) || !l.isOrigin(upper, file, i+1, dir)) {
			err = ErrSince
		}
		if err != nil {
			dir.Close()
			return nil, err
		}
	}
	return dir, nil
}

// wasAbsent reports whether it is known that a path that does not exist now did not exist either
// when the overlay was mounted: the nearest existing directory above it was not changed since. A
// file that the overlay has copied from another name was renamed or linked; otherwise the file that
// it was copied from may have existed, and was removed.
func (l *Layer) wasAbsent(upper *pathsafe.Dir, at string) (bool, error) {
	for up := at; up != ""; up = parentOf(up) {
		path, err := pathsafe.Found(up)
		if err != nil {
			return false, err
		}
		dir, err := l.parent(upper, path)
		if isNothing(err) {
			continue
		}
		if err != nil {
			return false, nil
		}
		defer dir.Close()
		st, err := dir.Stat()
		return err == nil && (l.Since.IsZero() || !st.ChangeTime.After(l.Since)), err
	}
	return false, nil
}

// isOrigin reports whether the overlay has recorded in its upper layer that the directory at the
// first n components of a path is a copy of dir.
func (l *Layer) isOrigin(upper *pathsafe.Dir, file pathsafe.Path, n int, dir *pathsafe.Dir) bool {
	handle, _, err := unix.NameToHandleAt(dir.Fd(), "", unix.AT_EMPTY_PATH)
	if err != nil {
		return false
	}
	copied, err := upper.OpenParent(file, n)
	if err != nil {
		return false
	}
	defer copied.Close()
	all, err := copied.Node().ReadableXattrs(func(string, error) {})
	if err != nil {
		return false
	}
	// The value of the kernel (struct ovl_fb): byte 4 has the type of the handle. The handle
	// follows the identity of the file system, which is that of the mount of dir.
	const typeAt, handleAt = 4, 21
	for _, x := range all {
		isNote := x.Name == TrustedOverlay+"origin" && l.Attributes != UserOverlay || x.Name == UserOverlay+"origin" && l.Attributes != TrustedOverlay
		if isNote && len(x.Value) > handleAt && x.Value[typeAt] == byte(handle.Type()) && x.Value[handleAt:] == string(handle.Bytes()) {
			return true
		}
	}
	return false
}

// isOfUpper returns an error unless the user can read the marks of the overlay in a layer.
func (l *Layer) isOfUpper(upper *pathsafe.Dir, euid int) error {
	st, err := upper.Stat()
	if err != nil || euid == 0 || int(st.UID) == euid {
		return err
	}
	return fmt.Errorf("the upper layer belongs to another user, and only root can read which of its directories are opaque: %w", unix.EPERM)
}
