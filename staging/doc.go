// Package staging changes a directory, called the root: completely, durably and checked, or not at
// all, through errors, kills and power cuts. It does not know what the files are. Its caller goes
// through the steps of a [Tx] in a straight line, and writes its own records between them.
//
// A [Change] is a list of swaps: names beneath the root, each with its old side (nothing, or the
// identity of an entry) and its new side (nothing, a file, a tree, or metadata of a directory that
// stays). In a commit that neither replaces nor removes files every old side is nothing. Other
// entries of the root are ignored, whatever happens to them.
//
// # The order of durability
//
// Steps 2 to 6 hold the lock, whose file is the first write (see below). Each step ends with its
// syncs, and no step begins before those of the step above have ended.
//
//  1. [Root.Plan] looks at every name, files before artifacts, each in order. In a commit an old
//     side must be the inode that the caller saw, with the same size and time, and where the old
//     side is nothing, the name must be free. Nothing is written.
//  2. [Tx.Begin] makes the staging directory, mode 0700, in the root, and in it the journal's
//     record INTENT: all swaps, the identities of their old sides and of the directories of their
//     names, all new paths, and the metadata of directories that stay, before and after. It syncs
//     the root. Then it makes the directories new, old and trash, or one for the artifacts.
//  3. [Tx.Stage] makes the new sides: the chain manifest, if there is one, beside the staging
//     directory; every file below new, at its own path; the caller's trees in new. A directory
//     below new that already exists beneath the root gets the group, set-group-id bit and default
//     access list of the real one, so that what is made in it inherits the same as at its name.
//     Several files are copied at a time, with shared blocks where the file system can, otherwise
//     inside the kernel. Each copy is checked by reading what was written. Then come times, mode,
//     and the metadata taken over from a replaced file. All of it is made durable: up to 16 entries
//     file by file and directory by directory; more of them, or any tree, by one syncfs. Then comes
//     the record PREPARED: the identity of everything that was made, of a tree a fingerprint of
//     all that is beneath.
//  4. [Tx.Move] gives the names. A cancelled context stops it before the first of them, not later.
//     Swaps that are marked as last leave their names before anything else, durably. A new subtree
//     is moved whole, a single file into its existing directory, with RENAME_NOREPLACE. A swap with
//     two sides is one RENAME_EXCHANGE, where the file system can; the displaced entry goes to old
//     and is looked at again there, out of reach of other processes: in a commit it must be the
//     planned old side. Then every directory that an entry has left is synced, and
//     after that every directory that an entry has entered, deepest first and the root last: in the
//     other order btrfs can come back from a power cut with both names. Directories that stay get
//     their owners, attributes, modes and times. Then every name is looked up again from the root:
//     it must be the staged inode (device, inode, birth time, size), and files are checked again.
//     Files of one directory are looked up by their names in it, at most 256 in a row: its path is
//     looked up before the first and after the last, and must lead to the same directory. A copy
//     that has stayed open since step 3 is not opened again: its name must lead to its inode.
//  5. [Tx.Commit] writes all artifacts into staging, syncs them, and writes the record COMMITTED:
//     their identities. Then the artifacts are moved to their names in the given order, and after
//     them the trees that are marked as last. Each is looked up again and checked. The directory
//     that they left and those that they entered are synced. So a visible artifact means that no
//     crash takes the commit back. From COMMITTED on a recovery goes forward.
//  6. [Tx.Close] moves what was displaced to trash and removes it, with the rest of staging and the
//     chain manifest. It follows no link and enters no other mount, and removes a directory that
//     had to be empty only if it is. Then the journal goes: PREPARED first, then INTENT, durably,
//     then COMMITTED, and the staging directory.
//
// What the caller does before step 2 happens before anything is written. What it does between
// steps 5 and 6 has happened when the journal goes; after a crash that is between
// [Unfinished.Resolve] and [Unfinished.Forget].
//
// # Replacement and removal
//
// In a commit that replaces a file ([Swap].Old), the new file waits in old under the number of its
// swap in step 4, and is exchanged with the existing one (RENAME_EXCHANGE), which is looked at
// again there. On a mismatch everything is undone, and the existing file goes back. Step 6 removes
// the replaced file, or keeps it if another process has written to it since, or can (see below).
//
// An undo brings back each replaced file, the same inode, unless another process has put a newer
// entry at the name or has written to the new file there: then that stays, and the replaced file is
// kept ([Kept].Old). A name that others had emptied before the exchange stays empty. So what other
// processes do at such a name never makes an undo fail (reinstate.go).
//
// The new file gets the owner, group, access list and other extended attributes of the replaced
// file in step 3, before it is durable, and is compared with them in step 4. Its permission bits are
// its own. What this user may not read or set is left out ([Tx.LeftOut]). Set-id bits, capabilities
// and signatures are never taken over: they belong to another content. The replaced file must have
// the same metadata when it is moved aside as in step 1, or everything is undone.
//
// A removed file is moved to old in step 4 and treated there like a replaced one: looked at again,
// brought back by an undo unless a newer entry is at its name, removed or kept by step 6. A
// directory that it leaves empty stays.
//
// An entry that an artifact replaces is moved to old before anything else moves, durably, and comes
// back last: old artifacts are never visible beside new files, nor new artifacts beside old files.
//
// # Beside others
//
// The kind of a change, which is in the journal, is its policy for a mismatch: a commit is undone.
// A change of another kind (a reset) succeeds whatever other processes do at its names; keep.go has
// the details. It displaces any entry; what is displaced, or is put at a name before an undo gives
// that back, waits in old. Directories are removed one by one when they are empty, after their
// entries; a directory with a new entry stays ([Tx.Stayed]). In step 6, and at the end of an undo,
// an entry of old is removed only if it is what the caller saw (identity, size, time, mode, owner)
// and no process has it open for writing, which the kernel answers by a lease. Everything else is
// moved to its path in the directory kept. Before the journal goes that directory gets, durably, the
// name spectrum-kept-<uuid>, or that with a suffix, in the root ([Tx.Kept], [Outcome].Left). What
// other processes put at a name after its swap stays there. Only the directories that lead to the
// names must not move; if one does, the change is undone ([Error.IsDisturbance]).
//
// # The lock
//
// One attempt at a time works in a root, on this host. It holds the lock (flock) of the file
// [LockName] there. Only users who may make names in the root can open that file, so a reader of the
// root cannot keep others out, as he could by locking the directory itself. The file is made before
// the journal and removed after it, so that a recovery finds it on a full disk too. It stays where
// an attempt could not be ended. After locking, the name is looked up again: it must be the same
// file, or the lock is taken again. A file that a kill has left is not locked, and the next session
// removes it. A session that only reads the root makes no lock file; if there is one, it waits for
// its holder. A root in which this user cannot make names is entered without a lock: nothing can be
// moved there.
//
// A user who may make names in the root can keep others out, which is reported, or replace the lock
// file. A second lock, of the staging directory, which no other user can open, prevents a recovery
// from then taking a running attempt for a killed one.
//
// # The journal
//
// The staging directory is .spectrum06_staging_<uuid> for a commit, and
// .spectrum06_exchange_<uuid> for a reset. Each record is a file of its own that is never
// changed: it is written beside its name, synced and renamed, and the directory is synced. So no
// record can be torn. A record is JSON and ends with an HMAC-SHA-256 of it under the key of the
// root. A journal of another version is not read. A halt needs no mark in the journal: a root with
// a record is not clean.
//
// # Undo
//
// An error of steps 2 to 5 makes [Tx.Abort] undo everything in reverse order. COMMITTED first
// becomes ROLLING_BACK by a rename, which needs no space. If that can neither be made durable nor
// be taken back, nothing is undone: a recovery decides. Everything is back, durably, before
// anything that was made is removed. The undo decides by what is at each name, so it does not
// matter where the change or an undo was killed, nor which of its renames a power cut has spared.
//
// An undo of a commit removes exactly what the commit made: artifacts, files and new subtrees,
// chain manifest. Then it syncs every directory concerned, looks at every target, and only then
// removes journal and staging directory. An entry at a swapped name is compared with its recorded
// identity and moved, a subtree whole, into the directory old of staging, out of reach of others.
// There each file is compared again and unlinked; directories are removed only if empty. An entry
// that is foreign, or has foreign content, goes back to its name. If it cannot be moved aside (the
// staging directory is gone, the disk is full), it is compared and removed in place. Entries that
// existed before stay, empty directories too (SPECTRUM-06 section 8.5). The undo fails if something
// cannot be removed, if a foreign entry is in a directory that the commit made, or if another
// process has made a target meanwhile.
//
// An undo of any other change gives each entry that waits in staging its name back, also an entry
// that had taken the place of the old side just before the move. What other processes have put at
// such a name makes way, and is kept. Owners, attributes, modes and times of the directories that
// stay are restored. A tree that was made is removed if its fingerprint is still that of PREPARED;
// else other processes have worked in it, and it is kept. The undo fails only if a directory that
// leads to a name was moved away, or if something cannot be moved. Every displaced entry is then at
// its name or in old. A name that was not swapped yet is ignored.
//
// So a commit removes what it made file by file, since its files are listed in the journal: beside a
// foreign file in a new directory, its own ones go. Of a tree the journal has only a fingerprint: the
// caller made it, and it goes or is kept as a whole.
//
// [Error].Rollback is the reason why an undo has failed. The root is then halted: a mark is put
// beside the journal, and only the command of a person touches it.
//
// # Recovery
//
// [Unfinished.Resolve] ends a killed attempt. Without INTENT, or with INTENT alone, nothing has
// been moved: the entries of staging that the intent names are removed. PREPARED is undone as above,
// with the identities of the record. COMMITTED goes forward: in a commit every file is checked once
// more and the artifacts are placed, unless all of them have left staging; then comes step 6. It is
// undone only if an entry is not as the attempt left it, or is in the way. An error of the machine
// (EIO, EMFILE, EACCES, ENOMEM, a full disk) is returned, and the journal stays for the next
// recovery. ROLLING_BACK is undone. From COMMITTED on the journal is synced before any step relies
// on it. Every step accepts that it was done before, so a recovery can be killed at any point, and
// that a crash has brought an old name back beside the new one.
//
// An identity survives a reboot: inode, birth time, size and SHA-256 of a file that was made, in a
// root that is still the same inode; inode, birth time and type of a displaced entry, since a power
// cut can set size and time back. An inode number alone is not enough: ext4 gives it to the next
// file. A file whose content has changed since also belongs to others, and stays.
//
// A journal is rejected ([HaltError]) if it was made with another key, is in a directory of another
// user or one open to others, or was written for another root. When a person acknowledges what
// cannot be undone or verified ([Unfinished.Release]), the journal is void, and the staging
// directory, if it has other content, is renamed spectrum-kept-<uuid> ([Outcome].Left). One of
// another user, or open to others, stays where it is.
//
// On an overlay the first change of an entry of a lower layer gives it another inode, and a
// directory of a lower layer cannot be moved. [Root.CopyUp] copies up the old sides before their
// identities are read. There an empty directory is removed in place, and an undo makes it again with
// the mode, owner, attributes and time of INTENT. So a directory with entries goes by a swap for
// each of its names.
//
// # Design choices
//
// Displaced entries that must be kept stay in the root, in spectrum-kept-<uuid>. They are not moved
// into the snapshot store of the caller: that may be on another file system, where a move is a copy
// that takes space and misses later writes; and a process that has the file open could go on writing
// to an object that the store names by its hash. The caller needs no such move: its snapshot has
// read the old entries in full before the change.
//
// The kind of a change decides what happens to displaced entries; there is no policy for a single
// swap. INTENT has it before anything is moved, so an undo and a recovery never depend on a later
// record or on the caller, and entries of one change cannot be treated by different rules.
//
// On an overlay files are copied up before INTENT, under the lock, and not after it: INTENT must
// record the inodes that the change moves, and a record is never changed. A kill in between leaves
// only copied-up files with the same content, and needs no recovery.
//
// If COMMITTED was renamed but could not be synced, it is undetermined whether a crash keeps it.
// [Tx.Abort] does not leave that to the next session if it can help it: it renames the record to
// ROLLING_BACK, durably, and undoes everything. So after an error that passes, such as a full disk,
// the root is clean at once. Only if this rename or its sync fails, nothing is undone, and
// [Unfinished.Resolve] decides by the record that is there.
//
// # What it trusts
//
// Trusted: the kernel and the file system below it, that a successful sync was one, the caller's
// File.Check, and pathsafe for every access. Not trusted: the sources, which may change or grow
// while they are copied, and other processes that write beneath the root at the same time.
//
// # What it promises
//
// A nil error of Commit means that everything is in place and durable. After Abort an error whose
// Rollback is nil means that nothing of the attempt is left. After a kill or a crash Resolve reaches
// one of the two, or halts. Nothing is ever overwritten, and nothing outside the root is reached.
// The reported error does not depend on timing: of several files that fail, it is the one of the
// lowest rank, and then the first in path order. A sync is never retried after an error.
//
// # What it does not promise
//
//   - Anything about another host: the lock is one of this host's kernel.
//   - The time of the root where another process changes a name in it in the same instant in which
//     the lock is made: then the time of before is set.
//   - A file system without RENAME_NOREPLACE (some FUSE and network file systems): Begin rejects
//     it. A file system that does not keep the order of syncs (ext4 without its journal) can break
//     the rest.
//   - In a commit, extended attributes, owners and set-id bits of the sources: they are not copied.
//     New entries at free names have the group and the access lists that their directory gives;
//     directories have at most 0755 less the umask.
//   - Two targets that differ only by a link beneath the root: rejected.
//   - Reading back, without root's powers, a file whose own bits forbid that to its owner: Move
//     fails. Recovery then identifies such a file by inode, birth time and size alone.
//   - syncfs reports write errors since Linux 5.8 only; before that, Stage can miss one when there
//     are more than 16 entries.
//   - That a halt is known when its mark could not be written and the caller does not remember it:
//     then the next command tries the rollback again, as after a kill.
//   - Anything against this user's own processes, or root's, that put entries into staging under
//     the names of the journal.
//   - What another process writes, through a handle opened before, into a displaced file after the
//     caller has looked at that, where the file system has no leases, or the file belongs to another
//     user and this one is not root.
//   - That the time of the root itself, if it gets one, is right after a kill between the removal of
//     the staging directory, which changes it, and the moment at which it is set again; nor its mode
//     if that bars its owner.
//   - The times of directories in which names are swapped and that get no metadata, except those of
//     a commit that is undone, and of its root. A directory in which another process has worked
//     since the last move, as the times of change of the moved entries show, keeps its time; so does
//     a root in which something was kept, or whose undo was killed after its first move, or of
//     another owner. A change of another process in the moment of the undo can lose its time.
package staging
