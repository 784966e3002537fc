package pathsafe

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/internal/served"
	"golang.org/x/sys/unix"
)

// Way describes how a path leads to a directory, and which names on it other users can rename or
// replace.
type Way struct {
	Real    string  // the absolute path without links
	Missing bool    // the directory does not exist
	End     Stat    // of the directory, if it exists
	Loose   []Loose // in the order in which the names were passed
	Links   []Link  // in that order
}

// Link is a symbolic link that was followed and that another unprivileged user created or can
// replace, so that user decides where it leads.
type Link struct {
	Path string // the link, in its directory
	By   string // which user created it, or else which users can replace it, as in [Loose]
	Own  bool   // it belongs to that user
}

// String returns a sentence that names the link and its owner.
func (l Link) String() string {
	if l.Own {
		return fmt.Sprintf("%q is a symbolic link of %s", l.Path, l.By)
	}
	return fmt.Sprintf("%q is a symbolic link that %s can replace", l.Path, l.By)
}

// Loose is a name that another unprivileged user, neither root nor the effective user of this
// process, can rename or replace.
type Loose struct {
	Path  string // the name, in its directory
	In    string // that directory, absolute and without links
	Owner uint32 // of In
	Perm  uint32 // st_mode & 07777 of In
	By    string // which users can, like "user 1000" or "every user"
}

// String returns a sentence that names the directory, its owner and its mode.
func (l Loose) String() string {
	return fmt.Sprintf("%s can rename or replace %q: %q belongs to user %d and has mode %04o", l.By, l.Path, l.In, l.Owner, l.Perm)
}

// WayTo walks from / along an absolute path, following links, and checks for every name on it who
// can rename it, by the directory that contains the name. Another user can rename the names in
//
//   - a directory that belongs to a user other than root and the effective user
//   - a directory without the sticky bit that others, its group, or a user or group of its
//     access control list may write. A group is trusted if /etc/passwd and /etc/group have a
//     member of it and none but root and the effective user, as for a user's private group. A
//     user without a line in /etc/passwd is a member of the group of this process that has
//     the user's number
//   - a directory with the sticky bit that others may write, if the name itself belongs to
//     such a user
//
// Missing parts of the path count as created by the effective user. In a user namespace that maps
// neither root nor the owner of /, all unmapped owners look alike and count as the owner of /.
func WayTo(path string) (Way, error) { return wayTo(path, false) }

func wayTo(path string, mounted bool) (Way, error) {
	if !filepath.IsAbs(path) {
		return Way{}, fmt.Errorf("way to %q: it is not an absolute path", path)
	}
	if len(path) > MaxPath {
		return Way{}, fmt.Errorf("way to %q: %w", path, ErrTooLong)
	}
	t := tracing{mounted: mounted}
	t.todo = t.split(path)
	defer t.close()
	err := t.restart()
	t.people = peopleOf(t.st.UID)
	for err == nil && len(t.todo) > 0 {
		err = t.step()
	}
	if err != nil {
		return Way{}, fmt.Errorf("way to %q: %w", path, err)
	}
	return t.way, nil
}

// ResolveDir returns the absolute path, without links, of the directory that path names now. It
// returns fs.ErrNotExist if there is none, and served.ErrForeign if the path leads through a file
// system of another user.
func ResolveDir(path string) (string, error) {
	way, err := WayFrom(path)
	switch {
	case err != nil:
		return "", err
	case way.Missing:
		return "", &fs.PathError{Op: "resolve", Path: path, Err: unix.ENOENT}
	case !way.End.Mode.IsDir():
		return "", &fs.PathError{Op: "resolve", Path: path, Err: unix.ENOTDIR}
	}
	return way.Real, nil
}

// WayFrom is [WayTo] for a path that may be relative to the working directory.
func WayFrom(path string) (Way, error) { return wayFrom(path, false) }

func wayFrom(path string, mounted bool) (Way, error) {
	if !filepath.IsAbs(path) {
		wd, err := os.Getwd()
		if err != nil {
			return Way{}, err
		}
		path = wd + "/" + path // not cleaned: the kernel resolves ".."
	}
	return wayTo(path, mounted)
}

