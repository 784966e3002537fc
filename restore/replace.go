// This file is law: what a replacement may displace.

package restore

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// Target is the regular file that stands where an output or a result artifact goes, as it was
// read from one handle.
type Target struct {
	Path   pathsafe.Path
	Stat   pathsafe.Stat
	Digest [sha256.Size]byte
	// Identical: it has the signed bytes and the same executable bits, so it stays as it is and
	// counts as restored (7.4.2). Else it is displaced.
	Identical bool
	// ModeOnly: of what is displaced, it has the signed bytes.
	ModeOnly bool
	// Removed: nothing comes in its place.
	Removed bool
	state   string // what it is, in words
	fixed   string // why the kernel does not let it be renamed; "" for nothing
}

// ForRootReplacing is ForRoot for a restore that replaces the files that stand at its targets, and
// leaves those as they are that are the same. Own returns the digests of the result artifacts that
// the commit of the active savepoint made in a root, by their paths: where one of them still stands
// it is displaced. What can neither stay nor be displaced is a conflict, as everything is of
// ForRoot. Nothing is written.
func ForRootReplacing(ctx context.Context, c Candidate, restoreRoot string, own func(root *pathsafe.Dir) (map[string][sha256.Size]byte, error)) (*Restore, error) {
	return forRootOwning(ctx, c, restoreRoot, own, true)
}

// ForRootOwning is [ForRootReplacing] for a change set, which itself lists what it replaces:
// an existing file is displaced if it is the producer's base, and otherwise has diverged
// ([Restore.Divergence]). For any other candidate every existing entry at a target is a
// conflict.
func ForRootOwning(ctx context.Context, c Candidate, restoreRoot string, own func(root *pathsafe.Dir) (map[string][sha256.Size]byte, error)) (*Restore, error) {
	return forRootOwning(ctx, c, restoreRoot, own, false)
}

