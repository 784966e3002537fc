// Package staging puts a set of files beneath a directory: all of them, durable
// and checked, or none. It is a transaction on a directory and knows nothing of
// what the files are.
//
// # The order of a commit
//
// [Run] goes through these steps. Each ends with its syncs, and none begins
// before the one above is done.
//
//  1. Take the lock of the root (flock). Look at every target, files before
//     artifacts, each in order; nothing may stand there. Nothing has been
//     written so far.
//  2. Write the chain manifest, if there is one, and sync it. Make the staging
//     directory .spectrum06_staging_<uuid>, mode 0700, in the root; try there
//     whether this file system moves without replacing. Sync the root. Make
//     the directories of all files below staging, each file at its own path.
//  3. Copy every file, several at a time: share its blocks where the file
//     system can, else copy inside the kernel. Have the disk begin with large ones at once.
//     Check the copy by reading what was written. Set times, then mode.
//  4. Make staging durable: up to 16 entries file by file and directory by
//     directory, more of them by one syncfs on a handle opened in step 1.
//  5. Move with renameat2(RENAME_NOREPLACE): a whole subtree where its top is
//     new, a single file where its directory exists. Sync every directory that
//     got something, deepest first, the root last. Until the first move a
//     cancelled context stops the commit; from here on it is finished.
//  6. Look every file up afresh from the root. It must be the very inode that
//     was staged (device, inode, birth time, size), and is checked again.
//  7. Write the artifacts to files without a name and sync them, all of them,
//     then link them to their names in the order given; where that is not
//     possible, rename them out of staging. Sync their directories. Whoever
//     sees the last artifact sees a finished commit.
//  8. Remove what is left of staging, then the chain manifest. Sync the root.
//
// # Rollback
//
// Any failure after step 1 rolls back: artifacts, files, directories deepest
// first, staging, chain manifest, sync; then every target is looked at once
// more. What goes is exactly what this attempt made. A file is compared with
// its recorded identity, moved aside into staging where nobody else works,
// compared again, and only then unlinked; what proves to be somebody else's is
// put back. Directories are only ever removed empty. What existed before stays,
// empty directories too (SPECTRUM-06 section 8.5, decisions D11, D14, D15).
//
// The rollback has failed, and [Error].Rollback says why, when something cannot
// be removed, when something foreign is in a directory of ours, or when a
// target exists that somebody else made meanwhile.
//
// # What it trusts
//
// The kernel and the file system below it, that a sync that succeeded was one,
// the caller's File.Check, and pathsafe for every access. It does not trust the
// sources, which may change or grow while they are copied, nor others who write
// beneath the root at the same time.
//
// # What it promises
//
// A nil error means that all is in place and durable. An error whose Rollback
// is nil means that nothing of the attempt is left. Nothing is ever overwritten,
// and nothing reached that is not beneath the root. Which error is reported does
// not depend on timing: of several files that fail, it is the one of the lowest
// rank, and then the first in path order. Of the first error of a sync there is
// no second try.
//
// # What it does not promise
//
//   - Anything about a commit that was killed: its staging directory is left.
//   - Anything about another host: the lock is one of this host's kernel.
//   - A file system without RENAME_NOREPLACE (some FUSE and network file
//     systems): it is refused in step 2.
//   - Extended attributes, owners, set-id bits: they are not carried over.
//     Directories get 0777 less the umask.
//   - Two targets that differ only by a link beneath the root: refused.
//   - Reading back, without root's powers, a file whose own bits forbid that
//     to its owner: step 6 fails.
//   - syncfs reports write errors since Linux 5.8 only; before that, step 4
//     can miss one when there are more than 16 entries.
package staging
