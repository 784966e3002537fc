// Package disk fills real file systems and looks at what the program does then.
//
// Every test mounts images of its own on a loop device, or a tmpfs, and runs the real binary: the
// space goes from none to more than is needed, the inodes likewise, the state directory is full,
// the store beneath the file system is full, a directory rejects new names. A step ends in one of
// two ways. The commit succeeds, and everything is in place; or it says a code of the law, and
// the root is exactly as it was, the free blocks and inodes too. Once space is free again a
// commit succeeds.
//
// The tests need root. They take the binary from SPECTRUM_BIN or build it.
package disk