// WayToMount is [WayFrom] for a path that may end at a mounted file system whose server must not
// get a request, because it is dead or belongs to another user: End has what the kernel has cached.
func WayToMount(path string) (Way, error) {
	if path == "" { // and not the working directory
		return Way{}, &fs.PathError{Op: "resolve", Path: path, Err: unix.ENOENT}
	}
	return wayFrom(path, true)
}

// A LinkError is a path that leads through another user's link.
type LinkError struct {
	Link Link
	Real string // the absolute path without links
}

func (e *LinkError) Error() string { return fmt.Sprintf("%s, and leads to %q", e.Link, e.Real) }

// CheckLinks returns a [*LinkError] if the path leads through another user's link.
func (w Way) CheckLinks() error {
	if len(w.Links) > 0 {
		return &LinkError{w.Links[0], w.Real}
	}
	return nil
}

// OpenOwn is [OpenRoot] for a directory in which something will be created: it returns a
// [*LinkError] for a link of another user, also for one that is created in the meantime.
func OpenOwn(path string) (*Dir, error) {
	way, err := WayFrom(path)
	if err == nil {
		err = way.CheckLinks()
	}
	if err == nil && way.Missing {
		err = unix.ENOENT
	}
	if err != nil {
		return nil, fmt.Errorf("open directory %q: %w", path, err)
	}
	return way.Open()
}

