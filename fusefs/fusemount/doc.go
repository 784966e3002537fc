// Package fusemount mounts and unmounts views: the trees that package fusefs
// serves. It knows mount points, the mount table and fusermount3, and nothing
// of what is in a tree.
//
// # The flow
//
//  1. [CheckMountpoint] returns why a directory cannot carry a view. [Mount] asks
//     the same again, on the handle that it then mounts on.
//  2. [Mount] mounts (directly as root, through fusermount3 otherwise), starts
//     the server, and reads the mount table back: a mount that is not
//     read-only, nosuid, nodev and (unless asked for) noexec is taken down
//     again.
//  3. [Views] lists the views of other processes of this user, and [Other.Revoke]
//     takes one back: its readers get errors from then on, also for what the
//     kernel kept. Those of other users are listed and never asked.
//  4. [View.Unmount] ends it: normally, or after a grace with the holders
//     named in the log, by detaching. [Unmount] does it for a view of another
//     process, also of one that has died.
//
// # What it trusts
//
// The kernel, and fusermount3 as far as it cannot be checked: what it mounted
// and unmounted is looked up in the mount table.
//
// # What it promises
//
//   - A view is mounted read-only, so the kernel says EROFS first.
//   - No request is sent to a FUSE file system that another user serves: who
//     serves it is in the mount table ([ErrForeign]).
//   - As root, a mount is taken away by descriptor: the one that was checked, or
//     none. The helper of other users takes a path; it unmounts only their own
//     mounts, and what it did is looked up.
//   - A crashed server leaves a dead mount that says so (ENOTCONN on what was
//     not cached) until [Unmount] clears it. There is no automatic unmount.
package fusemount
