package pathsafe

import (
	"cmp"
	"errors"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Files can stay open from one step of a long operation to the next, which then need not open them
// again. Descriptors are a resource of the process, so this count is global.
const (
	unkept  = 1024    // descriptors that are left to everything else
	maxKept = 1 << 16 // files that stay open at most: each uses kernel memory
)

var kept atomic.Int64

// keepable returns how many files this process may keep open.
var keepable = sync.OnceValue(func() int64 {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0
	}
	return keepableOf(r.Cur)
})

func keepableOf(limit uint64) int64 { return int64(min(max(limit, unkept)-unkept, maxKept)) }

// Keep reports whether f may stay open for long, and counts it until it is closed: only so many
// files may that enough descriptors are left for everything else. Without that, close it soon.
func (f *File) Keep() bool {
	if f.kept {
		return true
	}
	if kept.Add(1) > keepable() {
		kept.Add(-1)
		return false
	}
	f.kept = true
	return true
}

// ExpectKept prepares this process for n more files that it keeps open. Without that the kernel
// enlarges the table of descriptors several times, and each time waits for all processors.
func (d *Dir) ExpectKept(n int) {
	const small = 128 // the table has room for so many
	if n = int(min(int64(n), keepable()-kept.Load())); n < small {
		return
	}
	if fd, err := unix.FcntlInt(uintptr(d.Fd()), unix.F_DUPFD_CLOEXEC, n+unkept/2); err == nil {
		closeFd(fd)
	}
	runtime.KeepAlive(d)
}

// release removes a file that is being closed from the count.
func (f *File) release() {
	if f.kept {
		f.kept = false
		kept.Add(-1)
	}
}

// Lend returns the same open file for a user that closes it while it is to stay open: closing the
// result calls closed, which may be nil, and nothing else. It is valid until f is closed.
func (f *File) Lend(closed func()) *File {
	if closed == nil {
		closed = func() {}
	}
	return &File{fd: f.fd, name: f.name, size: f.size, lent: closed}
}

// CloseAll closes files that were kept open, as [File.Close] does, and those with neighbouring
// descriptors in one call (close_range). That call reports no error of a single file, so written
// files must have been synced: then Close has no error left to report.
func CloseAll(files []*File) error {
	files = slices.DeleteFunc(slices.Clone(files), func(f *File) bool { return f == nil || f.fd < 0 })
	slices.SortFunc(files, func(a, b *File) int { return cmp.Compare(a.fd, b.fd) })
	var errs []error
	for len(files) > 0 {
		n := 1
		for n < len(files) && files[n].fd == files[0].fd+n && files[0].lent == nil && files[n].lent == nil {
			n++
		}
		if n == 1 || !hasCloseRange() {
			errs = append(errs, files[0].Close())
			files = files[1:]
			continue
		}
		// Every descriptor of the range belongs to one of the files, so no other one is closed.
		err := unix.CloseRange(uint(files[0].fd), uint(files[n-1].fd), 0)
		errs = append(errs, files[0].failed("close", err))
		for _, f := range files[:n] {
			f.release()
			f.fd = -1
		}
		files = files[n:]
	}
	return errors.Join(errs...)
}

// hasCloseRange reports whether the kernel has close_range (Linux 5.9) and permits it. It is
// called for descriptors that no process has.
var hasCloseRange = sync.OnceValue(func() bool {
	return unix.CloseRange(math.MaxUint32, math.MaxUint32, 0) == nil
})
