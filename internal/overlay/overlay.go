package overlay

import (
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Command is a command and the directory that it runs over. All paths are absolute and without
// links.
type Command struct {
	Args []string // the first is looked up in the PATH of Env
	Env  []string
	Dir  string // the working directory
	// Ignored are signals that the caller of this program had ignored: the command ignores them
	// too.
	Ignored []syscall.Signal

	Lower string // the directory
	// Device and Inode are those of Lower: another directory at its path is an error.
	Device, Inode uint64
	Upper         string // an empty directory, for the changes
	Work          string // an empty directory on the file system of Upper, for the kernel
}

// Streams are those of the command.
type Streams struct{ In, Out, Err *os.File }

// A StartError is a command that could not be started.
type StartError struct {
	Name   string
	Status int // as in a shell: 127 if there is no such command, else 126
	Err    error
}

func (e *StartError) Error() string { return fmt.Sprintf("starting %q: %v", e.Name, e.Err) }

// Unwrap returns why.
func (e *StartError) Unwrap() error { return e.Err }

// ErrLost is returned for a command whose supervising process was killed: its exit status is
// unknown.
var ErrLost = errors.New("the supervising process was killed, and the command with it")

// ErrLeft is the error of processes of the command that did not end.
var ErrLeft = errors.New("processes started by the command do not end")

// HelperArg is the first argument of the program when it must call [Serve].
const HelperArg = "-serve-overlay"

// Kill is the signal for [Run] to kill the command and everything that it has started.
const Kill = syscall.SIGKILL

// job is the input of the helper at each of its two stages.
type job struct {
	Command Command
	User    bool // it is in a user namespace of its own
}

// answer is the output of the helper.
type answer struct {
	Mounted bool
	Started bool
	Ended   bool
	Status  int    // of a command that has ended, or could not be started
	Left    bool   // processes that do not end
	Step    string // that failed
	Errno   syscall.Errno
	Text    string
}

// Run runs a command and returns its exit status, or 128+n if signal n ended it. It passes signals
// on to the command. It returns an [*UnavailableError] if this machine does not support it, a
// [*StartError] if the command could not be started, and otherwise [ErrLost] or [ErrLeft].
func Run(c Command, streams Streams, signals <-chan os.Signal) (int, error) {
	if err := checkDirectory(c.Lower); err != nil {
		return 0, err
	}
	j := job{Command: c, User: !hasAdmin()}
	// If the helper is killed, this process becomes the parent of its children.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, os.NewSyscallError("prctl", err)
	}
	h, err := startHelper(j, streams)
	if err != nil {
		return 0, err
	}
	defer h.conn.Close()
	status, err := h.follow(j, signals)
	_ = h.conn.Close() // the helper ends, if it has not
	_ = h.cmd.Wait()
	if left := endChildren(); left && err == nil {
		err = ErrLeft
	}
	return status, err
}

// mounter are the capabilities for mounting: overlayfs uses them in its work directory, which is
// inaccessible to all users.
var mounter = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP,
	unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_SETFCAP,
}

// helper is the process in the namespaces.
type helper struct {
	cmd  *exec.Cmd
	conn *os.File
	out  *gob.Encoder
	in   *gob.Decoder
}

func startHelper(j job, streams Streams) (*helper, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socketpair", err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "helper")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil { // so that closing it ends a read
		return nil, errors.Join(os.NewSyscallError("fcntl", err), unix.Close(pair[0]))
	}
	h := &helper{conn: os.NewFile(uintptr(pair[0]), "helper")}
	// The descriptor keeps its number, which is then free in the command too: the command may use
	// one of the descriptors that this process was started with.
	h.cmd = exec.Command("/proc/self/exe", HelperArg, strconv.Itoa(pair[1]))
	h.cmd.Args[0] = os.Args[0]
	h.cmd.Env = os.Environ()
	h.cmd.Stdin, h.cmd.Stdout, h.cmd.Stderr = streams.In, streams.Out, streams.Err
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGCONT}
	if j.User {
		uid, gid := os.Geteuid(), os.Getegid()
		h.cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}},
			AmbientCaps: mounter,
			Pdeathsig:   syscall.SIGCONT, // a helper that is stopped does not see that this process has ended
		}
	}
	if _, err := unix.FcntlInt(uintptr(pair[1]), unix.F_SETFD, 0); err != nil {
		return nil, errors.Join(os.NewSyscallError("fcntl", err), h.conn.Close())
	}
	err = h.cmd.Start()
	if err != nil {
		_ = h.conn.Close()
		return nil, unavailable(stepNamespace, err, "")
	}
	return h, nil
}

// follow goes through the two stages of the helper.
func (h *helper) follow(j job, signals <-chan os.Signal) (int, error) {
	if err := h.say(j); err != nil {
		return 0, ErrLost
	}
	var mounted answer
	if err := h.in.Decode(&mounted); err != nil {
		return 0, ErrLost
	}
	if !mounted.Mounted {
		return 0, unavailable(mounted.Step, mounted.Errno, mounted.Text)
	}
	if err := h.say(j); err != nil {
		return 0, ErrLost
	}
	done := make(chan struct{})
	defer close(done)
	go h.passOn(signals, done) // before the answer, because the command may have stopped the helper
	var started, ended answer
	if err := h.in.Decode(&started); err != nil {
		return 0, ErrLost
	}
	if !started.Started {
		return 0, &StartError{j.Command.Args[0], started.Status, started.Errno}
	}
	if err := h.in.Decode(&ended); err != nil || !ended.Ended {
		return 0, ErrLost
	}
	if ended.Left {
		return ended.Status, ErrLeft
	}
	return ended.Status, nil
}

// say starts a stage and returns its answer.
func (h *helper) say(j job) error {
	h.out, h.in = gob.NewEncoder(h.conn), gob.NewDecoder(h.conn)
	return h.out.Encode(j)
}

// impatience is the time in which a second interrupt ends the command.
const impatience = 5 * time.Second

// passOn passes signals on. A second interrupt soon after the first is a kill. If the command has
// stopped the helper, it is continued, and killed at a third interrupt.
func (h *helper) passOn(signals <-chan os.Signal, done <-chan struct{}) {
	var last time.Time
	kills := 0
	for {
		select {
		case <-done:
			return
		case s := <-signals:
			number, ok := s.(syscall.Signal)
			if !ok {
				continue
			}
			if number == syscall.SIGINT {
				if !last.IsZero() && time.Since(last) < impatience {
					number = Kill
				}
				last = time.Now()
			}
			_ = h.out.Encode(number) // an ended helper needs none
			if number == Kill {
				_ = h.cmd.Process.Signal(syscall.SIGCONT)
				if kills++; kills > 1 {
					_ = h.cmd.Process.Kill()
				}
			}
		}
	}
}

// Trusted reports whether overlayfs stores its attributes in the namespace "trusted" for this user,
// and otherwise in "user".
func Trusted() bool { return hasAdmin() }

// hasAdmin reports whether this process may mount file systems.
func hasAdmin() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
