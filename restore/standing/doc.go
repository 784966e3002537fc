// Package standing reads what stands beneath a restore root at the paths of a
// candidate. It does not know what should stand there, and it writes nothing.
//
//  1. [Read] hashes the regular files at some paths, on all cores. Links on the
//     way to a path are followed as a commit follows them, beneath the root only
//     (decision D17); one at the path itself is not. Nothing but regular files is
//     opened: a FIFO blocks no reader, and a device does not notice.
//  2. [Find] says what it is that stands at a path, or in the way to it, where
//     there is no such file.
//
// Both return what was true at some moment of the call. A caller that must know that it
// still is looks again.
package standing
