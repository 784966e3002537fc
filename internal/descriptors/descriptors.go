// Package descriptors ends a program that has too few descriptors before anything needs one.
// The runtime of Go, and the initialization of a package of FUSE, panic without: that would
// look like a bug.
//
// It counts on being initialized before them: it imports nothing but syscall, so that by
// the language's specification it comes before every package that imports os and whose path
// is greater; and the other one imports log, whose path is greater than this one's.
package descriptors

import "syscall"

// least is how many descriptors have to be free: those of the runtime's poller, of a pipe,
// and of a file that is read. With more, what lacks one is an error as any other.
const least = 6

// status is the exit status of a fault of the machine.
const status = 74

const message = `too few descriptors: the limit of open files is too low, or too many are open already`

func init() {
	var open []int
	for range least {
		fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC) // that needs no path
		if err == syscall.EMFILE || err == syscall.ENFILE {
			end(append(open, 0))
		}
		if err == nil {
			open = append(open, fd)
		}
	}
	for _, fd := range open {
		_ = syscall.Close(fd)
	}
}

// end prints why the program ends. Nothing is read from standard input any more.
func end(open []int) {
	for _, fd := range open {
		_ = syscall.Close(fd)
	}
	if asksJSON() {
		_, _ = syscall.Write(1, []byte(`{"code":"MACHINE_FAULT","details":{},"message":"`+message+`","ok":false}`))
	}
	_, _ = syscall.Write(2, []byte("spectrum: "+message+"\nhint: raise the limit of open files of this process (\"ulimit -n\"), then retry\n"))
	syscall.Exit(status)
}

// asksJSON reports whether --json is among the arguments. They are not known to the program
// yet.
func asksJSON() bool {
	fd, err := syscall.Open("/proc/self/cmdline", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	const flag, most = "\x00--json\x00", 1 << 20
	all, buf := "", make([]byte, 1<<12)
	for len(all) < most {
		n, err := syscall.Read(fd, buf)
		if err != nil || n <= 0 {
			break
		}
		all += string(buf[:n])
	}
	for i := range len(all) - len(flag) + 1 {
		if all[i:i+len(flag)] == flag {
			return true
		}
	}
	return false
}
