package action

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/staging"
)

// An entry that a restore cannot bring back, or not move away, stays as it is and is reported:
// it blocks nothing else. These are entries that no snapshot can hold, and for an ordinary
// user the entries of other users.

// NeedsRoot returns the reason why this user cannot make an entry as the snapshot has it; ""
// if this user can.
func NeedsRoot(e snapshot.Entry) string {
	if e.Type == snapshot.Absent || !e.Type.Kept() {
		return ""
	}
	return restore.NeedsRoot(int(e.UID), int(e.GID), e.Xattrs())
}

// leave notes that a name stays as it is.
func (d *difference) leave(path, why string) {
	d.left = append(d.left, Left{Path: cmp.Or(path, "."), Why: why})
}

// leaveFor records that a name stays as it is because of an entry at or beneath it.
func (d *difference) leaveFor(path string, at *snapshot.Entry) {
	d.leave(path, fmt.Sprintf("it holds %q: %s", at.Path, at.Unkept()))
	d.left[len(d.left)-1].Unread = at.Type.IsUnread()
}

// odd reports whether at a name is or was what no snapshot can hold, which stays as it is. It
// is noted where something would have been done there.
func (d *difference) odd(then, now tree) bool {
	was, is := "", ""
	if len(then) > 0 {
		was = then[0].Unkept()
	}
	if len(now) > 0 {
		is = now[0].Unkept()
	}
	isRoot := len(then) == 1 && then[0].Type == snapshot.Dir && len(now) > 0 && now[0].Type == snapshot.Mount
	switch {
	case was == "" && is == "":
		return false
	case is != "" && (was == "" && !isRoot || now[0].Type.IsUnread()):
		d.leave(now[0].Path, is)
		d.left[len(d.left)-1].Unread = was == "" && now[0].Type.IsUnread()
	case len(then) > 0 && then[0].Type == snapshot.Lost:
		d.leave(then[0].Path, "in the snapshot "+was)
	case was != "" && is == "" && len(now) > 0:
		d.leave(now[0].Path, "in the snapshot "+was+", and no copy of it was kept")
	case was != "" && len(now) == 0:
		d.leave(then[0].Path, "it no longer exists; in the snapshot "+was+", and no copy of it was kept")
	}
	return true
}

// denied reports whether this user cannot move the present entry of a name aside, and records
// that.
func (d *difference) denied(then, now tree) bool {
	if machine.IsSuper() && machine.KnowsAllOwners() {
		return false
	}
	path := slices.Concat(then[:min(1, len(then))], now[:min(1, len(now))])[0].Path
	why := d.deniedIn(path, now)
	for _, e := range now {
		if e.Type == snapshot.Dir && why == "" && !d.mayChange(e.Path) {
			why = fmt.Sprintf("%q belongs to user %d, and this user may not change it", e.Path, e.UID)
		}
	}
	if len(then) > 0 && why == "" {
		if why = NeedsRoot(then[0]); why != "" {
			why += ", and only root can bring it back"
		}
	}
	if why != "" && len(now) == 0 {
		why = "it no longer exists; " + why
	}
	if why != "" {
		d.leave(path, why)
	}
	return why != ""
}

// deniedIn returns the reason why this user may not change a name in its directory; "" if this
// user may.
func (d *difference) deniedIn(path string, now tree) string {
	up := ""
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		up = path[:i]
	}
	if !d.mayChange(up) {
		return fmt.Sprintf("this user may not change %q", cmp.Or(up, "."))
	}
	dir, isThere := d.dirNow(up)
	own := uint32(os.Geteuid())
	if isThere && len(now) > 0 && !machine.IsSuper() && dir.Perm&0o1000 != 0 && dir.UID != own && now[0].UID != own {
		return fmt.Sprintf("it belongs to user %d, and %q is sticky", now[0].UID, cmp.Or(up, "."))
	}
	return ""
}

// mayChange reports whether this user may change names in a directory. One of his own he may:
// its mode is opened for that.
func (d *difference) mayChange(path string) bool {
	if may, known := d.changeable[path]; known {
		return may
	}
	st, isThere := d.dirNow(path)
	may := !isThere || int(st.UID) == os.Geteuid()
	if !may {
		if dir, err := d.openNow(path); err == nil {
			may = dir.Writable() == nil
			dir.Close()
		}
	}
	if d.changeable == nil {
		d.changeable = map[string]bool{}
	}
	d.changeable[path] = may
	return may
}

