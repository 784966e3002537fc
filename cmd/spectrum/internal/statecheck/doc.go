// Package statecheck looks for damage among what the state directory keeps of restore roots:
// snapshots, savepoints, the marks of rollbacks and the audit log, each by itself and all of
// them against each other. What it finds it names with the next step ([Flaw]), and it changes
// nothing.
package statecheck
