// Package view makes the views that spectrum mounts: of one candidate ([Candidate]), and of
// all runs of a directory ([Runs]). It describes their files and
// control directories to package fusefs; it reads the status of views of other processes, and
// revokes those of what was rolled back ([Revoke]).
package view
