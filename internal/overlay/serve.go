package overlay

import (
	"encoding/gob"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Serve is the program in the namespaces of [Run], at both of its stages: the mount, and after an
// exec without any capability of the user namespace the command. args follow [HelperArg]. It
// returns an exit status that means nothing.
func Serve(args []string) int {
	if len(args) == 0 {
		return 1
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil {
		return 1
	}
	unix.CloseOnExec(fd)
	_ = unix.SetNonblock(fd, true)
	conn := os.NewFile(uintptr(fd), "caller")
	in, out := gob.NewDecoder(conn), gob.NewEncoder(conn)
	var j job
	if in.Decode(&j) != nil {
		return 1
	}
	runtime.LockOSThread() // privileges, and whose death ends the command, are those of a thread
	if len(args) == 1 {
		return j.prepare(fd, out)
	}
	keeper{job: j, in: in, out: out}.keep()
	return 0
}

// prepare is the first stage.
func (j *job) prepare(fd int, out *gob.Encoder) int {
	step, text, err := j.mount()
	if err == nil && j.User {
		step = stepPrivileges
		err = dropAll()
	}
	if err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		_ = out.Encode(answer{Step: step, Errno: errno, Text: text})
		return 1
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
		return 1
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, 0); err != nil {
		return 1
	}
	if out.Encode(answer{Mounted: true}) != nil {
		return 1
	}
	_ = syscall.Exec("/proc/self/exe", []string{os.Args[0], HelperArg, strconv.Itoa(fd), "run"}, os.Environ())
	return 1
}

// dropAll gives up every capability, for this thread and for what it executes: none can be
// regained, not even through a file.
func dropAll() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // the last capability of this kernel was dropped
			break
		}
		if err != nil {
			return err
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

// keeper starts a command, and kills the processes that it leaves behind.
type keeper struct {
	job
	in  *gob.Decoder
	out *gob.Encoder
}

func (k keeper) keep() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	direct := &heard{at: map[syscall.Signal]time.Time{}}
	go direct.listen()
	for _, s := range k.Command.Ignored {
		signal.Ignore(s)
	}
	pid, status, err := k.start()
	if err != nil {
		errno, _ := errors.AsType[syscall.Errno](err)
		_ = k.out.Encode(answer{Status: status, Errno: errno})
		return
	}
	if k.out.Encode(answer{Started: true}) != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	go k.obey(pid, direct)
	end := answer{Ended: true}
	for {
		var ws unix.WaitStatus
		got, err := unix.Wait4(-1, &ws, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return // impossible, there is no child: the caller reports ErrLost
		}
		if err != nil || got != pid {
			continue
		}
		end.Status = ws.ExitStatus()
		if ws.Signaled() {
			end.Status = 128 + int(ws.Signal())
		}
		break
	}
	end.Left = endChildren()
	_ = k.out.Encode(end)
}

// obey passes on the signals that the caller sends; if the caller ends, the command is killed.
func (k keeper) obey(pid int, direct *heard) {
	for {
		var s syscall.Signal
		if err := k.in.Decode(&s); err != nil {
			s = Kill
			_ = unix.Kill(pid, s)
			return
		}
		// The terminal sends a signal to a whole process group: this process gets it too, and so
		// does the command, unless it has left the group.
		group, err := unix.Getpgid(pid)
		if s != Kill && err == nil && group == unix.Getpgrp() && direct.justNow(s) {
			continue
		}
		_ = unix.Kill(pid, s)
	}
}

// heard records when this process itself received signals.
type heard struct {
	mu sync.Mutex
	at map[syscall.Signal]time.Time
}

func (h *heard) listen() {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, Passed...)
	for s := range signals {
		if number, ok := s.(syscall.Signal); ok {
			h.mu.Lock()
			h.at[number] = time.Now()
			h.mu.Unlock()
		}
	}
}

// Passed are the signals that are passed on to the command.
var Passed = []os.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2}

// sameTime is how far apart two processes of a group have the same signal.
const sameTime = 200 * time.Millisecond

// justNow reports whether this process itself has just received the signal that the caller
// received.
func (h *heard) justNow(s syscall.Signal) bool {
	for end := time.Now().Add(sameTime); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		h.mu.Lock()
		at := h.at[s]
		h.mu.Unlock()
		if time.Since(at) < 2*sameTime {
			return true
		}
	}
	return false
}

// start starts the command, as a shell does.
func (k keeper) start() (pid, status int, err error) {
	if err := os.Chdir(k.Command.Dir); err != nil {
		return 0, 126, err
	}
	name, err := find(k.Command.Args[0], k.Command.Env)
	if err == nil {
		pid, err = k.fork(name, k.Command.Args)
		if errors.Is(err, unix.ENOEXEC) {
			pid, err = k.fork("/bin/sh", append([]string{"sh", name}, k.Command.Args[1:]...))
		}
	}
	switch {
	case err == nil:
		return pid, 0, nil
	case errors.Is(err, unix.ENOENT):
		return 0, 127, err
	}
	return 0, 126, err
}

func (k keeper) fork(name string, args []string) (int, error) {
	return syscall.ForkExec(name, args, &syscall.ProcAttr{
		Env: k.Command.Env, Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL},
	})
}

// find looks a command up. A name with a slash is a path.
func find(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	if name == "" {
		return "", unix.ENOENT
	}
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, line := range env {
		if value, ok := strings.CutPrefix(line, "PATH="); ok {
			path = value
			break
		}
	}
	var found error = unix.ENOENT
	for dir := range strings.SplitSeq(path, ":") {
		at := filepath.Join(dir, name)
		if dir == "" {
			at = "./" + name
		}
		info, err := os.Stat(at)
		switch {
		case err != nil:
			continue
		case info.IsDir() || unix.Access(at, unix.X_OK) != nil:
			found = unix.EACCES
		default:
			return at, nil
		}
	}
	return "", found
}

// lastWait is the time that a killed process may take to end.
const lastWait = 10 * time.Second

// endChildren kills the children of this process, and the processes that become its children when
// those have ended. It reports whether some do not end.
func endChildren() (left bool) {
	for end := time.Now().Add(lastWait); ; {
		for _, pid := range children() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		got, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.ECHILD):
			return false
		case got > 0 || errors.Is(err, unix.EINTR):
			continue
		case time.Now().After(end):
			return true
		}
		time.Sleep(time.Millisecond)
	}
}

// children are the processes whose parent this one is.
func children() (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		raw, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil {
			continue
		}
		// The fields after the name in parentheses, which may contain anything: the state and the
		// parent.
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(os.Getpid()) {
			pids = append(pids, pid)
		}
	}
	return pids
}