// dirNow describes a directory as it is now.
func (d *difference) dirNow(path string) (pathsafe.Stat, bool) {
	dir, err := d.openNow(path)
	if err != nil {
		return pathsafe.Stat{}, false
	}
	defer dir.Close()
	st, err := dir.Stat()
	return st, err == nil
}

func (d *difference) openNow(path string) (*pathsafe.Dir, error) {
	dir, err := d.root.Reopen()
	for name := range strings.SplitSeq(path, "/") {
		if err != nil || path == "" {
			break
		}
		above := dir
		dir, err = above.OpenDir(name)
		above.Close()
	}
	return dir, err
}

// deniedMeta reports whether this user cannot restore the metadata of a directory that stays,
// and records that if it differs.
func (d *difference) deniedMeta(then, now snapshot.Entry) bool {
	if d.fixedMeta(then, now) {
		return true
	}
	if machine.IsSuper() && machine.KnowsAllOwners() {
		return false
	}
	why := ""
	isOwners := then.UID == now.UID && then.GID == now.GID && slices.Equal(then.Xattrs(), now.Xattrs())
	if !isOwners || then.Mode != now.Mode && then.Mode&0o2000 != 0 { // else there is nothing to change but what its owner may
		why = NeedsRoot(then)
	}
	if own := os.Geteuid(); int(now.UID) != own && !machine.IsSuper() {
		why = fmt.Sprintf("it belongs to user %d", now.UID)
	}
	then.ModTime = now.ModTime
	if why != "" && !then.Equal(now) {
		d.leave(now.Path, why+", and only root can change its owner, mode and attributes")
	}
	return why != ""
}

// skipped records which entries of a restored tree this user cannot make, and returns a
// function that skips them.
func (d *difference) skipped(then tree) func(snapshot.Entry) bool {
	if machine.IsSuper() && machine.KnowsAllOwners() {
		return nil
	}
	for _, e := range then {
		if why := NeedsRoot(e); why != "" {
			d.leave(e.Path, "it no longer exists; "+why+", and only root can bring it back")
		}
	}
	return func(e snapshot.Entry) bool { return NeedsRoot(e) != "" }
}

// isDenied reports whether this user may not read what a commit has created, so that it cannot
// be kept, or not move it away; it stays then, and that is noted.
func (p *undoPlan) isDenied(dir *pathsafe.Dir, n *node, st pathsafe.Stat) bool {
	own := uint32(os.Geteuid())
	if machine.IsSuper() {
		return false
	}
	why := ""
	in, err := dir.Stat()
	if err == nil && in.UID != own && (dir.Writable() != nil || in.Perm&0o1000 != 0 && st.UID != own) {
		why = fmt.Sprintf("its directory belongs to user %d, and this user may not move it away", in.UID)
	}
	switch {
	case why != "":
	case st.Mode.IsRegular():
		f, _, err := dir.Open(n.name())
		if errors.Is(err, fs.ErrPermission) {
			why = "this user may not read it, so it cannot be kept"
		}
		if err == nil {
			_ = f.Close()
		}
	case st.Mode.IsDir():
		sub, err := dir.OpenDir(n.name())
		if err == nil {
			_, err = sub.Names()
			sub.Close()
		}
		if errors.Is(err, fs.ErrPermission) {
			why = "this user may not read it, so it cannot be kept"
		}
	}
	if why != "" {
		p.left = append(p.left, Left{Path: n.path, Why: why, Committed: true})
	}
	return why != ""
}

// held reports whether an entry to be removed is one that an earlier command has kept, or a
// directory with such an entry, and belongs to another user. This user cannot find out whether
// a process writes to it, so it would only be kept again, each time. It stays, and the
// directory of kept entries is recorded.
func (d *difference) held(now tree) bool {
	top, _, _ := strings.Cut(now[0].Path, "/")
	if machine.IsSuper() || !staging.IsKept(top) {
		return false
	}
	i := slices.IndexFunc(now, func(e snapshot.Entry) bool { return e.Type == snapshot.File && int(e.UID) != os.Geteuid() })
	if i >= 0 && now[0].Path == top {
		d.leave(top, fmt.Sprintf("an earlier command kept %q in it; it belongs to user %d, so this user cannot check whether a process is writing to it: remove it by hand", now[i].Path, now[i].UID))
		d.left[len(d.left)-1].Held = true
	}
	return i >= 0
}
