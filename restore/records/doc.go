// Package records compares what a state directory keeps of restore roots: the audit log, the
// savepoints, the marks of rollbacks and the snapshots.
//
// It trusts signatures that verify, and the hashes of an intact log. Each record is proven by
// another one, so it finds a record that was removed, replaced or put back as long as the other one
// is there ([Flaws]). It does not find a change of both. It changes nothing, and has no words for a
// user: a [Flaw] has a kind and names.
//
//  1. Read the log, the savepoints, the snapshots, and the log again ([Read]): what must be kept of an
//     action was in the first log, and what the log must have of a record is in the second one.
//  2. Compare the savepoints with the log ([Records.Misfits]), and all the others.
//  3. Skip differences in a root with an action that has not ended, and look again for a while at what
//     another command may be about to log.
package records
