// Package action changes restore roots: a commit, its rollback, the restore of a snapshot, and
// the recovery of a killed attempt. It decides what is to change, records it before and after, and
// gives every outcome its code and phase. Package staging carries the change out, all or nothing;
// the order of durability is in its package comment.
//
// # Entering a root
//
// [Enter] opens the root, waits for its lock, and ends unfinished attempts (recover.go): each is
// resolved, recorded, and only then forgotten. An attempt that needs a person halts the root.
//
// # A commit
//
// [Commit] requires a [preview.Approved], so it publishes only what an operator has approved. It is
// EXECUTE and VERIFY of SPECTRUM-06 (sections 5.4, 5.5, 6.4 and 6.5):
//
//  1. A conflict that the plan already knows, or a lack of room, ends it before anything is written.
//  2. The names are planned. From here on every preview of the root is void, whatever the outcome.
//     The snapshot of the names is taken, the savepoint prepared, and the beginning logged, all
//     durably, before anything is written to the root.
//  3. The transaction begins. Every output is copied from its source, and the copy is checked
//     against the signed hash, since the source is not trusted.
//  4. The copies are moved to their targets, looked up again, and checked again.
//  5. The transaction is committed: the result artifacts, made from the plan, appear last. They are
//     the sign of success.
//  6. The savepoint is published and the end logged (restore savepoint protocol, section 4.2).
//  7. The transaction is closed.
//
// A failure up to step 5 undoes everything (section 8.5), which is logged. After step 5 the commit
// is complete; the next session that enters the root does the missing steps.
//
// # A commit is undone
//
// [Undo] brings back what a commit replaced or removed, and removes exactly what it created: its
// files and result artifacts, also if their content has changed since, and the directories that it
// made and that have no other entries. The snapshot taken first has all of it in its present state.
// Other entries stay, and so do the directories that hold them. The snapshot from before the commit
// tells which directories the commit made. Later commits build on it: they are named, and are undone
// with it or not at all.
//
// # A snapshot is restored
//
// [Restore] brings every name of a snapshot back to its state. It first takes a snapshot of the
// present state, compares the two, and swaps the names that differ in one transaction. Other names
// of the root are ignored. An entry that no snapshot can hold (a socket, a device, a mount) stays. A
// later directory with such an entry stays too and is named; a restore that would have to displace
// one is rejected before anything is written.
//
// Undo and Restore go through the steps of a commit, with two differences: other processes may work
// at the swapped names, and in step 6 the chain of savepoints goes back with the root, and views of
// what was undone are revoked.
//
// Other processes cannot stop a rollback. Of a file that is written to all the time the snapshot has
// what could be read. A displaced entry that differs from the snapshot, or is open for writing, is
// kept in the root and named ([Done]); a directory in which others made something stays. If a
// directory that leads to a swapped name is moved away, everything is undone and begins again, at
// most [maxDisturbed] times.
//
// # An emergency
//
// [Emergency] finds the snapshot to go back to: the newest one of the whole root that a person or a
// timer has taken, and that verifies. Snapshots taken before an action do not count, so a second
// emergency goes back to the same one. [Restore] does the rest.
//
// If attempts that cannot be undone halt the root, an [EmergencyRelease] releases them first, since
// the whole root goes back; the root stays halted for other commands until that has succeeded.
//
// # Halts
//
// A valid rollback that cannot begin, or fails, halts its root for other commands (bar.go): an entered
// root records that itself ([Root.Refused]), and a [Refusal] does it for a root that could not be
// entered. A rollback that succeeds ends the halt, and so does an operator: [Settled] has the order of
// the last steps of a recovery.
//
// # Damage
//
// A rollback needs its snapshot, and the undo of a commit its savepoint. Other damaged or foreign
// entries of the stores are ignored. If the savepoint of the commit cannot be read, the error is an
// [*UnreadError] and nothing is changed: the snapshot from before the commit can be restored without
// it. If that of a later commit cannot be read, everything stays that the later commit may have
// created. The chain of savepoints follows the root as far as it can be read
// ([savepoint.Store.Activate]).
//
// # Trust
//
// The stores of snapshots and savepoints, each of which checks what it reads, and the lock of the
// root.
package action
