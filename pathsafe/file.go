package pathsafe

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A File is an open regular file. Unlike an [os.File] it requires no further system call to
// construct, and the garbage collector does not close it: the caller does.
type File struct {
	fd   int
	name string
	size int64  // when it was opened; -1 for a new one
	kept bool   // see Keep
	lent func() // see Lend; nil for an owner
}

// An Opened is a [File] or an [os.File].
type Opened interface {
	Fd() uintptr
	Name() string
}

// Fd returns the descriptor, which stays the property of f.
func (f *File) Fd() uintptr { return uintptr(f.fd) }

// Name returns the name that the file was opened by, for messages only.
func (f *File) Name() string { return f.name }

// Close closes the file. It must not be in use then, and is not closed twice.
func (f *File) Close() error {
	if f.fd < 0 {
		return f.failed("close", os.ErrClosed)
	}
	fd := f.fd
	f.fd = -1
	f.release()
	if f.lent != nil {
		f.lent()
		return nil
	}
	return f.failed("close", unix.Close(fd))
}

// Sync makes content and metadata durable.
func (f *File) Sync() error {
	return f.failed("sync", retry(func() error { return unix.Fsync(f.fd) }))
}

// ReadAt implements [io.ReaderAt]. A read beyond the size that the file had when it was opened,
// which returns exactly the rest, is at the end: the kernel is not called again.
func (f *File) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(f.fd, p[n:], off+int64(n))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return n, f.failed("read", err)
		case m == 0:
			return n, io.EOF
		}
		n += m
		if n < len(p) && off+int64(n) == f.size {
			return n, io.EOF
		}
	}
	return n, nil
}

// OS returns the same open file as an [os.File], which owns the descriptor from now on.
func (f *File) OS() *os.File {
	fd := f.fd
	f.fd = -1
	f.release()
	return os.NewFile(uintptr(fd), f.name)
}

// copyBuffer is the size of the buffer for copies that the kernel cannot do itself.
const copyBuffer = 128 << 10

// CopyFrom appends at most n bytes of src, from its current offset, inside the kernel if possible.
// It returns the number of bytes; fewer than n only at the end of src.
func (f *File) CopyFrom(src Opened, n int64) (done int64, err error) {
	from := int(src.Fd())
	for done < n {
		m, err := unix.CopyFileRange(from, nil, f.fd, nil, int(min(n-done, 1<<30)), 0)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil && !cannotCopy(err):
			return done, f.failed("copy to", err)
		case err != nil || m == 0 && done == 0: // some file systems return 0 if they cannot copy
			more, err := f.copyThrough(from, n-done)
			return done + more, err
		case m == 0:
			return done, nil
		}
		done += int64(m)
		if s, is := src.(*File); is && done < n && done == s.size {
			return done, nil // as in ReadAt
		}
	}
	return done, nil
}

// cannotCopy reports whether copy_file_range cannot be used between two files, and read and
// write can.
func cannotCopy(err error) bool {
	for _, reason := range []error{unix.ENOSYS, unix.EXDEV, unix.EINVAL, unix.EOPNOTSUPP, unix.EPERM, unix.EIO} {
		if errors.Is(err, reason) {
			return true
		}
	}
	return false
}

// copyThrough is CopyFrom with read and write.
func (f *File) copyThrough(from int, n int64) (done int64, err error) {
	buf := make([]byte, min(n, copyBuffer))
	for done < n {
		m, err := retryFd(func() (int, error) { return unix.Read(from, buf[:min(int64(len(buf)), n-done)]) })
		if err != nil {
			return done, f.failed("copy to", err)
		}
		if m == 0 {
			break
		}
		for part := buf[:m]; len(part) > 0; {
			w, err := retryFd(func() (int, error) { return unix.Write(f.fd, part) })
			if err != nil {
				return done, f.failed("copy to", err)
			}
			part, done = part[w:], done+int64(w)
		}
	}
	return done, nil
}

func (f *File) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", op, f.name, err)
}
