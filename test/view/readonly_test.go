package view

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// A try is a call that would change something.
type try struct {
	call func(path string) error

	// What the kernel says instead of EROFS, where it looks at something else
	// first: for a file, a directory, the root of the view, a name that is not
	// there.
	file, dir, root, missing unix.Errno
}

// The root is a mount point, so what acts on its name in the directory above
// finds it busy. What changes what is there finds nothing at a name that is not.
// mkdir, mknod and link say EEXIST before they look at the file system, as open
// with O_CREAT opens what is there; all writing to a directory is EISDIR.
var tries = map[string]try{
	"open to write":           {call: opening(unix.O_WRONLY), dir: unix.EISDIR, root: unix.EISDIR, missing: unix.ENOENT},
	"open to read and write":  {call: opening(unix.O_RDWR), dir: unix.EISDIR, root: unix.EISDIR, missing: unix.ENOENT},
	"open to append":          {call: opening(unix.O_WRONLY | unix.O_APPEND), dir: unix.EISDIR, root: unix.EISDIR, missing: unix.ENOENT},
	"open and truncate":       {call: opening(unix.O_RDONLY | unix.O_TRUNC), dir: unix.EISDIR, root: unix.EISDIR, missing: unix.ENOENT},
	"open or create to write": {call: opening(unix.O_WRONLY | unix.O_CREAT), dir: unix.EISDIR, root: unix.EISDIR},
	"create":                  {call: opening(unix.O_RDONLY | unix.O_CREAT | unix.O_EXCL), file: unix.EEXIST, dir: unix.EEXIST, root: unix.EEXIST},
	"creat":                   {call: opening(unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC), dir: unix.EISDIR, root: unix.EISDIR},
	"create without a name":   {call: opening(unix.O_TMPFILE | unix.O_RDWR), file: unix.ENOTDIR, missing: unix.ENOENT},
	"truncate":                {call: func(path string) error { return unix.Truncate(path, 0) }, dir: unix.EISDIR, root: unix.EISDIR, missing: unix.ENOENT},
	"lengthen":                {call: func(path string) error { return unix.Truncate(path, 1<<30) }, dir: unix.EISDIR, root: unix.EISDIR, missing: unix.ENOENT},
	"access to write":         {call: func(path string) error { return unix.Access(path, unix.W_OK) }, missing: unix.ENOENT},

	"mkdir":   {call: func(path string) error { return unix.Mkdir(path, 0o755) }, file: unix.EEXIST, dir: unix.EEXIST, root: unix.EEXIST},
	"file":    {call: node(unix.S_IFREG), file: unix.EEXIST, dir: unix.EEXIST, root: unix.EEXIST},
	"fifo":    {call: node(unix.S_IFIFO), file: unix.EEXIST, dir: unix.EEXIST, root: unix.EEXIST},
	"socket":  {call: node(unix.S_IFSOCK), file: unix.EEXIST, dir: unix.EEXIST, root: unix.EEXIST},
	"device":  {call: node(unix.S_IFCHR), file: unix.EEXIST, dir: unix.EEXIST, root: unix.EEXIST},
	"symlink": {call: func(path string) error { return unix.Symlink("x", path) }, file: unix.EEXIST, dir: unix.EEXIST, root: unix.EEXIST},

	"unlink":      {call: unix.Unlink, root: unix.EISDIR},
	"rmdir":       {call: unix.Rmdir, root: unix.EBUSY},
	"chmod":       {call: func(path string) error { return unix.Chmod(path, 0o777) }, missing: unix.ENOENT},
	"fchmodat2":   {call: func(path string) error { return unix.Fchmodat(unix.AT_FDCWD, path, 0o777, unix.AT_SYMLINK_NOFOLLOW) }, missing: unix.ENOENT},
	"chown":       {call: func(path string) error { return unix.Chown(path, 1, 1) }, missing: unix.ENOENT},
	"lchown":      {call: func(path string) error { return unix.Lchown(path, 1, 1) }, missing: unix.ENOENT},
	"utimensat":   {call: touch(0), missing: unix.ENOENT},
	"touch":       {call: touch(unix.UTIME_NOW), missing: unix.ENOENT},
	"setxattr":    {call: func(path string) error { return unix.Setxattr(path, "user.x", []byte("y"), 0) }, missing: unix.ENOENT},
	"set ours":    {call: func(path string) error { return unix.Setxattr(path, "user.spectrum.sha256", []byte("y"), 0) }, missing: unix.ENOENT},
	"trusted":     {call: func(path string) error { return unix.Setxattr(path, "trusted.x", []byte("y"), 0) }, missing: unix.ENOENT},
	"capability":  {call: func(path string) error { return unix.Setxattr(path, "security.capability", make([]byte, 20), 0) }, missing: unix.ENOENT},
	"removexattr": {call: func(path string) error { return unix.Removexattr(path, "user.spectrum.sha256") }, missing: unix.ENOENT},
}

