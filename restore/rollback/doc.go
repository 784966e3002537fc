// Package rollback takes a restore root back to an earlier state (rollback
// contract): a finished commit is undone, or a snapshot is restored. It plans what
// goes and what comes; package commit keeps the records of it and package staging
// makes it happen, all or nothing.
//
// # A commit
//
// [Undo] removes exactly what a commit created: its files and result artifacts,
// also where their content has changed since, and the directories that it made and
// that hold nothing else. The snapshot that is taken first has all of it as it is
// now. What the commit did not create stays, and so does a directory that holds
// such a thing. Which directories the commit made is in the snapshot that was
// taken before it. Commits that were made after it build on it: they are named,
// and go with it or not at all.
//
// # A snapshot
//
// [Restore] makes everything that a snapshot is of as it was. What is there before is
// kept in a snapshot first. The two are compared, and the names that differ are swapped
// in one journaled transaction; whatever else happens in the root is no concern of it.
// What no snapshot can hold (a socket, a device, a mount) stays. A directory that came
// since and holds such a thing stays with it, and is named; what would have to displace
// one is refused before anything is written.
//
// # An emergency
//
// [Emergency] finds the snapshot to go back to: the newest of all of the root that a person
// or a timer has taken, and that verifies. What was taken before an action never counts, so
// a second emergency goes back to the same one. [Restore] does the rest.
//
// # Damage
//
// A way back needs its snapshot, and the undoing of a commit its savepoint and those of later
// ones. Whatever else is damaged or foreign in the stores is passed over. Where a savepoint
// that is needed cannot be read there is an [*UnreadError], and nothing is changed: the
// snapshot from before the commit is a way back without it. The chain of savepoints follows
// the root as far as it can be read ([savepoint.Store.Activate]).
//
// # What it trusts
//
// The stores of snapshots and savepoints, each of which checks what it reads, and
// the lock of the root. Not trusted: that the names that are swapped stand still. What has
// changed in them since the snapshot was taken is found before anything is given up, and
// then everything comes back.
package rollback
