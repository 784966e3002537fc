// Package sysfault runs a command under ptrace and makes one of its system
// calls fail, lie, or be the last.
//
// The calls are counted with one counter over all threads and children of the
// command, in the order in which they are entered, so that a plan acts on
// exactly one call, or on that one and all later ones. A program needs no hook
// and no mock for this. A call that is killed, failed or lied about is not
// executed; but a close that fails has closed, as those of the kernel do.
//
// Not counted are calls that leave nothing behind: writes to the descriptors 0
// to 2 and to eventfds. Children must stay in the process group of the command;
// those that outlive it are killed.
//
// The command stops at the calls that a plan can be about, and at no other: a filter
// of the kernel (seccomp) sees to that.
//
// It works on Linux on amd64. Elsewhere Run says so.
package sysfault