func opening(flags int) func(string) error {
	return func(path string) error {
		fd, err := unix.Open(path, flags|unix.O_NONBLOCK, 0o644)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
}

func node(kind uint32) func(string) error {
	return func(path string) error { return unix.Mknod(path, kind|0o644, 0x103) }
}

func touch(nsec int64) func(string) error {
	return func(path string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{{Nsec: nsec}, {Nsec: nsec}}, 0)
	}
}

// TestReadOnly tries every change on everything, as root.
func TestReadOnly(t *testing.T) {
	p := harness.New(t, harness.Small())
	v := p.Mount(t, harness.Mounting{})
	before, sources := harness.MustTake(t, v.Dir), harness.MustTake(t, p.Dir)
	places := []string{v.Path("new/c.txt"), v.Path("new/sub"), v.Dir, v.Path("new/missing")}
	for name, try := range tries {
		for i, want := range []unix.Errno{try.file, try.dir, try.root, try.missing} {
			if want == 0 {
				want = unix.EROFS
			}
			if err := try.call(places[i]); err != want {
				t.Errorf("%s %q: %v, want %v", name, places[i], err, want)
			}
		}
	}
	t.Logf("%d calls on %d kinds of paths", len(tries), len(places))
	if diff := harness.Diff(before, harness.MustTake(t, v.Dir)); diff != "" {
		t.Errorf("the view has changed:\n%s", diff)
	}
	if diff := harness.Diff(sources, harness.MustTake(t, p.Dir)); diff != "" {
		t.Errorf("the sources have changed:\n%s", diff)
	}
}

// TestReadOnlyNames tries what takes two names: within the view, and between it
// and a directory beside it. A rename between file systems is EXDEV before the
// kernel looks whether they can be written; a link looks at that first.
func TestReadOnlyNames(t *testing.T) {
	p := harness.New(t, harness.Small())
	v := p.Mount(t, harness.Mounting{})
	outside := t.TempDir()
	at := func(name string) string { return filepath.Join(outside, name) }
	harness.Must(t, os.WriteFile(at("file"), []byte("outside"), 0o644))
	before := harness.MustTake(t, v.Dir)
	file, dir, missing := v.Path("new/c.txt"), v.Path("new/sub"), v.Path("missing")
	for _, try := range []struct {
		what     string
		from, to string
		flags    uint
		rename   error
		link     error
	}{
		{"to a new name", file, missing, 0, unix.EROFS, unix.EROFS},
		{"to a new name at most", file, missing, unix.RENAME_NOREPLACE, unix.EROFS, unix.EROFS},
		{"over a file", file, v.Path("top.txt"), 0, unix.EROFS, unix.EEXIST},
		{"exchanged", file, v.Path("top.txt"), unix.RENAME_EXCHANGE, unix.EROFS, unix.EEXIST},
		{"whited out", file, missing, unix.RENAME_WHITEOUT, unix.EROFS, unix.EROFS},
		{"a directory", dir, missing, 0, unix.EROFS, unix.EROFS},
		{"the root", v.Dir, at("root"), 0, unix.EBUSY, unix.EXDEV},
		{"something that is missing", missing, v.Path("missing too"), 0, unix.EROFS, unix.ENOENT},
		{"out", file, at("out"), 0, unix.EXDEV, unix.EXDEV},
		{"in", at("file"), missing, 0, unix.EXDEV, unix.EROFS},
		{"in, over a file", at("file"), file, 0, unix.EXDEV, unix.EEXIST},
	} {
		if err := unix.Renameat2(unix.AT_FDCWD, try.from, unix.AT_FDCWD, try.to, try.flags); err != try.rename {
			t.Errorf("rename %s: %v, want %v", try.what, err, try.rename)
		}
		if err := unix.Link(try.from, try.to); err != try.link {
			t.Errorf("link %s: %v, want %v", try.what, err, try.link)
		}
	}
	unnamed, err := unix.Open(outside, unix.O_TMPFILE|unix.O_RDWR, 0o600)
	harness.Must(t, err)
	defer unix.Close(unnamed)
	if err := unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", unnamed), unix.AT_FDCWD, missing, unix.AT_SYMLINK_FOLLOW); err != unix.EROFS {
		t.Errorf("linking a file without a name: %v", err)
	}
	if diff := harness.Diff(before, harness.MustTake(t, v.Dir)); diff != "" {
		t.Errorf("the view has changed:\n%s", diff)
	}
}

