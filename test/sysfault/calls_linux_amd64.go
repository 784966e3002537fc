package sysfault

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A shape says where the arguments of a call are; -1: it has none. The
// descriptor and the name make the path.
type shape struct {
	name              string
	fd, file          int
	toFd, toFile      int
	flags, count      int
	descriptor, plain bool // it returns a descriptor; it changes nothing
}

func about(name string, fd, file int) shape {
	return shape{name: name, fd: fd, file: file, toFd: -1, toFile: -1, flags: -1, count: -1}
}

func moving(name string, fd, count int) shape {
	s := about(name, fd, -1)
	s.count = count
	return s
}

func flagged(name string, fd, file, flags int) shape {
	s := about(name, fd, file)
	s.flags = flags
	return s
}

func linking(name string, flags int) shape {
	s := flagged(name, 0, 1, flags)
	s.toFd, s.toFile = 2, 3
	return s
}

func reading(s shape) shape {
	s.plain = true
	return s
}

func opening(name string, flags int) shape {
	s := flagged(name, 0, 1, flags)
	s.descriptor = true
	return s
}

const openHow = 100 // the flags are in memory, at argument 2

var shapes = map[uint64]shape{
	unix.SYS_OPENAT:          opening("openat", 2),
	unix.SYS_OPENAT2:         opening("openat2", openHow),
	unix.SYS_MKDIRAT:         about("mkdirat", 0, 1),
	unix.SYS_RENAMEAT:        linking("renameat", -1),
	unix.SYS_RENAMEAT2:       linking("renameat2", 4),
	unix.SYS_LINKAT:          linking("linkat", 4),
	unix.SYS_SYMLINKAT:       about("symlinkat", 1, 2),
	unix.SYS_UNLINKAT:        flagged("unlinkat", 0, 1, 2),
	unix.SYS_WRITE:           moving("write", 0, 2),
	unix.SYS_PWRITE64:        moving("pwrite64", 0, 2),
	unix.SYS_WRITEV:          about("writev", 0, -1),
	unix.SYS_COPY_FILE_RANGE: moving("copy_file_range", 2, 4),
	unix.SYS_SENDFILE:        moving("sendfile", 0, 3),
	unix.SYS_SPLICE:          moving("splice", 2, 4),
	unix.SYS_IOCTL:           about("ioctl", 0, -1),
	unix.SYS_FTRUNCATE:       about("ftruncate", 0, -1),
	unix.SYS_FALLOCATE:       flagged("fallocate", 0, -1, 1),
	unix.SYS_FCHMOD:          about("fchmod", 0, -1),
	unix.SYS_FCHMODAT:        about("fchmodat", 0, 1),
	unix.SYS_FCHMODAT2:       about("fchmodat2", 0, 1),
	unix.SYS_FCHOWN:          about("fchown", 0, -1),
	unix.SYS_FCHOWNAT:        about("fchownat", 0, 1),
	unix.SYS_UTIMENSAT:       about("utimensat", 0, 1),
	unix.SYS_FSETXATTR:       about("fsetxattr", 0, -1),
	unix.SYS_FSYNC:           about("fsync", 0, -1),
	unix.SYS_FDATASYNC:       about("fdatasync", 0, -1),
	unix.SYS_SYNCFS:          about("syncfs", 0, -1),
	unix.SYS_SYNC_FILE_RANGE: about("sync_file_range", 0, -1),
	unix.SYS_FLOCK:           about("flock", 0, -1),
	unix.SYS_CLOSE:           about("close", 0, -1),
	unix.SYS_CLOSE_RANGE:     about("close", 0, -1), // of several descriptors, the first of them
	unix.SYS_READ:            reading(moving("read", 0, 2)),
	unix.SYS_PREAD64:         reading(moving("pread64", 0, 2)),
	unix.SYS_GETDENTS64:      reading(about("getdents64", 0, -1)),
	unix.SYS_FSTAT:           reading(about("fstat", 0, -1)),
	unix.SYS_FSTATFS:         reading(about("fstatfs", 0, -1)),
	unix.SYS_NEWFSTATAT:      reading(about("newfstatat", 0, 1)),
	unix.SYS_STATX:           reading(about("statx", 0, 1)),
	unix.SYS_READLINKAT:      reading(about("readlinkat", 0, 1)),
	unix.SYS_FGETXATTR:       reading(about("fgetxattr", 0, -1)),
	unix.SYS_FCNTL:           reading(about("fcntl", 0, -1)),
	unix.SYS_FACCESSAT2:      reading(about("faccessat2", 0, 1)),
}

