package preview

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// observed is everything beneath a restore root, condensed into two digests of
// 64 hex digits. Links are not followed, other mounts not entered.
type observed struct {
	// state is the same wherever the same stands: names, types, permission bits,
	// and the sizes of files. It is part of a preview's identity.
	state string
	// witness also has owners, inodes, and the times of modification and change, so
	// that no change escapes it. It means something on this machine only.
	witness string
	root    pathsafe.Stat
	way     pathsafe.Way // that the path of the root leads
	hidden  []string     // what this user may not read, in path order
}

// observeRoot looks at the root itself, and requires that the path under which it was named
// still leads there.
func observeRoot(root *pathsafe.Dir, name string) (o observed, err error) {
	if o.root, err = root.Stat(); err != nil {
		return observed{}, err
	}
	if o.way, err = pathsafe.WayTo(name); err != nil {
		return observed{}, err
	}
	if err := o.way.LeadsTo(root); err != nil {
		return observed{}, fmt.Errorf("%w: %w", ErrUnsettled, err)
	}
	return o, nil
}

// observe looks at a restore root, and requires that the path under which it was named
// still leads there. File contents are not read: changing them changes the times.
func observe(ctx context.Context, root *pathsafe.Dir, name string) (observed, error) {
	o, err := observeRoot(root, name)
	if err != nil {
		return observed{}, err
	}
	state, witness := sha256.New(), sha256.New()
	look := func(rel string, st pathsafe.Stat) error {
		describe(state, rel, st)
		identify(witness, rel, st)
		return nil
	}
	_ = look("", o.root)
	err = root.WalkReadable(ctx, look, func(rel string) { o.hidden = append(o.hidden, rel) })
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ESTALE) { // a name that was just listed is gone
		err = fmt.Errorf("%w: %w", ErrUnsettled, err)
	}
	if err != nil {
		return observed{}, err
	}
	o.state, o.witness = hex.EncodeToString(state.Sum(nil)), hex.EncodeToString(witness.Sum(nil))
	return o, nil
}

// equals reports whether nothing has changed in between, beneath the root or on the way to
// it.
func (o *observed) equals(other *observed) bool {
	return o.witness == other.witness && o.way.Real == other.way.Real && slices.Equal(o.way.Loose, other.way.Loose)
}

// rootState is what a preview shows of the root that was observed.
func (o *observed) rootState(root *pathsafe.Dir, name string) (rootState, error) {
	magic, err := root.FileSystem()
	if err != nil {
		return rootState{}, err
	}
	return rootState{
		Path: name, Real: o.way.Real, Owner: o.root.UID, State: o.state,
		Warnings: slices.Concat(warnings(o.way.Real, o.root), unsafeAt(magic), o.unread()),
	}, nil
}

// unsettled says that a root is not as it was when it was last looked at, and names what could be read
// only once.
func unsettled(before, after *observed) error {
	for _, name := range slices.Concat(before.hidden, after.hidden) {
		if !slices.Contains(before.hidden, name) || !slices.Contains(after.hidden, name) {
			return fmt.Errorf("%w: %q could be read only once", ErrUnsettled, name)
		}
	}
	return ErrUnsettled
}

// unread warns of what this user may not read. What is there does not concern a restore, whose own
// paths are looked at one by one.
func (o *observed) unread() []string {
	const most = 3
	n := len(o.hidden)
	if n == 0 {
		return nil
	}
	names := make([]string, 0, most)
	for _, name := range o.hidden[:min(n, most)] {
		names = append(names, visible.Quote(name))
	}
	text := strings.Join(names, ", ")
	if n > most {
		text += fmt.Sprintf(", and %d more", n-most)
	}
	return []string{"this user may not read everything beneath the restore root, and what is there was not looked at: " + text}
}

// unsafeAt warns of file systems on which all or nothing was not tried through
// a power cut, or cannot be had.
func unsafeAt(magic int64) []string {
	names := map[int64]string{
		unix.MSDOS_SUPER_MAGIC: "vfat", unix.EXFAT_SUPER_MAGIC: "exfat", unix.NFS_SUPER_MAGIC: "NFS",
		unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.FUSE_SUPER_MAGIC: "FUSE",
	}
	name, ok := names[magic]
	if !ok {
		return nil
	}
	return []string{fmt.Sprintf("the restore root is on %s: that a power cut leaves all or nothing is not known there", name)}
}

// warnings says what an operator should know of a restore root that is allowed
// all the same (decision D17).
func warnings(real string, st pathsafe.Stat) []string {
	const writers, sticky = 0o022, 0o1000
	found := []string{}
	if real == "/" {
		found = append(found, "the restore root is the root of the file system")
	}
	if strings.Contains(real+"/", "/CONTRACTS/_runs/") {
		found = append(found, "the restore root is, or is in, a directory of runs: what is restored there would be taken for a run, or spoil one")
	}
	if st.Perm&writers != 0 && st.Perm&sticky == 0 {
		found = append(found, fmt.Sprintf("others may write in the restore root (mode %04o, no sticky bit), also while the commit is at work", st.Perm))
	}
	return found
}

// describe writes one entry; %q keeps entries apart. Writes to a hash do not
// fail. How large a directory is depends on the file system.
func describe(w io.Writer, rel string, st pathsafe.Stat) {
	size := st.Size
	if st.Mode.IsDir() {
		size = 0
	}
	_, _ = fmt.Fprintf(w, "%q %v %d\n", rel, st.Mode, size)
}

// identify writes what tells one entry from any other of the same form.
func identify(w io.Writer, rel string, st pathsafe.Stat) {
	_, _ = fmt.Fprintf(w, "%q %v %d %d:%d %d %d %d %d\n", rel, st.Mode, st.Size,
		st.UID, st.GID, st.ID.Dev, st.ID.Ino, st.ModTime.UnixNano(), st.ChangeTime.UnixNano())
}
