// Package trust says whom the operator trusts: which validators are pinned, and
// which are revoked. It is a layer above verification and no option of it: what
// is signed by whom is decided before anybody asks here.
//
// # Places
//
// A place is a directory with two others in it, either of which may be missing:
// trusted.d and revoked.d. There is one of the system, and one of the operator.
// In each every file names one validator, whatever its own name is (names that
// begin with a dot are skipped): its first word is the validator_id, 64
// lower-case hex digits, and what follows is for people. Nothing else is taken:
// a file that says something else, that others may write, or that is no regular
// file is an error, and so is a directory that others may write or that is a link;
// then nobody is trusted.
//
// # Standing
//
//  1. Who is revoked anywhere is revoked, whoever has pinned him.
//  2. Who is pinned anywhere is pinned.
//  3. The host itself is its own, where the caller says so: for its savepoints.
//  4. Where nobody is pinned at all, nobody is known.
//  5. Everybody else is unpinned.
//
// The 14 encodings of Ed25519 keys of small order, for which anybody can make
// signatures, cannot be pinned (decision D19).
package trust