// TestReadOnlyHandle tries what takes an open file: it is open to be read, and
// that is what the kernel says.
func TestReadOnlyHandle(t *testing.T) {
	p := harness.New(t, harness.Small())
	v := p.Mount(t, harness.Mounting{})
	f, err := os.Open(v.Path("new/c.txt"))
	harness.Must(t, err)
	defer f.Close()
	fd := int(f.Fd())
	other, err := os.Open(p.Source("top.txt"))
	harness.Must(t, err)
	defer other.Close()
	from := int(other.Fd())
	for what, call := range map[string]struct{ err, want error }{
		"write":            {second(unix.Write(fd, []byte("x"))), unix.EBADF},
		"pwrite":           {second(unix.Pwrite(fd, []byte("x"), 1)), unix.EBADF},
		"ftruncate":        {unix.Ftruncate(fd, 1), unix.EINVAL},
		"fallocate":        {unix.Fallocate(fd, 0, 0, 10), unix.EBADF},
		"punch a hole":     {unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 10), unix.EBADF},
		"copy_file_range":  {second(unix.CopyFileRange(from, nil, fd, nil, 3, 0)), unix.EBADF},
		"sendfile":         {second(unix.Sendfile(fd, from, nil, 3)), unix.EBADF},
		"clone":            {unix.IoctlFileClone(fd, from), unix.EXDEV},
		"fchmod":           {unix.Fchmod(fd, 0o777), unix.EROFS},
		"fchown":           {unix.Fchown(fd, 1, 1), unix.EROFS},
		"futimens":         {unix.UtimesNanoAt(fd, "", make([]unix.Timespec, 2), unix.AT_EMPTY_PATH), unix.EROFS},
		"fsetxattr":        {unix.Fsetxattr(fd, "user.x", []byte("y"), 0), unix.EROFS},
		"fremovexattr":     {unix.Fremovexattr(fd, "user.spectrum.sha256"), unix.EROFS},
		"to append":        {second(unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_APPEND)), nil},
		"write after that": {second(unix.Write(fd, []byte("x"))), unix.EBADF},
		"fsync":            {unix.Fsync(fd), nil},
		"reopened":         {opening(unix.O_RDWR)(fmt.Sprintf("/proc/self/fd/%d", fd)), unix.EROFS},
	} {
		if call.err != call.want {
			t.Errorf("%s: %v, want %v", what, call.err, call.want)
		}
	}
	flags := uint32(0x10) // immutable
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(&flags))); errno == 0 {
		t.Error("flags can be set")
	}
	if got, err := os.ReadFile(v.Path("new/c.txt")); err != nil || string(got) != "gamma\n" {
		t.Errorf("it reads as %q, %v", got, err)
	}
}

// second is the error of a call that also gives a number.
func second[T any](_ T, err error) error { return err }

// TestRemountedToWrite: root may take the kernel's own refusal away; the server
// still has nothing that could write.
func TestRemountedToWrite(t *testing.T) {
	p := harness.New(t, harness.Small())
	v := p.Mount(t, harness.Mounting{})
	before := harness.MustTake(t, v.Dir)
	harness.Must(t, unix.Mount("", v.Dir, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, ""))
	file := v.Path("new/c.txt")
	for what, err := range map[string]error{
		"write":    os.WriteFile(file, []byte("other"), 0o644),
		"append":   appendTo(file),
		"create":   os.WriteFile(v.Path("created"), []byte("x"), 0o644),
		"mkdir":    os.Mkdir(v.Path("made"), 0o755),
		"remove":   os.Remove(file),
		"rename":   os.Rename(file, v.Path("renamed")),
		"chmod":    os.Chmod(file, 0o777),
		"truncate": os.Truncate(file, 1),
		"setxattr": unix.Setxattr(file, "user.x", []byte("y"), 0),
	} {
		if err == nil {
			t.Errorf("%s succeeds", what)
		}
	}
	if diff := harness.Diff(before, harness.MustTake(t, v.Dir)); diff != "" {
		t.Errorf("the view has changed:\n%s", diff)
	}
}

func appendTo(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("more")
	return errors.Join(err, f.Close())
}
