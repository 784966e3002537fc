package sysfault

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// A filter of the kernel (seccomp) stops the command at the calls of a plan only, and
// lets all others run at full speed: most calls of a Go program are not about files.

// numbers are the calls that a plan may be about, sorted.
func (p *Plan) numbers() []uint64 {
	all := slices.Sorted(maps.Keys(shapes))
	if p.Only == nil {
		return all
	}
	return slices.DeleteFunc(all, func(nr uint64) bool { return !slices.Contains(p.Only, shapes[nr].name) })
}

// filterCode is the filter as the kernel reads it.
func filterCode(numbers []uint64) []byte {
	const (
		load, equal, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_RET | unix.BPF_K
		nrAt, archAt     = 0, 4 // in struct seccomp_data
	)
	program := []unix.SockFilter{
		{Code: load, K: archAt},
		{Code: equal, K: unix.AUDIT_ARCH_X86_64, Jf: uint8(len(numbers) + 1)}, // to the first end
		{Code: load, K: nrAt},
	}
	for i, nr := range numbers {
		program = append(program, unix.SockFilter{Code: equal, K: uint32(nr), Jt: uint8(len(numbers) - i)})
	}
	program = append(program,
		unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: end, K: unix.SECCOMP_RET_TRACE})
	var code []byte
	for _, f := range program {
		code = binary.LittleEndian.AppendUint16(code, f.Code)
		code = append(code, f.Jt, f.Jf)
		code = binary.LittleEndian.AppendUint32(code, f.K)
	}
	return code
}

// install has a process that is stopped before its first instruction give itself the
// filter: the call is written over that instruction, which is put back afterwards.
func install(pid int, numbers []uint64) (err error) {
	var before syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(pid, &before); err != nil {
		return err
	}
	var covered [8]byte
	at := uintptr(before.Rip)
	if _, err := syscall.PtracePeekText(pid, at, covered[:]); err != nil {
		return err
	}
	defer func() {
		_, textErr := syscall.PtracePokeText(pid, at, covered[:])
		err = errors.Join(err, textErr, syscall.PtraceSetRegs(pid, &before))
	}()
	call := append([]byte{0x0f, 0x05}, covered[2:]...) // the instruction syscall
	if _, err := syscall.PtracePokeText(pid, at, call); err != nil {
		return err
	}
	// Below the stack: first struct sock_fprog, then the code.
	code := filterCode(numbers)
	head := uintptr(before.Rsp) - 8192
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(code)/8))
	data = binary.LittleEndian.AppendUint64(data, uint64(head)+16)
	if _, err := syscall.PtracePokeData(pid, head, append(data, code...)); err != nil {
		return err
	}
	err = inject(pid, before, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uint64(head))
	if errors.Is(err, unix.EACCES) { // without rights a process must first give up those of setuid programs
		if err := inject(pid, before, unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 0); err != nil {
			return err
		}
		err = inject(pid, before, unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, uint64(head))
	}
	return err
}

// inject runs one call of a process that stands at the instruction syscall. The
// second argument is 0 for seccomp and 1 for prctl.
func inject(pid int, regs syscall.PtraceRegs, nr, first, third uint64) error {
	regs.Rax, regs.Orig_rax = nr, ^uint64(0)
	regs.Rdi, regs.Rsi, regs.Rdx, regs.R10, regs.R8 = first, 0, third, 0, 0
	if nr == unix.SYS_PRCTL {
		regs.Rsi = 1
	}
	if err := syscall.PtraceSetRegs(pid, &regs); err != nil {
		return err
	}
	if err := syscall.PtraceSingleStep(pid); err != nil {
		return err
	}
	var ws syscall.WaitStatus
	if _, err := wait(pid, &ws, 0); err != nil {
		return err
	}
	if !ws.Stopped() || ws.StopSignal() != syscall.SIGTRAP {
		return fmt.Errorf("stopped with %v", ws)
	}
	if err := syscall.PtraceGetRegs(pid, &regs); err != nil {
		return err
	}
	if errno := -int64(regs.Rax); errno > 0 {
		return syscall.Errno(errno)
	}
	return nil
}