func forRootOwning(ctx context.Context, c Candidate, restoreRoot string, own func(root *pathsafe.Dir) (map[string][sha256.Size]byte, error), always bool) (*Restore, error) {
	r, err := forRoot(ctx, c, restoreRoot)
	if err != nil || !always && !r.plan.IsChangeSet() {
		return r, err
	}
	made, err := own(r.root)
	if err == nil {
		err = r.replace(ctx, made)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Restore) replace(ctx context.Context, own map[string][sha256.Size]byte) error {
	outputs := map[string]verify.Output{}
	for run := range r.plan.Runs() {
		for o := range run.Bundle().Outputs() {
			outputs[run.Target(o.Path().String())] = o
		}
	}
	found := make([]*Target, len(r.conflicts))
	err := inorder.Each(ctx, 0, len(r.conflicts), blockhash.NewHasher, func(h *blockhash.Hasher, n int) error {
		c := &r.conflicts[n]
		if c.mount != "" {
			return nil
		}
		path, err := pathsafe.Parse(c.Path)
		if err != nil {
			return Internal(Planning, err)
		}
		t, why := readTarget(ctx, r.root, path, h)
		if ctx.Err() != nil {
			return Internal(Planning, ctx.Err())
		}
		o, isOutput := outputs[c.Path]
		if t != nil {
			t.state = c.State
		}
		switch digest, isOwn := own[c.Path]; {
		case why != nil:
			c.State += c.cannot() + why.Error()
		case c.removed:
			t.Removed, found[n] = true, t
		case isOutput:
			same, bits := t.Digest == o.Digest(), r.hasBits(o, t.Stat.Perm)
			t.Identical, t.ModeOnly = same && bits, same && !bits
			found[n] = t
		case isOwn && digest == t.Digest:
			found[n] = t
		default:
			c.State += ", which is foreign: it is not what the commit of the active savepoint made"
		}
		if t = found[n]; t != nil && !t.Identical && t.fixed != "" {
			c.State += c.cannot() + t.fixed
			found[n] = nil
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.blockTogether(found)
	blocked := []Conflict{}
	r.targets = map[string]*Target{}
	for n, c := range r.conflicts {
		if t := found[n]; t != nil {
			r.targets[c.Path] = t
		} else {
			blocked = append(blocked, c)
		}
	}
	r.conflicts, r.replaces = blocked, true
	r.holdAgainstBase(outputs)
	return nil
}

// hasBits reports whether an existing file has the executable bits of an output. Those of a change
// set are signed as one bit, which other users' bits do not change.
func (r *Restore) hasBits(o verify.Output, perm uint32) bool {
	if c := r.plan.changes(); c != nil {
		return c.Executable(o.Path().String()) == (perm&0o100 != 0)
	}
	return uint32(o.Perm())&0o111 == perm&0o111
}

// cannot begins the reason why what is there has to stay.
func (c *Conflict) cannot() string {
	if c.removed {
		return ", which cannot be removed: "
	}
	return ", which cannot be replaced: "
}

// blockTogether makes conflicts of those targets that reach one file, by hard links or through a
// link on the way, unless it stays for all of them: what is displaced at one name would be what is
// there at the other. Found has a target for each conflict, or nil.
func (r *Restore) blockTogether(found []*Target) {
	type group struct {
		paths   []string
		changes bool // something comes at one of them
	}
	of := map[pathsafe.ID]*group{}
	for n, t := range found {
		if t == nil {
			continue
		}
		g := of[t.Stat.ID]
		if g == nil {
			g = &group{}
			of[t.Stat.ID] = g
		}
		g.paths, g.changes = append(g.paths, r.conflicts[n].Path), g.changes || !t.Identical
	}
	for n, t := range found {
		if t == nil || len(of[t.Stat.ID].paths) == 1 || !of[t.Stat.ID].changes {
			continue
		}
		other := of[t.Stat.ID].paths[0]
		if other == r.conflicts[n].Path {
			other = of[t.Stat.ID].paths[1]
		}
		r.conflicts[n].Linked = other
		r.conflicts[n].State += fmt.Sprintf("%sit is the same file as %q, another target", r.conflicts[n].cannot(), other)
		found[n] = nil
	}
}

// Replaces reports whether it was made by [ForRootReplacing], or is of a change set; a nil Restore
// replaces nothing.
func (r *Restore) Replaces() bool { return r != nil && r.replaces }

// Target returns the file that stands at the target of an output or a result artifact and
// is displaced, or stays; nil where nothing does.
func (r *Restore) Target(path string) *Target {
	t := r.targets[path]
	if t == nil {
		return nil
	}
	copied := *t
	return &copied
}

// Targets are those files in the order of their paths.
func (r *Restore) Targets() []*Target {
	all := make([]*Target, 0, len(r.targets))
	for path := range r.targets {
		all = append(all, r.Target(path))
	}
	slices.SortFunc(all, func(a, b *Target) int { return strings.Compare(a.Path.String(), b.Path.String()) })
	return all
}

// readTarget reads the file that stands at a target. The error is why it cannot be replaced.
func readTarget(ctx context.Context, root *pathsafe.Dir, path pathsafe.Path, h *blockhash.Hasher) (*Target, error) {
	names := path.Components()
	parent, err := root.OpenParent(path, len(names)-1)
	if err != nil {
		return nil, errors.New("a parent of it is not a directory")
	}
	defer parent.Close()
	base := names[len(names)-1]
	top, err := root.Stat()
	if err != nil {
		return nil, err
	}
	in, err := parent.Stat()
	if err != nil {
		return nil, err
	}
	st, err := parent.Lstat(base)
	uid := os.Geteuid()
	switch {
	case err != nil:
		return nil, err
	case !st.IsOn(top.ID):
		return nil, errors.New("it is another mount or subvolume")
	case !st.Mode.IsRegular():
		return nil, errors.New("it is not a regular file")
	case uid != 0 && int(st.UID) != uid:
		return nil, fmt.Errorf("it belongs to user %d, and only root replaces it", st.UID)
	}
	f, st, err := parent.Open(base)
	if errors.Is(err, fs.ErrPermission) {
		return nil, errors.New("it cannot be read")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	barred := ""
	xattrs, err := pathsafe.FileNode(f).ReadableXattrs(func(name string, _ error) { barred = name })
	if err == nil && barred != "" {
		err = fmt.Errorf("its attribute %s cannot be read and could not be restored", barred)
	}
	if err != nil {
		return nil, err
	}
	if why := NeedsRoot(int(st.UID), int(st.GID), xattrs); why != "" {
		return nil, fmt.Errorf("%s, and only root could bring it back as it is", why)
	}
	table, err := h.Sum(ctx, f, st.Size)
	if err != nil {
		return nil, err
	}
	now, err := pathsafe.StatFile(f)
	if err == nil && (table.Size() != st.Size || now.Size != st.Size || !now.ModTime.Equal(st.ModTime) || !now.ChangeTime.Equal(st.ChangeTime)) {
		err = errors.New("it is being written to")
	}
	if err != nil {
		return nil, err
	}
	return &Target{Path: path, Stat: now, Digest: table.Digest(), fixed: FixedBy(now, in)}, nil
}

// FixedBy returns the reason why the kernel rejects renaming a file in a directory; "" if it
// does not.
func FixedBy(file, dir pathsafe.Stat) string {
	switch {
	case file.Immutable:
		return "it is immutable (chattr +i)"
	case file.AppendOnly:
		return "it is append-only (chattr +a)"
	case dir.Immutable:
		return "its directory is immutable (chattr +i)"
	case dir.AppendOnly:
		return "its directory is append-only (chattr +a)"
	}
	return ""
}

// NeedsRoot returns the reason why this user cannot make an entry with this owner, group and
// attributes; "" if this user can.
func NeedsRoot(uid, gid int, xattrs []pathsafe.Xattr) string {
	own := os.Geteuid()
	switch {
	case machine.IsSuper() && machine.KnowsOwner(uid, gid):
		return ""
	case machine.IsSuper():
		return fmt.Sprintf("it is of user %d and group %d, which this user namespace does not have", uid, gid)
	}
	groups, _ := os.Getgroups() // of what is not known he is not a member
	switch {
	case uid != own:
		return fmt.Sprintf("it is of user %d", uid)
	case gid != os.Getegid() && !slices.Contains(groups, gid):
		return fmt.Sprintf("it is of group %d", gid)
	}
	for _, x := range xattrs {
		if strings.HasPrefix(x.Name, "trusted.") || strings.HasPrefix(x.Name, "security.") && x.Name != "security.selinux" {
			return "it has the attribute " + x.Name
		}
	}
	return ""
}

// VerifyIdentical reads identical files again: each has to be what was looked at, with the signed
// bytes (5.5: identical files count as restored). It returns the first that is not, in their order,
// and why.
func VerifyIdentical(ctx context.Context, root *pathsafe.Dir, targets []*Target) (failed *Target, err error) {
	reasons := make([]error, len(targets))
	_ = inorder.Each(ctx, 0, len(targets), blockhash.NewHasher, func(h *blockhash.Hasher, n int) error {
		now, err := readTarget(ctx, root, targets[n].Path, h)
		if err == nil && !now.Is(targets[n]) {
			err = errors.New("it changed after it was examined")
		}
		reasons[n] = err
		return err
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for n, reason := range reasons {
		if reason != nil {
			return targets[n], reason
		}
	}
	return nil, nil
}

// Is reports whether two targets are the very same file with the same content, mode and owner.
func (t *Target) Is(other *Target) bool {
	a, b := &t.Stat, &other.Stat
	return t.Path == other.Path && t.Digest == other.Digest && a.ID == b.ID && a.Mode == b.Mode && a.Perm == b.Perm &&
		a.UID == b.UID && a.GID == b.GID && a.Size == b.Size && a.ModTime.Equal(b.ModTime)
}
