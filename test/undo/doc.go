// Package undo stops, fails, kills and cuts off the undo operations: the rollback of a commit,
// the restore of a snapshot (of part of a root; of a whole root, also of one that is a mount
// point), and what they stand on, the taking and the pruning of snapshots.
//
// It is what packages crash, disk and power are for a commit, and uses the same
// tools and the same judge: the real binary, enumerated trials, package harness. The
// root is the state before or the state after, and nothing else; and so are the
// chain of savepoints, the audit log and the store of snapshots. The store is read
// here without the program: every snapshot in it must be what its name says and
// have every content that it needs, after whatever happened.
//
// A trial begins in a fixture (a root with a finished commit, changes since, foreign
// things, snapshots) that is made once by the program itself and copied back for
// every trial, so that all trials of a sweep begin in the same state.
package undo
