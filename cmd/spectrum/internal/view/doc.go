// Package view makes the views that spectrum mounts: of one candidate ([Candidate]), and of
// all runs of a directory ([Runs]). It describes their files to package fusefs, and what
// stands in their control directories; it reads what the views of other processes say of
// themselves, and revokes those of what was rolled back ([Revoke]).
package view
