// Package pathsafe holds the rules for output paths and does all file access beneath a directory.
//
// # Paths
//
// A [Path] is an output path that normalisation would not change (SPECTRUM-06 section 4.2 and 4.3);
// only [Parse] constructs one. It is never joined to a string: functions that access the disk take
// a [Dir], the handle of a directory, and a Path or a single name.
//
// # Access
//
//  1. [OpenRoot] resolves the name of a root once. From then on the handle is
//     the root, even if the name later leads elsewhere.
//  2. [Dir.OpenRegular] and [Dir.StatPath] read beneath it. The whole path is
//     resolved by one openat2 that stays beneath the handle, follows no magic
//     link and enters no other mount; a subvolume of btrfs counts as one
//     ([Stat.IsOn]). The result is a handle without read access. If it is a
//     regular file, that same inode is then opened for reading. A FIFO,
//     device, socket or directory is never opened, since that could block or
//     have an effect.
//     With [LinksUnder] a link may also name its target by the root's own path.
//  3. [Dir.Survey] returns the state of a target, and [Dir.OpenParent] opens
//     its existing parent.
//  4. Names are created, moved and removed one component at a time, on the
//     handle of their directory: [Dir.Mkdir], [Dir.Create],
//     [Dir.RenameNoReplace], [Dir.Unlink] and so on. Nothing is overwritten.
//
// If the kernel has no openat2, or a filter forbids it, a walk of single components with O_NOFOLLOW
// does the same and resolves links itself. So it does beneath a root on btrfs, since openat2 enters
// subvolumes. Both pass the same tests.
//
// # Trust
//
// Trusted: the kernel, /proc (checked once to be a procfs), and the name given to OpenRoot. Not
// trusted: everything beneath the root, also while other processes rename, link and unlink there at
// the same time.
//
// Promised: no access reaches outside the root through a path; errors.Is finds the reason of an
// error ([ErrEscape], [ErrSymlink], [ErrCrossesMount], [ErrNotRegular], [ErrTooLong],
// [io/fs.ErrNotExist]).
//
// Not promised: that a directory whose handle is open is still at the path where it was found. Any
// user who may write in a root can move it; after a change, look it up again from the root and
// compare [Stat.ID]. A file lease held by another process can delay an open for the kernel's
// lease-break-time, and a dead network or FUSE file system can delay any call.
package pathsafe
