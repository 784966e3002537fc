// Package savepoint keeps the savepoints of restore roots: after each commit a
// signed bundle over the restored files (restore savepoint protocol, sections 2,
// 4.2, 11 and 14). What a savepoint signs beside the files is in the constraints
// of its TASK_SPEC.json, under "savepoint": the restore root, the attempt, its
// place in the chain, its parent, and the hashes of the Commit Report.
//
// # Layout
//
// A store is one directory. In it each restore root has a directory that is named
// after the SHA-256 of its path:
//
//	KEY/prepared/000007-ATTEMPT   a savepoint of a commit that has not ended
//	KEY/chain/000006-ATTEMPT      a savepoint
//	KEY/retired/000007-ATTEMPT    one whose commit was rolled back
//
// All are ordinary run directories, with the Commit Report beside the artifacts:
// COMMIT_REPORT.md and COMMIT_REPORT.json. Names that begin with a dot are what
// a killed process has left in prepared; the next one to write there removes them.
//
// # Steps
//
//  1. [Store.Prepare], before a commit writes anything: the savepoint is sealed
//     and durable, names the tip of the chain as its parent, and is not visible yet.
//  2. [Store.Publish], after the commit is complete: one rename. It may be called
//     again after a crash, by the session that finishes the commit.
//  3. [Store.Drop], when the commit was undone: one rename, then the removal.
//  4. [Store.SwitchTo], before the restore root is taken back to an earlier state: which
//     savepoints are retired, and which come back. The caller records that.
//  5. [Store.Activate], when the restore root was taken back: it moves exactly those,
//     and nothing is lost.
//
// # Trust
//
// Trusted: that no other user may write above the store, and that one process at a
// time writes for one restore root (a commit holds the lock of its root). Readers
// may read at any time. Not trusted: what is read back. Each savepoint is verified
// whenever it is read, all but the files that it is over; one that does not verify
// is a [*DamageError], and is never taken for a savepoint. [Store.List] and what builds on
// a chain fail with it; [Store.Survey] and what goes back ([Store.Activate], [Store.SwitchTo])
// pass over it, so that no damage stops a rollback.
//
// Promised: a savepoint that is changed, put in another's place, or missing in
// front of another is found. Not promised: that a missing end is. A user who may write
// the store can take away the newest savepoints, so that the chain ends earlier;
// "spectrum audit verify" misses them, as long as the audit log is whole.
package savepoint
