// Package action changes restore roots: a commit, its rollback, the restore of a snapshot, and
// the recovery of what was killed. It says what is to change, records it before and after, and
// gives every outcome its code and phase; package staging makes it happen, all or nothing, and
// never calls back.
//
// # A root is entered
//
// [Enter] opens the root, takes its lock, and ends what stands there (recover.go): each
// unfinished attempt is resolved, recorded, and only then forgotten. What cannot be ended
// without a person halts the root.
//
// # A commit
//
// [Commit] takes a [preview.Approved] and nothing else, so nothing is published that an
// operator did not approve as it is: EXECUTE and VERIFY of SPECTRUM-06 (sections 5.4, 5.5, 6.4
// and 6.5). From top to bottom:
//
//  1. a conflict that the plan knows already ends it before anything is
//     written (D11, D20), and so does a lack of room;
//  2. the names are planned; whatever becomes of it, every preview of the root is void from
//     here on; the snapshot of what it will make is taken, the savepoint prepared, and the
//     beginning logged: durably, before anything is written to the root;
//  3. INTENT; every output is copied from its source and the copy is checked against
//     the signed hash, since the source is not trusted; PREPARED;
//  4. the copies are moved to their targets, found again, and checked again;
//  5. COMMITTED; the result artifacts, which were made from the plan, are
//     put in place last: they are the sign of success;
//  6. the savepoint is published and the end logged (restore savepoint protocol, section 4.2);
//  7. the journal goes.
//
// On every failure up to step 5 what the attempt made is removed (section 8.5), and that is
// logged. From step 5 on it is complete: whatever is missing the next one to enter the root does.
//
// # A commit is undone
//
// [Undo] brings back what a commit replaced or removed, and removes exactly what it created: its
// files and result artifacts, also where their content has changed since, and the directories that it made and
// that hold nothing else. The snapshot that is taken first has all of it as it is
// now. What the commit did not create stays, and so does a directory that holds
// such a thing. Which directories the commit made is in the snapshot that was
// taken before it. Commits that were made after it build on it: they are named,
// and go with it or not at all.
//
// # A snapshot is restored
//
// [Restore] makes everything that a snapshot is of as it was. What is there before is
// kept in a snapshot first. The two are compared, and the names that differ are swapped
// in one transaction; whatever else happens in the root does not matter.
// What no snapshot can hold (a socket, a device, a mount) stays. A directory that came
// since and holds such a thing stays with it, and is named; what would have to displace
// one is rejected before anything is written.
//
// Both go through the steps of a commit, with two differences: other processes may work at the
// names that are swapped, and in step 6 the chain of savepoints goes back with the root, and views
// of what was undone are revoked.
//
// Nothing that others do there stops a rollback. A file that is written to all the time is in the
// snapshot as far as it could be read. What is displaced and is not exactly what the snapshot has,
// or is open for writing, is kept in the root and named ([Done]); a directory in which they made
// something stays. Where they move a directory away that leads to such a name, all of it is
// undone, and begins again, [maxDisturbed] times at most.
//
// # An emergency
//
// [Emergency] finds the snapshot to go back to: the newest of all of the root that a person
// or a timer has taken, and that verifies. What was taken before an action never counts, so
// a second emergency goes back to the same one. [Restore] does the rest.
//
// # Damage
//
// A rollback needs its snapshot, and the undoing of a commit its savepoint. Whatever else is
// damaged or foreign in the stores is passed over. Where the savepoint of the commit cannot be
// read there is an [*UnreadError], and nothing is changed: the snapshot from before the commit
// can be restored without it. Where that of a later commit cannot be read, all stays that the
// later commit may have created. The chain of savepoints follows
// the root as far as it can be read ([savepoint.Store.Activate]).
//
// # What it trusts
//
// The stores of snapshots and savepoints, each of which checks what it reads, and the lock of the
// root.
package action
