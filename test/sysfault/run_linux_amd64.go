package sysfault

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syscallInfo is struct ptrace_syscall_info of a call that was entered.
type syscallInfo struct {
	Op     uint8
	_      [3]uint8
	Arch   uint32
	IP, SP uint64
	Nr     uint64 // of a call that returns, this is the result
	Args   [6]uint64
	_      [2]uint64
}

const (
	opExit    = 2
	opSeccomp = 3
	options   = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP |
		unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK
	// ours are the stops of the children that this very thread traces, and of
	// no other child of the test process.
	ours = unix.WALL | unix.WNOTHREAD
)

// Run runs argv to its end under the plan. When ctx ends first, the command is
// killed and the error says so. The status of the command is not an error.
func Run(ctx context.Context, plan Plan, argv ...string) (Result, error) {
	if len(argv) == 0 {
		return Result{}, errors.New("sysfault: no command")
	}
	if plan.Match == nil {
		plan.Match = Mutating
	}
	// Only the thread that started a tracee may speak with it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	t := &tracer{plan: plan, held: map[int]*held{}, known: map[int]bool{}}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), plan.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	output, err := capture(cmd)
	if err != nil {
		return Result{}, err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	// A callback may end the goroutine: the command does not stay behind.
	defer func() { t.reap(cmd.Process) }()
	err = t.loop(cmd.Process.Pid)
	t.reap(cmd.Process)
	t.result.Pid = cmd.Process.Pid
	t.result.Stdout, t.result.Stderr = output()
	if err == nil && ctx.Err() != nil && t.result.Status == 128+int(syscall.SIGKILL) {
		err = fmt.Errorf("sysfault: %q did not end: %w", argv, ctx.Err())
	}
	return t.result, err
}

// capture starts the command. The function that it returns waits for the end of
// both outputs.
func capture(cmd *exec.Cmd) (func() (stdout, stderr []byte), error) {
	var text [2]bytes.Buffer
	var group sync.WaitGroup
	var readers, writers [2]*os.File
	for i := range readers {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer w.Close()
		readers[i], writers[i] = r, w
	}
	cmd.Stdout, cmd.Stderr = writers[0], writers[1]
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, readers[0].Close(), readers[1].Close())
	}
	for i, r := range readers {
		group.Go(func() {
			defer r.Close()
			_, _ = io.Copy(&text[i], r)
		})
	}
	return func() (stdout, stderr []byte) {
		group.Wait()
		return text[0].Bytes(), text[1].Bytes()
	}, nil
}

// A tracer is a run.
type tracer struct {
	plan   Plan
	result Result
	known  map[int]bool  // the threads that have been seen
	held   map[int]*held // what to do when the call of a thread returns
	reaped bool
}

// held is a call between its entry and its return.
type held struct {
	index  int   // in the trace; -1: none
	forge  bool  // report this instead
	result int64 // what to report
}

// loop lets the command run until it has ended.
func (t *tracer) loop(pid int) error {
	var ws syscall.WaitStatus
	if _, err := wait(pid, &ws, 0); err != nil {
		return fmt.Errorf("sysfault: wait: %w", err)
	}
	t.known[pid] = true
	if err := syscall.PtraceSetOptions(pid, options); err != nil {
		return fmt.Errorf("sysfault: ptrace: %w", err)
	}
	if err := install(pid, t.plan.numbers()); err != nil {
		return fmt.Errorf("sysfault: seccomp: %w", err)
	}
	_ = syscall.PtraceCont(pid, 0)
	for {
		tid, err := wait(-pid, &ws, 0)
		if err != nil {
			return fmt.Errorf("sysfault: wait: %w", err)
		}
		switch {
		case ws.Exited() && tid == pid:
			t.result.Status = ws.ExitStatus()
			return nil
		case ws.Signaled() && tid == pid:
			t.result.Status = 128 + int(ws.Signal())
			return nil
		case ws.Stopped():
			sig := t.stopped(pid, tid, ws)
			// The thread may be gone already: it was killed.
			if t.held[tid] != nil {
				_ = syscall.PtraceSyscall(tid, sig) // to the return of the call
			} else {
				_ = syscall.PtraceCont(tid, sig)
			}
		}
	}
}

// wait waits for a child of this thread. A negative pid is a process group.
func wait(pid int, ws *syscall.WaitStatus, more int) (int, error) {
	for {
		tid, err := syscall.Wait4(pid, ws, ours|more, nil)
		if !errors.Is(err, syscall.EINTR) {
			return tid, err
		}
	}
}

