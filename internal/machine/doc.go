// Package machine tests which features the machine has: the kernel, and the file system of a
// directory.
//
// It reports facts without judging them. A [Feature] is tested by using it as the program does,
// through the same functions if possible, and not by the name of the file system or the version of
// the kernel.
//
// # The flow
//
//  1. [KernelRelease] returns the version of the kernel.
//  2. [Describe] returns the type, options, journal and space of the file system
//     of a directory. It writes nothing.
//  3. [Probe] takes the lock of the directory, as a commit does, creates a
//     subdirectory, tests every feature in it, and removes it, also after an
//     error and when its context is done.
//
// # What it promises
//
// Nothing is changed outside of the subdirectory, except the modification time of its parent. A
// process that is killed leaves the subdirectory: its name begins with [Prefix], and it can be
// removed.
//
// # What it does not promise
//
// A call can block if the file system does not answer; the caller abandons it. A sync that succeeds
// may have done nothing: only a power cut shows that.
package machine
