// Package trust holds the operator's trust: which validators are pinned, and which are
// revoked. It is a layer above verification and no option of it: the signer is determined
// before this package is called.
//
// # Places
//
// A place is a directory with two others in it, either of which may be missing: trusted.d and
// revoked.d. There is one of the system, and one of the operator. In each every file names one
// validator, whatever its own name is (names that begin with a dot are skipped): its first
// word is the validator_id, 64 lower-case hex digits, and the rest is a comment. A file with
// other content, one that other users may write, or one that is not a regular file is an
// error, and so is a directory that other users may write or that is a link; then no validator
// is trusted.
//
// # Standing
//
//  1. A validator that is revoked in any place is revoked, even if it is pinned.
//  2. A validator that is pinned in any place is pinned.
//  3. The host's own validator is own, if the caller asks for it: for its savepoints.
//  4. If no validator is pinned at all, every other one is unknown.
//  5. Otherwise it is unpinned.
//
// The 14 encodings of Ed25519 keys of small order, with which anyone can make signatures,
// cannot be pinned.
package trust
