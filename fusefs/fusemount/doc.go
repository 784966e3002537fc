// Package fusemount mounts and unmounts views: the trees that package fusefs serves. It handles
// mount points, the mount table and fusermount3, and is independent of the content of a tree.
//
// # The flow
//
//  1. [CheckMountpoint] returns an error if a view cannot be mounted on a
//     directory. [Mount] repeats the check, on the handle that it then mounts on.
//  2. [Mount] mounts (directly as root, through fusermount3 otherwise), starts
//     the server, and reads the mount table back: a mount that is not
//     read-only, nosuid, nodev and (unless requested) noexec is unmounted again.
//  3. [Views] lists the views of other processes of this user, and [Other.Revoke]
//     revokes one: its readers get errors from then on, also for data that the
//     kernel had cached. Views of other users are listed and get no request.
//  4. [View.Unmount] unmounts it: normally or, after a grace period, by detaching
//     it, with the holders named in the log. [Unmount] does so for a view of
//     another process, even if its server has died.
//
// # What it trusts
//
// The kernel, and fusermount3 as far as it cannot be checked: its mounts and unmounts are looked up
// in the mount table.
//
// # What it promises
//
//   - A view is mounted read-only, so the kernel itself returns EROFS.
//   - No request is sent to a FUSE file system that another user serves: the
//     mount table has the user ([ErrForeign]).
//   - As root, a mount is unmounted by descriptor: the one that was checked, or
//     none. The helper of other users requires a path; it unmounts only their own
//     mounts, and the result is checked.
//   - A crashed server leaves a dead mount that returns errors (ENOTCONN for
//     uncached data) until [Unmount] clears it. There is no automatic unmount.
package fusemount
