// Package staging changes a directory: all of it, durable and checked, or nothing, through
// errors, kills and power cuts. It knows nothing of what the files are, and calls nobody: its
// caller goes through the steps of a [Tx] in a straight line and writes its own records between
// them.
//
// A [Change] is a list of swaps: names beneath the directory, each with what stands there now
// (nothing, or an identity) and what shall stand there (nothing, a file, a tree, metadata of a
// directory that stays). Of a commit nothing stands there. Whatever else is in the root, or
// becomes of it meanwhile, does not matter.
//
// # The order of durability
//
// From step 2 on it happens under the lock, which is the first write (see below). Each step ends
// with its syncs, and none begins before the one above is done.
//
//  1. [Root.Plan] looks at every name, files before artifacts, each in order. What must be
//     there is the very inode that the caller saw, of a file with the same size and time;
//     what must not be there is not. What goes, and for which nothing comes, may be gone
//     already, then and later. Nothing is written.
//  2. [Tx.Begin] makes the staging directory, mode 0700, in the root, and in it the journal's
//     record INTENT: all swaps with the identities of what goes and of the directory of its
//     name, all paths to come, what directories that stay have and get. It syncs the root, and
//     makes the directories new, old and trash, or one for the artifacts.
//  3. [Tx.Stage] puts the chain manifest, if there is one, beside the staging directory, and
//     makes the directories of all files below new, each file at its own path. One that stands
//     beneath the root already gets the group, the set-group-id bit and the default access list
//     of the real one, so that all that is made below has from the beginning what it
//     would have if it were made at its name. It copies every file, several at a time: shares
//     its blocks where the file system can, else copies inside the kernel; checks the copy by
//     reading what was written; sets times, then mode, and what it takes over of a file that it
//     replaces. The caller makes its trees in new. All
//     becomes durable: up to 16 entries file by file and directory by directory, more of them,
//     or any tree, by one syncfs. Then the record PREPARED: the identity of everything that was
//     made, and of a tree a fingerprint of all that is beneath.
//  4. [Tx.Move] gives the names. A cancelled context stops it before the first of them. A new
//     subtree is moved whole, a single file where its directory exists, with
//     RENAME_NOREPLACE. What is marked as last leaves before anything else, durably. Something for something is one step (RENAME_EXCHANGE), where the file
//     system can; then what was displaced goes to old, and is looked at again there, where
//     nobody else comes: it has to be what was to go, and empty if it was to be. Every
//     directory that something has left is synced, then every one that got something, deepest
//     first and the root last: in the other order btrfs may come back from a power cut with
//     both names. Directories that stay get their owners, attributes, modes and times. Then
//     every name is looked up afresh from the root: it must be the very inode that was staged
//     (device, inode, birth time, size), and files are checked again.
//  5. [Tx.Commit] writes the artifacts into staging and syncs them, all of them, and writes the
//     record COMMITTED: their identities. Then they are moved to their names in the
//     order given, then the trees that are marked as last, each looked up afresh and checked, and the directory
//     that they left and those that they entered are synced. Whoever sees an artifact sees
//     a commit that no crash takes back. From here on it goes forward, whatever becomes of this.
//  6. [Tx.Close] moves what was displaced to trash and removes it, and what is left of staging
//     and the chain manifest. Nothing is removed through a link or in another mount, and a
//     directory that was to be empty is only removed empty. Then the journal goes, PREPARED
//     first, then INTENT, durably, then COMMITTED, and the staging directory.
//
// What the caller does before step 2 comes before anything is written; what it does between
// steps 5 and 6 has happened when the journal goes, also after a crash: then between
// [Unfinished.Resolve] and [Unfinished.Forget].
//
// # Replacement and removal
//
// A file of a commit may take the place of another one ([Swap].Old). In step 4 it waits in old under
// the number of its swap, and is exchanged with the one at its name (RENAME_EXCHANGE), which is
// looked at again there: on a mismatch all is undone, and what came out goes back. Step 6 removes
// what was replaced, or keeps it where another process has written to it since, or can (see below).
//
// In an undo each comes back, the very inode, unless another process has put something newer at the
// name, or has written to the new file there: that stays, and what was replaced is kept (see below,
// [Kept].Old). A name that others have left empty before the exchange stays so. So what others do at
// such a name never makes an undo fail (reinstate.go).
//
// The new file gets the owner, the group, the access list and the other extended attributes of the
// one that it replaces, in step 3, before it is durable, and is held to them in step 4; its
// permission bits are its own. What this user may not read or set is left out ([Tx.LeftOut]). Set-id
// bits, capabilities and signatures never come: they were meant for another content. What was read
// in step 1 has to be what the old file has when it was moved aside, or all is undone.
//
// A file that a commit removes is moved to old in step 4, and treated there like one that was
// replaced: looked at again, brought back by an undo unless something newer is at its name, removed
// by step 6 or kept. A directory that it leaves empty stays.
//
// What an artifact takes the place of is moved to old before anything else moves, durably, and comes
// back last: old artifacts are never seen beside new files, nor new ones beside old files.
//
// # Beside others
//
// A change with [Change.Keep] goes on whatever others do at its names; keep.go has all of it. A
// file comes out of an exchange whatever it is, and what comes out, or is put at a name before an
// undo gives that back, waits in old. Directories go when they are empty, each by itself, after
// what is in them: one with something new in it stays where it is ([Tx.Stayed]). In step 6, and at
// the end of an undo, what is in old is removed only if it is what the caller saw, by its identity,
// size, time, mode and owner, and if no process has it open to write to it, which the kernel
// answers by a lease. All else is moved to its path in the directory kept, which then gets the
// name spectrum-kept-<uuid>, or that with a suffix, in the root, durably, before the journal goes ([Tx.Kept],
// [Outcome].Left). What others put at a name after that was swapped stays there. Only the
// directories that lead to the names have to hold still; what goes wrong there is undone
// ([Error.IsDisturbance]).
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
// The staging directory is .spectrum06_staging_<uuid> of a commit, and
// .spectrum06_exchange_<uuid> of anything else. Each record is a file of its own that is never
// changed: written beside its
// name, synced, renamed, the directory synced. So none can be seen torn. A
// record is JSON and ends with an HMAC-SHA-256 of it under the key of the
// root. A journal of another version is not read. The journal needs no mark of its own
// for a halt: while one of its
// records is there the root is not clean.
//
// # Undo
//
// An error of steps 2 to 5 has [Tx.Abort] undo all of it, in reverse order, after COMMITTED
// has become ROLLING_BACK, which needs no space. Everything is back, durably, before anything
// that was made is removed. Where that record can neither be made durable
// nor be taken back, nothing is undone: it is for a recovery to decide. What to do is seen from
// what stands where, so it does not matter where the change or an undo was killed, nor
// which of its renames a power cut has spared.
//
// Of a commit exactly what it made goes: artifacts, files and new subtrees, chain manifest; a
// sync of every directory concerned; a look at every target; and only then the journal and the
// staging directory. What stands at a swapped name is compared with its
// recorded identity and moved aside into the directory old of staging, where nobody else
// works, a subtree whole. There it is compared again, each file by itself, and unlinked;
// directories are only ever removed empty. What proves to be somebody else's, or holds
// something of somebody else, is put back at its name. Where it cannot be moved aside (the
// staging directory is gone, the disk is full) it is compared and removed where it is.
// What existed before stays, empty
// directories too (SPECTRUM-06 section 8.5). The undo has failed when something cannot
// be removed, when something foreign is in a directory of ours, or when a
// target exists that another process made meanwhile.
//
// Of anything else, what waits in staging for a name goes back there if the name is free, or for
// the new thing if that is what stands there; so does what had taken
// the place of the old thing just before the move. Owners, attributes,
// modes and times of the directories that stay come back. What was made is removed if its
// fingerprint is still that of PREPARED. The undo has failed when something else stands at a
// name that something has to come back to, when what was put there was changed,
// or when something cannot be moved. All that was there then is at its name
// or in old. A name that was not swapped yet is not its business:
// what others did there does not halt the root.
//
// [Error].Rollback says why an undo has failed. The root is then halted: a
// mark is put beside the journal, and no command but a person's touches it.
//
// # Recovery
//
// [Unfinished.Resolve] ends what a killed attempt left. Without INTENT, or with
// INTENT alone, nothing has been moved: what staging holds by the names of the
// intent goes. PREPARED is undone as above, with the identities of the
// record. COMMITTED goes forward: of a commit, unless every artifact has left staging
// already, every file is checked once more, and the artifacts are placed;
// then step 6. Only what is not as it was left, or is in the way, has it undone
// after all; an error of the machine (EIO, EMFILE, EACCES, ENOMEM, ...) is returned,
// and the journal stays for the next recovery. ROLLING_BACK is undone. From COMMITTED on the
// journal is
// synced before anything is built on it. Every step accepts that it was done
// before, so a recovery can be killed at any point too, and that a crash has
// brought an old name back beside the new one.
//
// An identity outlives a reboot: inode, birth time, size and SHA-256 of a file that was made, in
// a root that is still the same inode; of what was displaced inode, birth time and type, as
// a power cut may set size and time back. An inode number alone would not do: ext4 gives
// it to the next file. A file whose content has changed since is not ours alone
// any more, and stays.
//
// A journal that this key has not made, that lies in a directory of another
// user or one open to others, or that was written for another root, is not
// believed: [HaltError]. When a person acknowledges what cannot be undone or believed
// ([Unfinished.Release]), the
// journal is void, and the staging directory, if it holds anything else, gets the
// name spectrum-kept-<uuid>, which [Outcome].Left tells. That of another user, or one open to
// others, stays where it is.
//
// On an overlay the first change of what is in a lower layer makes it another inode, and a
// directory of one cannot be moved. [Root.CopyUp] has what will go copied up before anybody
// looks at its identity; and there an empty directory is removed in place, and made again by an
// undo with the mode, owner, attributes and time that INTENT has. So a directory with something
// in it goes by a swap for each of its names.
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
// A nil error of Commit means that all is in place and durable. After Abort an error whose
// Rollback is nil means that nothing of the attempt is left. After a kill or a crash
// Resolve reaches one of the two, or halts. Nothing is ever overwritten, and
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
//     systems): it is refused in Begin. A file system that does not keep the
//     order of what was synced (ext4 without its journal) can break the rest.
//   - Of a commit, extended attributes, owners, set-id bits of the sources: they are not carried
//     over. New entries where nothing stood have the group and the access lists that their directory gives to
//     what is made in it; directories at most 0755 less the umask.
//   - Two targets that differ only by a link beneath the root: refused.
//   - Reading back, without root's powers, a file whose own bits forbid that
//     to its owner: Move fails. Recovery then knows such a file by its
//     inode, birth time and size alone.
//   - syncfs reports write errors since Linux 5.8 only; before that, Stage
//     can miss one when there are more than 16 entries.
//   - That a halt is known when its mark could not be written and the caller does not
//     remember it: then the next command tries the rollback again as after a kill.
//   - Anything against this user's own processes, or root's, that put things
//     into staging under the names of the journal.
//   - What another process writes, through a handle opened before, into what was
//     displaced, after the caller has looked at that; with [Change.Keep] only where the file
//     system has no leases, or the file is another user's and this one is not root.
//   - That the time of the base itself, if it gets one, is right after a kill
//     between the removal of the staging directory, which changes it, and the
//     moment at which it is set again; nor its mode if that bars its owner.
//   - The times of directories in which names are swapped and that get no metadata, but for those
//     beneath the root of a commit that is undone. One in which another process has worked since the
//     last move, as the times of change of what was moved say, keeps its time.
package staging
