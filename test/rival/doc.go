// Package rival lets other processes act in the restore root and in the sources while the
// real binary is at work.
//
// The others are a second command of the program, an attacker who may write
// wherever the commit writes, and a cleaner of temporary files. They act in two
// ways: in a loop beside the running program, and in windows: the program is
// stopped before the n-th of its system calls, for every n, something is done,
// and it goes on.
//
// The verdict does not depend on who wins. Nothing that is not the commit's is changed or gone,
// wherever it was moved to, and nothing is written outside of the root. The exit status is true:
// with success everything is in place, with a rejection the root is as before, and with status 3
// recover reaches one of both or stays halted until it is acknowledged, which touches nothing
// that is not the commit's either. What the attacker moved is put back before judging.
//
// The tests take the binary from SPECTRUM_BIN or build it.
package rival
