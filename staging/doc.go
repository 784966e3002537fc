// Package staging puts a set of files beneath a directory: all of them, durable
// and checked, or none, through errors, kills and power cuts. It is a
// transaction on a directory and knows nothing of what the files are. An
// [Exchange] is its other transaction: it replaces names that are there.
//
// Both are a list of swaps: names beneath the directory, each with what stands there now and
// what shall stand there. Of a commit nothing stands there. They have one journal, one undo,
// one clean-up and one recovery; where these treat them differently, the kind of the attempt
// in the journal decides.
//
// # The order of a commit
//
// [Session.Run] goes through these steps. Each ends with its syncs, and none begins before
// the one above is done.
//
//  1. Look at every target, files before artifacts, each in order; nothing may
//     stand there. Nothing has been written so far. Take the lock (see below), which is the
//     first write, and look again.
//  2. Make the staging directory .spectrum06_staging_<uuid>, mode 0700, in the
//     root, and in it the journal's record INTENT: all swaps, and all paths to come.
//     Sync the root. Make the directories new and old in it. Only then put the chain
//     manifest, if there is one, beside it, and
//     sync again. Make the directories of all files below new, each file at
//     its own path, and one for the artifacts. One that stands beneath the root
//     already gets the group, the set-group-id bit and the default access list of
//     the real one, so that all that is made below has from the beginning what it
//     would have if it were made at its name.
//  3. Copy every file, several at a time: share its blocks where the file
//     system can, else copy inside the kernel. Have the disk begin with large ones at once.
//     Check the copy by reading what was written. Set times, then mode.
//  4. Make staging durable: up to 16 entries file by file and directory by
//     directory, more of them by one syncfs on a handle opened before. Write
//     the record PREPARED: the identity of every file and directory.
//  5. Move with renameat2(RENAME_NOREPLACE): a whole subtree where its top is
//     new, a single file where its directory exists. Sync every directory that
//     something has left, then every one that got something, deepest first and
//     the root last: in the other order btrfs may come back from a power cut
//     with both names. Until the first move a cancelled context stops the
//     commit; from here on it is finished.
//  6. Look every file up afresh from the root. It must be the very inode that
//     was staged (device, inode, birth time, size), and is checked again.
//  7. Write the artifacts into staging and sync them, all of them. Write the
//     record COMMITTED: their identities. Then move them to their names in the
//     order given, look each one up afresh and check it, and sync the directory
//     that they left and those that they entered. Whoever sees an artifact sees
//     a commit that no crash takes back.
//  8. Remove what is left of staging and the chain manifest. Sync the root.
//     Remove the journal, PREPARED first, then INTENT, durably, then COMMITTED, and the
//     staging directory.
//     From the end of step 7 on the commit has succeeded, whatever becomes of this.
//
// # The lock
//
// One attempt at a time is at work in a root, on this host: it holds the lock of the file
// [LockName] there (flock). A reader of the root must not be able to keep others out, as with a
// lock of the directory itself; so the file can be opened by those only who may make names in
// the root. It is made before the journal and removed after it, so that a recovery finds it on a
// full disk too, and stays where an attempt could not be ended. After it was locked the name is
// looked at again: it has to be the same file, or the lock is taken anew. A file that a kill has
// left is locked by nobody, and the next session removes it. What looks at a root only makes no
// lock; if there is one it waits for its holder. A root in which this user cannot make names is
// entered without: nothing can be moved there.
//
// Who may make names in the root can also keep others out, which is then said, or replace the
// file. That no recovery takes the attempt that is at work for one that was left then is seen to
// by a second lock, of the staging directory, which no other user can open.
//
// # The journal
//
// Each record is a file of its own that is never changed: written beside its
// name, synced, renamed, the directory synced. So none can be seen torn. A
// record is JSON and ends with an HMAC-SHA-256 of it under the key of the
// session. A journal of another version is not read. The journal needs no mark of its own
// for a halt: while one of its
// records is there the root is not clean.
//
// # Rollback
//
// Any failure of steps 2 to 7 rolls back: artifacts, files and new subtrees, chain manifest;
// a sync of every directory concerned; a look at every
// target; and only then the journal and the staging directory. After COMMITTED
// it first renames that record to ROLLING_BACK, which needs no space. What goes
// is exactly what this attempt made. What stands at a swapped name is compared with its
// recorded identity and moved aside into the directory old of staging, where nobody else
// works, a subtree whole. There it is compared again, each file by itself, and unlinked;
// directories are only ever removed empty. What proves to be somebody else's, or holds
// something of somebody else, is put back at its name. Where it cannot be moved aside (the
// staging directory is gone, the disk is full) it is compared and removed where it is.
// What existed before stays, empty
// directories too (SPECTRUM-06 section 8.5, decisions D11, D14, D15).
//
// The rollback has failed, and [Error].Rollback says why, when something cannot
// be removed, when something foreign is in a directory of ours, or when a
// target exists that somebody else made meanwhile. The root is then halted: a
// mark is put beside the journal, and no command but a person's touches it.
//
// # Recovery
//
// [Session.Recover] ends what a killed attempt left. Without INTENT, or with
// INTENT alone, nothing has been moved: what staging holds by the names of the
// intent goes. PREPARED is rolled back as above, with the identities of the
// record. COMMITTED goes forward: unless every artifact has left staging
// already, everything is checked once more (step 6), the artifacts are placed,
// then step 8. Only what is not as it was left, or is in the way, has it rolled back
// after all; an error of the machine (EIO, EMFILE, EACCES, ENOMEM, ...) is returned,
// and the journal stays for the next recovery. ROLLING_BACK is rolled back. From COMMITTED on the journal is
// synced before anything is built on it. Every step accepts that it was done
// before, so a recovery can be killed at any point too, and that a crash has
// brought an old name back beside the new one.
//
// An identity outlives a reboot: inode, birth time, size and SHA-256, in a root
// that is still the same inode. An inode number alone would not do: ext4 gives
// it to the next file. A file whose content has changed since is not ours alone
// any more, and stays.
//
// A journal that this key has not made, that lies in a directory of another
// user or one open to others, or that was written for another root, is not
// believed: [HaltError]. When a person acknowledges what cannot be undone or believed, the
// journal is void, and the staging directory, if it holds anything else, gets the
// name spectrum-kept-<uuid>, which [Outcome].Left tells. That of another user, or one open to
// others, stays where it is.
//
// # Exchange
//
// [Session.Exchange] makes names mean something else, or nothing: all of them, or none.
// Whatever else is in the root, or becomes of it meanwhile, does not matter. In these
// steps, each ending with its syncs:
//
//  1. Look at every name and at every directory that stays. What must be there is
//     the very inode that the caller saw, of a file with the same size and time;
//     what must not be there is not. What goes, and for which nothing comes, may be
//     gone already, then and later. Nothing has been written so far. The log hears
//     that it begins.
//  2. Make the staging directory, mode 0700, and in it INTENT: every swap with
//     the identities of what goes and of the directory of its name, and what the
//     directories that stay have and get. It is .spectrum06_exchange_<uuid> in the
//     root. In it are the directories new, old and trash.
//  3. Have what comes made in new. Make it durable by syncfs. Record in PREPARED
//     its identities and a fingerprint of all that is beneath. A cancelled context
//     stops the exchange before the first move.
//  4. Take away what is marked as last, durably. Then swap in order: something for something
//     in one step (RENAME_EXCHANGE), where the file system can; then what went to old. Look at it again there, where
//     nobody else comes: it has to be what was to go, and empty if it was to be.
//     Sync new, the directories of all names, old; where some of them have gone
//     themselves, or there are many, by one syncfs.
//  5. Set owners, attributes, modes and times of the directories that stay. Look at
//     every name once more. Ask Settled.
//  6. Write COMMITTED. Put what is marked as last at its names, durably. From here on it
//     goes forward, whatever becomes of this: the log hears that it is complete; what went is moved to trash and removed;
//     then the journal, COMMITTED last, and the staging directory. Nothing is
//     removed through a link or in another mount, and a directory that was to be
//     empty is only removed empty.
//
// Any failure of steps 2 to 6 undoes the swaps in reverse order, after COMMITTED
// has become ROLLING_BACK. What to do is seen from what stands where: what waits
// in staging for a name goes back there if the name is free, or for the new thing
// if that is what stands there. So it does not matter where an exchange or an
// undo was killed, nor which of its renames a power cut has spared. What had taken
// the place of the old thing just before the move goes back as well. Owners, attributes,
// modes and times of the directories that stay come back. What was made is removed if its
// fingerprint is still that of PREPARED.
//
// On an overlay the first change of what is in a lower layer makes it another inode, and a
// directory of one cannot be moved. [Session.CopyUp] has what will go copied up before anybody
// looks at its identity; and there an empty directory is removed in place, and made again by an
// undo with the mode, owner, attributes and time that INTENT has. So a directory with something
// in it goes by a swap for each of its names.
//
// The undo has failed, and the root is halted, when something else stands at a
// name that something has to come back to, when somebody has changed what was put
// there, or when something cannot be moved. All that was there then is at its name
// or in old. A name that the exchange had not touched yet is not its business:
// what others did there does not halt the root.
//
// [Session.Recover] undoes up to PREPARED and goes forward from COMMITTED. It knows
// things by inode, birth time and type; not by size and time, which a power cut may set
// back. When a person acknowledges what cannot be undone, nothing of what went is removed.
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
// is nil means that nothing of the attempt is left. After a kill or a crash
// Recover reaches one of the two, or halts. Nothing is ever overwritten, and
// nothing reached that is not beneath the root. Which error is reported does
// not depend on timing: of several files that fail, it is the one of the lowest
// rank, and then the first in path order. Of the first error of a sync there is
// no second try.
//
// # What it does not promise
//
//   - Anything about another host: the lock is one of this host's kernel.
//   - That the time of the root is the kernel's where another process changes a name in it in
//     the same instant as the lock is made: that of before is set again then.
//   - A file system without RENAME_NOREPLACE (some FUSE and network file
//     systems): it is refused in step 2. A file system that does not keep the
//     order of what was synced (ext4 without its journal) can break the rest.
//   - Of a commit, extended attributes, owners, set-id bits: they are not carried over.
//     New entries have the group and the access lists that their directory gives to
//     what is made in it; directories at most 0755 less the umask.
//   - Two targets that differ only by a link beneath the root: refused.
//   - Reading back, without root's powers, a file whose own bits forbid that
//     to its owner: step 6 fails. Recovery then knows such a file by its
//     inode, birth time and size alone.
//   - syncfs reports write errors since Linux 5.8 only; before that, step 4
//     can miss one when there are more than 16 entries.
//   - That a halt is known when its mark could not be written and nobody
//     remembers it ([Session].Halted): then the next command tries the rollback
//     again as after a kill.
//   - Anything against this user's own processes, or root's, that put things
//     into staging under the names of the journal.
//   - Of an exchange: what somebody writes, through a handle opened before, into
//     what went, after Settled has seen it. Settled is there to see what came
//     before that.
//   - That the time of the base itself, if it gets one, is right after a kill
//     between the removal of the staging directory, which changes it, and the
//     moment at which it is set again; nor its mode if that bars its owner.
//   - The times of directories that an exchange changes and that are not named
//     as staying.
package staging
