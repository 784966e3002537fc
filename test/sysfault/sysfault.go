package sysfault

import "syscall"

// A Call is a system call that was entered.
type Call struct {
	N    int    // its number among the counted calls, from 1
	Tid  int    // the thread
	Name string // like "renameat2"
	Path string // what it is about: the name in its directory, or the file of the descriptor
	To   string // the new name, of renameat, renameat2 and linkat
	Fd   int    // the descriptor or directory that it is given first, or writes to

	// Flags are those of openat, openat2, renameat2, linkat, unlinkat and fallocate.
	Flags uint64
	// Count is the number of bytes that a write or copy is asked for.
	Count uint64
	// Returned is what the program saw: -errno on failure. It is set in the Trace of a
	// plan that asks for it only, and not for a call that never returned.
	Returned int64
}

// A Plan says what is done to which call. The zero Plan only counts.
type Plan struct {
	N      int           // act on the N-th counted call; 0: only count
	Onward bool          // and on every later one
	Kill   bool          // SIGKILL instead of the call
	Errno  syscall.Errno // the call is not executed and fails with this; a close is executed, as by the kernel
	Lie    bool          // the call is not executed and reports success, a write or copy its full count; not for calls that return a descriptor
	Short  bool          // a write or copy is executed for half of its count, if that is more than one

	// Match says which calls count; nil: Mutating.
	Match func(Call) bool
	// Only are the names of the calls that Match is asked about; nil: all that are
	// known. The command runs through all others at full speed.
	Only []string
	// Before is called while the program is stopped before each call that the
	// plan acts on. Without Kill, Errno, Lie and Short the call then goes on.
	Before  func(Call)
	Record  bool     // keep all counted calls in Result.Trace
	Returns bool     // with Record: and what they returned, which stops the command twice at each
	Env     []string // added to the environment of the command
}

// A Result is what became of a command.
type Result struct {
	Calls          int // how many calls counted; without Onward and Record none after the one that the plan acted on
	Fired          int // on how many of them the plan acted
	Pid            int
	Status         int // the exit status, or 128 and the signal that killed it
	Stdout, Stderr []byte
	Trace          []Call
}
