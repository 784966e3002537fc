// Package power takes the power away from the real program.
//
// It does so in three ways. A commit is killed before each of its calls, and
// the file system beneath it is shut down by an ioctl: what was not in its log
// is lost. A commit runs on a disk that logs every write (package blocklog), and
// the disk is rebuilt as it could be after any of them. And a trace of a commit
// is compared with the rules of durability themselves, on the worst file system
// that POSIX allows; there every sync that is taken out must be missed.
//
// After the loss the root is recovered, and is then exactly as before the commit
// or exactly as after it; as after it, once the command has reported success.
//
// Each way has its negative control: with a sync that lies the test must find
// damage, or it fails.
//
// The tests need root, loop devices, /dev/fuse, strace and the mkfs of ext4, xfs
// and btrfs.
package power
