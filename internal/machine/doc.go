// Package machine tries what spectrum needs of the machine: of the kernel, and of
// the file system that a directory is on.
//
// It returns facts and no opinion. A [Feature] is tried in the way in which the
// program uses it, through the same functions where it has some, and not by the
// name of the file system or the number of the kernel.
//
// # The flow
//
//  1. [KernelRelease] reads what the kernel calls itself.
//  2. [Describe] asks about the file system of a directory: type, options, journal,
//     space. It writes nothing.
//  3. [Probe] takes the lock of the directory, as a commit does, makes a directory
//     of its own in it, tries every feature there, and removes it again, also after
//     an error and when its context ends.
//
// # What it promises
//
// Nothing is made or changed outside of the directory that [Probe] makes, but that
// the time of the directory above changes. Who is killed leaves it: its name begins
// with [Prefix], and it can be removed.
//
// # What it does not promise
//
// To come back from a file system that does not answer: the caller leaves it behind.
// Nor that a sync which succeeds was one: that only a power cut shows.
package machine
