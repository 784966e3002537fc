// Package harness is what the fault tests share: the projects and restore roots that they
// try, the ways to try many cases, and the judge of what is left.
//
// It makes signed projects and restore roots with foreign things in them, runs the real binary,
// with and without a fault, and reports whether a root is exactly as before, exactly as after the
// commit, or neither. What after is, it computes from the sources: it uses no package of the
// program.
//
// Sweep tries the cases of a stride (of package sample), a Tally counts what they did and
// fails when they did nothing, a Fault is an error of a system call, and a Volume is a
// file system of its own that can be filled, turned read-only, or lose its power. Beside
// them stand the small things that most tests need: mounts and users for a test, files and
// descriptors, and to wait for a condition.
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