// reap kills what is left of the command, once.
func (t *tracer) reap(p *os.Process) {
	if t.reaped {
		return
	}
	t.reaped = true
	defer func() { _ = p.Release() }()
	var ws syscall.WaitStatus
	if _, err := wait(-p.Pid, &ws, unix.WNOHANG); err != nil {
		return
	}
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL)
	for {
		tid, err := wait(-p.Pid, &ws, 0)
		if err != nil {
			return
		}
		if ws.Stopped() {
			_ = syscall.PtraceCont(tid, 0)
		}
	}
}

// stopped handles a stop, and returns the signal to go on with.
func (t *tracer) stopped(pid, tid int, ws syscall.WaitStatus) int {
	first := !t.known[tid]
	t.known[tid] = true
	switch s := ws.StopSignal(); {
	case s == syscall.SIGTRAP|0x80, ws.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		t.atCall(pid, tid)
		return 0
	case s == syscall.SIGTRAP, s == syscall.SIGSTOP && first: // an event; a thread is born
		return 0
	default:
		return int(s)
	}
}

func (t *tracer) atCall(pid, tid int) {
	var in syscallInfo
	if !ask(tid, &in) {
		return
	}
	switch in.Op {
	case opSeccomp:
		if t.isSpent() {
			return
		}
		if c, s, ok := entered(tid, in); ok && t.plan.Match(c) {
			t.count(pid, c, s)
		}
	case opExit:
		if h := t.held[tid]; h != nil {
			t.returns(tid, h, int64(in.Nr))
			delete(t.held, tid)
		}
	}
}

// isSpent reports whether the plan has acted, will not act again, and keeps no trace: what
// the command calls from now on is not looked at.
func (t *tracer) isSpent() bool {
	return t.result.Fired > 0 && !t.plan.Onward && !t.plan.Record
}

// ask has the kernel tell about the call at which a thread is stopped.
func ask(tid int, in *syscallInfo) bool {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO,
		uintptr(tid), unsafe.Sizeof(*in), uintptr(unsafe.Pointer(in)), 0, 0)
	return errno == 0
}

// count counts a call, and acts on it when it is its turn.
func (t *tracer) count(pid int, c Call, s shape) {
	t.result.Calls++
	c.N = t.result.Calls
	h := &held{index: -1}
	if t.plan.Record {
		h.index = len(t.result.Trace)
		t.result.Trace = append(t.result.Trace, c)
	}
	if t.plan.Record && t.plan.Returns {
		t.held[c.Tid] = h
	}
	if t.plan.N == 0 || c.N < t.plan.N || c.N > t.plan.N && !t.plan.Onward {
		return
	}
	if t.plan.Before != nil {
		t.plan.Before(c)
	}
	switch {
	case t.plan.Kill:
		_ = syscall.Kill(pid, syscall.SIGKILL)
	case t.plan.Errno != 0 && s.name == "close": // one that fails has closed all the same
		h.forge, h.result = true, -int64(t.plan.Errno)
		t.held[c.Tid] = h
	case t.plan.Errno != 0:
		t.skip(c.Tid, h, -int64(t.plan.Errno))
	case t.plan.Lie && s.descriptor:
		return
	case t.plan.Lie:
		t.skip(c.Tid, h, int64(c.Count))
	case t.plan.Short && (c.Count < 2 || s.count < 0):
		return
	case t.plan.Short:
		t.halve(c, s)
	}
	t.result.Fired++
}

// skip has the kernel execute no call at all, and report this.
func (t *tracer) skip(tid int, h *held, result int64) {
	h.forge, h.result = true, result
	t.held[tid] = h
	t.registers(tid, func(r *syscall.PtraceRegs) { r.Orig_rax = ^uint64(0) })
}

// halve has the kernel do half of a write or copy.
func (t *tracer) halve(c Call, s shape) {
	t.registers(c.Tid, func(r *syscall.PtraceRegs) {
		*[]*uint64{&r.Rdi, &r.Rsi, &r.Rdx, &r.R10, &r.R8, &r.R9}[s.count] = c.Count / 2
	})
}

func (t *tracer) returns(tid int, h *held, result int64) {
	if h.forge {
		result = h.result
		t.registers(tid, func(r *syscall.PtraceRegs) { r.Rax = uint64(result) })
	}
	if h.index >= 0 {
		t.result.Trace[h.index].Returned = result
	}
}

// registers changes the registers of a thread, if it still lives.
func (t *tracer) registers(tid int, change func(*syscall.PtraceRegs)) {
	var r syscall.PtraceRegs
	if syscall.PtraceGetRegs(tid, &r) == nil {
		change(&r)
		_ = syscall.PtraceSetRegs(tid, &r)
	}
}
