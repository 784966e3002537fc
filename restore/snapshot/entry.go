package snapshot

import (
	"crypto/sha256"
	"io/fs"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// Type is what an entry is.
type Type string

// The types of entries. Nothing stood where an entry is Absent. From Special on nothing is kept
// but that they were there.
const (
	File    Type = "file"
	Dir     Type = "dir"
	Link    Type = "link"
	Fifo    Type = "fifo"
	Absent  Type = "absent"
	Special Type = "special" // a socket or a device
	Mount   Type = "mount"   // another file system, or a subvolume
	// Unread is what this user may not read: a file, a directory with all that is in it, or
	// attributes. The snapshot is a partial one.
	Unread Type = "unread"
	// Broken is an entry that the disk cannot return: [Entry.Err] is the reason. The snapshot
	// is a partial one.
	Broken   Type = "broken"
	Reserved Type = "reserved" // a name of the root that begins as those of this program
	Deep     Type = "deep"     // a directory with a path in it of more than [pathsafe.MaxPath] bytes
	// Lost is a file whose content the store has no more. It is in no manifest, see [Snapshot.Without].
	Lost Type = "lost"
)

var types = []Type{File, Dir, Link, Fifo, Absent, Special, Mount, Unread, Broken, Reserved, Deep}

// Kept reports whether the snapshot can bring back what has the type.
func (t Type) Kept() bool { return t.Unkept() == "" }

// Unkept returns the reason why entries of the type are not kept; "" if they are.
func (t Type) Unkept() string {
	switch t {
	case Special:
		return "it is a socket or a device"
	case Mount:
		return "it is a mount or a subvolume"
	case Unread:
		return "this user may not read it"
	case Broken:
		return "the disk reports an error for it"
	case Reserved:
		return "its name begins with a prefix reserved for this program"
	case Deep:
		return "a path in it is too long"
	case Lost:
		return "its content is damaged or lost"
	}
	return ""
}

// IsUnread reports whether it could not be read, so that a snapshot with it is a partial one.
func (t Type) IsUnread() bool { return t == Unread || t == Broken }

// Digest is the SHA-256 of a file's content.
type Digest [sha256.Size]byte

// Entry is one name of a snapshot.
type Entry struct {
	Path    string // bytes as they were; "" is the root
	Type    Type
	Asked   bool   // this very name was requested
	Mode    uint32 // permission, set-id and sticky bits, 07777
	UID     uint32
	GID     uint32
	ModTime time.Time
	Size    int64  // of a file, bytes
	Digest  Digest // of a file
	Sparse  bool   // a file that had holes
	Hard    string // path of an earlier entry that is the same inode; "" for none
	Links   uint32 // how many names the inode had, also where the snapshot does not hold them; 0 for one
	Target  string // of a link
	Err     string // of what is Broken: the error of the system

	// The identity that Take saw.
	Dev, Ino   uint64
	ChangeTime time.Time
	BirthTime  time.Time // zero where the file system does not know it

	xattrs []pathsafe.Xattr
	unread bool  // a file whose content is yet to be read
	gone   bool  // it went away while it was looked at
	holes  int64 // of a file, estimated from its allocated blocks
}

// Unkept is that of its type, with the error of what is broken.
func (e Entry) Unkept() string {
	if e.Type == Broken {
		return e.Type.Unkept() + ": " + e.Err
	}
	return e.Type.Unkept()
}

// Xattrs returns the extended attributes, sorted by name.
func (e Entry) Xattrs() []pathsafe.Xattr { return append([]pathsafe.Xattr(nil), e.xattrs...) }

func typeOf(mode fs.FileMode) Type {
	switch mode.Type() {
	case 0:
		return File
	case fs.ModeDir:
		return Dir
	case fs.ModeSymlink:
		return Link
	case fs.ModeNamedPipe:
		return Fifo
	}
	return Special
}

func makeEntry(path string, st pathsafe.Stat) Entry {
	e := Entry{
		Path: path, Type: typeOf(st.Mode), Mode: st.Perm, UID: st.UID, GID: st.GID, ModTime: st.ModTime,
		Dev: st.ID.Dev, Ino: st.ID.Ino, ChangeTime: st.ChangeTime, BirthTime: st.BirthTime,
	}
	if e.Type != Dir && st.Links > 1 {
		e.Links = st.Links
	}
	if e.Type == File {
		e.Size, e.holes = st.Size, max(0, st.Size-st.Allocated)
	}
	return e
}

// Equal reports whether two entries are of the same thing, as far as a snapshot brings it
// back: content and metadata, not identity, nor which names are of one file.
func (e Entry) Equal(other Entry) bool {
	return e.Type == other.Type && e.Digest == other.Digest && e.Size == other.Size && e.Target == other.Target &&
		(e.Mode == other.Mode || e.Type == Link) && e.UID == other.UID && e.GID == other.GID &&
		e.ModTime.Equal(other.ModTime) && slices.Equal(e.xattrs, other.xattrs)
}

// First is the path of the first name of the same file: its own where it has one name.
func (e Entry) First() string {
	if e.Hard != "" {
		return e.Hard
	}
	return e.Path
}

// Stat returns what Take saw of it, but for the mount and the number of links.
func (e Entry) Stat() pathsafe.Stat {
	modes := map[Type]fs.FileMode{Dir: fs.ModeDir, Link: fs.ModeSymlink, Fifo: fs.ModeNamedPipe}
	return pathsafe.Stat{
		Mode: modes[e.Type], Perm: e.Mode, Size: e.Size, ModTime: e.ModTime, ChangeTime: e.ChangeTime, BirthTime: e.BirthTime,
		ID: pathsafe.ID{Dev: e.Dev, Ino: e.Ino}, UID: e.UID, GID: e.GID,
	}
}

// same reports whether two looks at a name saw the very same.
func (e *Entry) same(other *Entry) bool {
	return e.Dev == other.Dev && e.Type == other.Type && e.Ino == other.Ino && e.BirthTime.Equal(other.BirthTime) &&
		e.Size == other.Size && e.ModTime.Equal(other.ModTime) && e.ChangeTime.Equal(other.ChangeTime) &&
		e.Mode == other.Mode && e.UID == other.UID && e.GID == other.GID
}