// Open opens the directory that the path led to, following no link. It does not open another one
// that has replaced it.
func (w Way) Open() (*Dir, error) {
	dir, err := openRoot(w.Real, served.OpenReal)
	if errors.Is(err, unix.ELOOP) {
		err = fmt.Errorf("%w: %w", ErrMoved, err)
	}
	if err != nil {
		return nil, err
	}
	if err := w.LeadsTo(dir); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// LeadsTo returns nil if the path led to this directory, on the same mount, and [ErrMoved] if it
// led to another one.
func (w Way) LeadsTo(d *Dir) error {
	st, err := d.Stat()
	if err == nil && (w.Missing || st.ID != w.End.ID) {
		err = ErrMoved
	}
	return d.wrap("way to", ".", err)
}

// tracing is a walk from / in progress.
type tracing struct {
	fd       int // of the current directory; 0 before the walk
	st       Stat
	todo     []string
	followed int
	people   people
	mounted  bool // the end gets no request
	way      Way  // Real is the path of the current directory
}

func (t *tracing) close() {
	if t.fd > 0 {
		closeFd(t.fd)
	}
}

// split returns the names of a path. If the end must get no request, the last name is not a
// "." in it.
func (t *tracing) split(path string) []string {
	names := strings.Split(path, "/")
	if t.mounted {
		names = slices.DeleteFunc(names, func(name string) bool { return name == "" || name == "." })
	}
	return names
}

// restart starts again at /.
func (t *tracing) restart() error {
	fd, err := retryFd(func() (int, error) { return unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return err
	}
	st, err := t.look(fd)
	if err != nil {
		return err
	}
	t.advance(fd, st, "/")
	return nil
}

// look describes a descriptor, unless another user serves its file system, and closes it on an
// error.
func (t *tracing) look(fd int) (st Stat, err error) {
	if t.mounted && len(t.todo) == 0 {
		if st, err = peekFd(fd); err != nil { // this user may not send requests to the server
			st, err = Stat{Mode: fs.ModeDir}, nil
		}
		return st, err
	}
	if err = served.Check(fd); err == nil {
		st, err = statFd(fd)
	}
	if err != nil {
		closeFd(fd)
	}
	return st, err
}

// advance continues with a directory, or with the end.
func (t *tracing) advance(fd int, st Stat, real string) {
	t.close()
	t.fd, t.st, t.way.Real, t.way.End = fd, st, real, st
}

func (t *tracing) step() error {
	name := t.todo[0]
	t.todo = t.todo[1:]
	if name == "" || name == "." {
		return nil
	}
	fd, err := retryFd(func() (int, error) {
		return unix.Openat(t.fd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		t.noteLoose(name, nil)
		t.way.Real = filepath.Join(append([]string{t.way.Real, name}, t.todo...)...)
		t.way.Missing, t.way.End, t.todo = true, Stat{}, nil
		return nil
	case err != nil:
		return fmt.Errorf("%q in %q: %w", name, t.way.Real, tooLong(err))
	}
	st, err := t.look(fd)
	if err != nil {
		return err
	}
	if name == ".." { // no name was looked up: it is the directory that this one is in
		t.advance(fd, st, filepath.Dir(t.way.Real))
		return nil
	}
	by := t.noteLoose(name, &st)
	if st.Mode&fs.ModeSymlink == 0 {
		t.advance(fd, st, filepath.Join(t.way.Real, name))
		return nil
	}
	defer closeFd(fd)
	link := Link{Path: filepath.Join(t.way.Real, name), By: by}
	if !t.people.trusts(st.UID) {
		link.By, link.Own = fmt.Sprintf("user %d", st.UID), true
	}
	if link.By != "" {
		t.way.Links = append(t.way.Links, link)
	}
	return t.follow(fd)
}

// follow prepends the target of a link to the remaining names.
func (t *tracing) follow(fd int) error {
	if t.followed++; t.followed > maxFollow {
		return unix.ELOOP
	}
	buf := make([]byte, MaxPath+1)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return err
	}
	target := string(buf[:n])
	t.todo = slices.Concat(t.split(target), t.todo)
	if strings.HasPrefix(target, "/") {
		return t.restart()
	}
	return nil
}

// noteLoose records name, an entry of the current directory, if another user can rename or replace
// it, and returns which users can. entry is nil for a name that does not exist.
func (t *tracing) noteLoose(name string, entry *Stat) (by string) {
	l := Loose{Path: filepath.Join(t.way.Real, name), In: t.way.Real, Owner: t.st.UID, Perm: t.st.Perm}
	if l.By = t.people.renamersIn(t.fd, t.st)(entry); l.By == "" {
		return ""
	}
	if !slices.Contains(t.way.Loose, l) {
		t.way.Loose = append(t.way.Loose, l)
	}
	return l.By
}

// TrustedUsers are the users that [WayTo] trusts: root, the effective user of this process, and in
// a user namespace the owner of /.
type TrustedUsers struct{ people people }

// Trusted returns the trusted users of this process.
func Trusted() (TrustedUsers, error) {
	var top unix.Stat_t
	if err := retry(func() error { return unix.Stat("/", &top) }); err != nil {
		return TrustedUsers{}, fmt.Errorf("look at %q: %w", "/", err)
	}
	return TrustedUsers{peopleOf(top.Uid)}, nil
}

// Has reports whether a user is trusted.
func (t TrustedUsers) Has(uid uint32) bool { return t.people.trusts(uid) }

// Renamers returns a function that returns which untrusted users can rename or replace an entry of
// the directory d with attributes st, in the words of [Loose]; "" for none. The entry is nil for a
// name that does not exist.
func (t TrustedUsers) Renamers(d *Dir, st Stat) (of func(entry *Stat) string, err error) {
	err = d.do("stat", ".", func(fd int) error {
		of = t.people.renamersIn(fd, st)
		return nil
	})
	return of, err
}

// renamersIn is [TrustedUsers.Renamers] for a descriptor.
func (p people) renamersIn(fd int, st Stat) func(entry *Stat) string {
	const sticky, byGroup, byOthers = 0o1000, 0o020, 0o002
	by := ""
	switch {
	case st.Perm&byOthers != 0 && st.Perm&sticky == 0: // whichever user owns it
		by = "every user"
	case !p.trusts(st.UID):
		by = fmt.Sprintf("user %d", st.UID)
	case st.Perm&(byGroup|byOthers) == 0:
	case st.Perm&sticky != 0:
		return func(entry *Stat) string {
			if entry == nil || p.trusts(entry.UID) {
				return ""
			}
			return fmt.Sprintf("user %d", entry.UID)
		}
	case hasACL(fd):
		by = "the users named in its access control list"
	case !p.trustsGroup(st.GID):
		by = fmt.Sprintf("group %d", st.GID)
	}
	return func(*Stat) string { return by }
}

// hasACL reports whether the directory may have an access control list, so that its group bits are
// the mask of the list.
func hasACL(fd int) bool {
	if checkProc() != nil {
		return true
	}
	err := retry(func() error {
		_, err := unix.Getxattr(procPath(fd), "system.posix_acl_access", nil)
		return err
	})
	return !errors.Is(err, unix.ENODATA) && !errors.Is(err, unix.ENOTSUP)
}

// people are the users who may rename any entry.
type people struct {
	self uint32
	top  uint32 // the user whom an unmapped owner counts as; else self

	group uint32 // of this process
}

// peopleOf returns them on a machine whose / belongs to this user.
func peopleOf(top uint32) people {
	p := people{self: uint32(os.Geteuid()), group: uint32(os.Getegid())}
	p.top = p.self
	if isUnmapped(top) {
		p.top = top
	}
	return p
}

func (p people) trusts(uid uint32) bool { return uid == 0 || uid == p.self || uid == p.top }

// trustsGroup reports whether the group has members, and none but trusted users.
func (p people) trustsGroup(gid uint32) bool {
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return false
	}
	group, err := os.ReadFile("/etc/group")
	if err != nil {
		return false
	}
	members, known := membersOf(gid, string(passwd), string(group))
	if p.isOwnGroup(gid, string(passwd)) {
		members = append(members, p.self)
	}
	return known && len(members) > 0 && !slices.ContainsFunc(members, func(uid uint32) bool { return !p.trusts(uid) })
}

// isOwnGroup reports whether a group counts as the private one of the effective user: it has the
// user's number, this process is in it, and /etc/passwd has no line of the user that contradicts.
func (p people) isOwnGroup(gid uint32, passwd string) bool {
	if gid != p.self || gid != p.group {
		return false
	}
	for line := range strings.Lines(passwd) {
		var uid uint32
		if f := strings.Split(line, ":"); len(f) > 2 && number(f[2], &uid) && uid == p.self {
			return false
		}
	}
	return true
}

// membersOf returns the members of a group by /etc/passwd and /etc/group. known is false if a
// member has no line in /etc/passwd.
func membersOf(gid uint32, passwd, group string) (members []uint32, known bool) {
	uids := map[string]uint32{}
	for line := range strings.Lines(passwd) {
		var uid, own uint32
		f := strings.Split(line, ":")
		if len(f) < 4 || !number(f[2], &uid) || !number(f[3], &own) {
			continue
		}
		uids[f[0]] = uid
		if own == gid {
			members = append(members, uid)
		}
	}
	for line := range strings.Lines(group) {
		var id uint32
		f := strings.Split(strings.TrimRight(line, "\n"), ":")
		if len(f) < 4 || !number(f[2], &id) || id != gid {
			continue
		}
		for name := range strings.SplitSeq(f[3], ",") {
			uid, ok := uids[strings.TrimSpace(name)]
			if !ok && strings.TrimSpace(name) != "" {
				return nil, false
			}
			if ok {
				members = append(members, uid)
			}
		}
	}
	return members, true
}

func number(s string, n *uint32) bool {
	read, err := strconv.ParseUint(s, 10, 32)
	*n = uint32(read)
	return err == nil
}

// isUnmapped reports whether this owner represents all users that a user namespace does not
// map.
func isUnmapped(uid uint32) bool {
	var overflow uint32
	raw, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil || !number(strings.TrimSpace(string(raw)), &overflow) || uid != overflow {
		return false
	}
	table, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	return !isMapped(uid, string(table))
}

// isMapped reports whether a table like /proc/self/uid_map has this user.
func isMapped(uid uint32, table string) bool {
	for line := range strings.Lines(table) {
		var inside, outside, count uint64
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && uint64(uid) >= inside && uint64(uid) < inside+count {
			return true
		}
	}
	return false
}
