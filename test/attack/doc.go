// Package attack has the attacks of other users on a process that holds a lock, a
// journal or the audit log, each as a test of the real binary: names that are
// exchanged between two looks at them, directories that others write to, and what is
// believed without having been read.
//
// The files are named by what is attacked. Where an attack needs a moment, the program
// is stopped before one of its system calls, for every call of a kind: no verdict
// depends on who wins a race.
//
// The tests take the binary from SPECTRUM_BIN or build it.
package attack
