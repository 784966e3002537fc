// Package snapshot keeps captures of roots, so that every restore can be
// undone (rollback and snapshot contract, sections 2.1, 3 and 4): everything below
// a root, or some names in it, with contents, modes, owners, times to the
// nanosecond, extended attributes, links, hard links, holes and FIFOs.
//
// # Layout
//
// A store is one directory:
//
//	objects/ab/<sha256>       contents of files and parts of manifests, mode 0400, each once
//	roots/<key>/<seq>-<id>    manifests; the key is the SHA-256 of the root's path
//	incoming/<uuid>/          what a take in progress has made
//
// A manifest has a line of canonical JSON for its header, one for each entry, in
// the order of a walk, one that counts them, and one that signs all others with the key of the
// host. The header has the number of the snapshot among those of its root, which decides which
// one is newer, the ID of the one before, and where the audit log stood. Bytes that are not UTF-8, and
// "%", are written as "%" and two hex digits. A text that would not print again as
// the same bytes is rejected. The ID of a snapshot is the SHA-256 of its manifest.
// Objects and manifests are never changed.
//
// Of a whole root with more than 128 entries the manifest has that of the root only, and then a
// line for each part: its SHA-256, its size, and how many entries it has. A part is an object with
// the lines of entries that follow each other. Which entry ends a part depends on the path of that
// entry, and on the entries since the one before: so a change of an entry makes one new part, a name
// that comes or goes a few, and snapshots share the others. Each part is checked against its digest
// when it is read, so the ID stands for all entries. Manifests of version 2, without parts, are read.
//
// # Take
//
//  1. Lock the store, together with other takes and readers; [Store.Prune] locks
//     it alone. A process that gets it alone first removes what killed takes have left.
//  2. Look at everything through directory handles, following no link, entering
//     no other mount. Of a socket, a device and another mount a snapshot of a whole root
//     has the name alone; beneath the names of a scope they are rejected. What is the very same as in the newest snapshot (device,
//     inode, birth time, size, times of modification and change) is not read
//     again, if a sync of the file system that ended before it was read had
//     begun after its time of change, plus a tick of the clock: only then would
//     a write through a mapping have changed a time. Manifests keep when that
//     sync began. Only on ext4, XFS, Btrfs and F2FS does a sync give that
//     guarantee; elsewhere, as in memory, everything is read. Before an action
//     the object of such a file is read too, and hashed; before a restore only where the
//     restore may displace the file ([Request].Becomes).
//  3. Sync the file system of the root. Read the other files, several at a time,
//     hashing what is copied. One that changes meanwhile is read again, a few
//     times; one that was changed since that sync is synced by itself first, so
//     that a writer through a mapping is found. What went away is left out, and what
//     becomes another thing again and again; before an action that is an error, unless others
//     may go on there ([Request].Live): then a file that never comes to rest is kept as far as
//     it could be read, and named. An object that is there already is read before it is relied
//     on, and replaced where it is damaged. Holes are hashed as the zeros that they are; where those
//     of all files that are read are more than [bundle.MaxHoles], there is no
//     snapshot: to leave a file out would have a restore remove it.
//  4. Write the parts that the snapshot compared with does not have.
//     Make the new objects durable, with one syncfs when there are many. Move
//     them to their places. Make those durable.
//  5. Lock the place of the root. Write the manifest beside, with the next number, sync it,
//     rename it, sync its directory. Only now
//     there is a snapshot.
//
// # Prune
//
// All manifests are read first. Those that go are removed, and that is made
// durable; then the objects, parts among them, that none of the others needs. Wherever it is
// killed, no snapshot lacks an object. The snapshot that an emergency rollback would go
// back to ([Header.ForEmergency], and it verifies) never goes.
//
// # Damage
//
// A damaged part is damage of each manifest that has it ([DamageError].Part); a take of unchanged
// names writes it again. [Store.List] fails where a manifest cannot be read; [Store.Survey] and [Store.Find] pass
// over what they do not need. [Store.Inspect] looks for damage. [Store.Repair] copies a lost
// content from the root into incoming, hashes it, and makes it durable; then it takes the
// place of the damaged object in one step.
//
// # Trust
//
// Trusted: the kernel, and that no other user may write the store. Not trusted: the
// root, which others may change meanwhile, and what is read back from the store:
// a manifest must hash to its ID, and each byte of an object is hashed when it is
// written or verified. What is not as it was put there is a [*DamageError].
//
// Promised: after a kill or a power cut every snapshot that is listed is whole.
// What [Store.Write] makes is what Take saw.
//
// Not promised: one point in time. A root that others write to while it is taken
// is captured file by file, each file and each directory in one state of its own;
// hold the lock of the root. That a file that is written to all the time was ever
// what is kept of it: such files are named, and are an error before an action.
// Outside of the file systems named above, and where times of change have no
// fractions, a writer through a mapping is not noticed while it is at work. That
// the object of a file that was not read again is undamaged, but for what an
// action may displace: Verify reads it. Writes of devices to pages that they have
// pinned. That a user who may write the store cannot remove a snapshot: [Breaks] finds
// one in the middle of a chain, and the audit log the newest. Access times, which become those of modification; which blocks of a
// sparse file were holes: its zeros become holes; and flags of the file system.
package snapshot
