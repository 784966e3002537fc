// Package harness is the stage and the judge of the fault tests.
//
// It makes signed projects and restore roots with foreign things in them, runs
// the real binary, with and without a fault, and says whether a root is exactly
// as before, exactly as after the commit, or neither. What after is, it computes
// from the sources: it uses no package of the program.
//
// The rules of the judge, with their names:
//
//	O1 the tree is exactly before or exactly after
//	O2 after, once success or RESTORE_REPORT.json was seen; before, once failure was reported
//	O3 foreign things are the same inodes with the same bytes, modes and times
//	O4 a second recover changes nothing; no lock and nothing of the attempt is left
//	O5 the audit log verifies; what began has ended, once
//	O6 a refusal before EXECUTE does not even move the times of the root
//	O7 a failed rollback leaves the root halted, until recover or an acknowledgement
package harness
