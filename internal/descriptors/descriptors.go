// Package descriptors ends the program early if it has too few file descriptors. Without, the Go
// runtime and the initialization of a FUSE package would panic, which looks like a bug.
//
// It must be initialized before them. It imports nothing but syscall, so by the language
// specification it precedes every package that imports os and has a greater path; the FUSE package
// imports log, whose path is greater.
package descriptors

import "syscall"

// least is the number of descriptors that must be free: for the runtime's poller, a pipe, and a
// file that is read. With these, a lack of descriptors is an ordinary error.
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

// asksJSON reports whether --json is among the arguments, which are not parsed yet.
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