// plainNames are the calls of shapes that change nothing.
var plainNames = func() map[string]bool {
	names := map[string]bool{}
	for _, s := range shapes {
		names[s.name] = s.plain
	}
	return names
}()

// MutatingCalls returns the names of all calls that Mutating can match, sorted.
func MutatingCalls() []string {
	var names []string
	for name, plain := range plainNames {
		if !plain {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Mutating matches the calls that can change a file system, or what a program
// holds of it: all writing calls, the synchronising ones, flock and close, and
// opens that create, truncate or may write.
func Mutating(c Call) bool {
	switch c.Name {
	case "openat", "openat2":
		return c.Flags&(unix.O_CREAT|unix.O_TRUNC|unix.O_WRONLY|unix.O_RDWR) != 0
	default:
		return !plainNames[c.Name]
	}
}

// entered makes the Call from what the kernel says about it. It is false for
// calls that never count.
func entered(tid int, in syscallInfo) (Call, shape, bool) {
	s, ok := shapes[in.Nr]
	if !ok || s.name == "ioctl" && in.Args[1] != unix.FICLONE && in.Args[1] != unix.FICLONERANGE {
		return Call{}, s, false
	}
	c := Call{Tid: tid, Name: s.name, Fd: int(int32(in.Args[s.fd]))}
	c.Path = pathOf(tid, in, s.fd, s.file)
	if c.Name == "write" && (c.Fd <= 2 || c.Path == "anon_inode:[eventfd]") {
		return Call{}, s, false
	}
	if s.toFd >= 0 {
		c.To = pathOf(tid, in, s.toFd, s.toFile)
	}
	switch {
	case s.flags == openHow:
		c.Flags = peek(tid, in.Args[2])
	case s.flags >= 0:
		c.Flags = in.Args[s.flags]
	}
	switch {
	case s.count >= 0:
		c.Count = in.Args[s.count]
	case s.name == "writev":
		for i := range in.Args[2] {
			c.Count += peek(tid, in.Args[1]+16*i+8)
		}
	}
	return c, s, true
}

// pathOf is the path that a descriptor and a name in memory make.
func pathOf(tid int, in syscallInfo, fd, file int) string {
	name := ""
	if file >= 0 && in.Args[file] != 0 {
		name = peekString(tid, in.Args[file])
	}
	if own, ok := strings.CutPrefix(name, "/proc/self/"); ok {
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/%s", tid, own)); err == nil {
			return target
		}
	}
	if strings.HasPrefix(name, "/") {
		return name
	}
	link := fmt.Sprintf("/proc/%d/fd/%d", tid, int32(in.Args[fd]))
	if int32(in.Args[fd]) == unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/cwd", tid)
	}
	dir, err := os.Readlink(link)
	if err != nil || name == "" {
		return dir
	}
	return filepath.Join(dir, name)
}

// peek reads a word of the memory of the program.
func peek(tid int, at uint64) uint64 {
	var word [8]byte
	if _, err := syscall.PtracePeekData(tid, uintptr(at), word[:]); err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(word[:])
}

// peekString reads a string that ends with a NUL, of at most 4,096 bytes.
func peekString(tid int, at uint64) string {
	var text []byte
	for len(text) < 4096 {
		// Not beyond a page: the next one may not be there.
		var part [256]byte
		from := at + uint64(len(text))
		want := min(len(part), os.Getpagesize()-int(from)%os.Getpagesize())
		local := []unix.Iovec{{Base: &part[0], Len: uint64(want)}}
		n, err := unix.ProcessVMReadv(tid, local, []unix.RemoteIovec{{Base: uintptr(from), Len: want}}, 0)
		if err != nil || n <= 0 {
			break
		}
		if i := bytes.IndexByte(part[:n], 0); i >= 0 {
			return string(append(text, part[:i]...))
		}
		text = append(text, part[:n]...)
	}
	return string(text)
}
