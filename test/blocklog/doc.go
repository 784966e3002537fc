// Package blocklog shows what a power cut leaves on a disk.
//
// A [Store] is a FUSE file system with one file, "disk", that backs a loop
// device. It logs every write and every flush that the loop driver sends (a
// flush of the device arrives as an fsync of the file), and the marks that a
// test puts in between. A [Replay] rebuilds the disk as it could be after any
// number of records: all writes before the last flush are there; each one after
// it is there, lost or torn, as a seed decides.
//
// The server of a store is a process of its own, the test binary started again:
// a process that mounts what it serves itself can wait for itself for ever. It
// holds the disk in memory and never writes to the image it was given. It ends
// and takes its mount back when the test stops it, and when the test dies.
//
// A package that uses this one calls [Main] in its TestMain. All its mounts are
// in a mount namespace of its own, and its loop devices release their files
// with the last mount: nothing is left, however the test ends.
//
// It needs root, /dev/fuse and loop devices; [Need] skips where they are not.
package blocklog
