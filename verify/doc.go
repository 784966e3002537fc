// Package verify decides whether a run directory has what its signature states, by three laws:
//
//   - [Strict] and [StrictChain]: SPECTRUM-05, strict, with the run-status
//     check. Only they return a [Bundle] or a [Chain].
//   - [Resume]: SPECTRUM-02, a bundle without signatures.
//   - [Memory]: SPECTRUM-03, a chain of those.
//
// [Gate] and [GateChain] are SPECTRUM-05 as a restore requires it: a fault for which the restore
// has a code of its own is recorded instead of rejected.
//
// # Flow
//
//  1. [OpenRun] opens the run directory and the project root as handles;
//  2. each artifact is read once, from one handle, and what was hashed is what
//     was parsed;
//  3. the ten phases of SPECTRUM-05 run in the law's order, each a method of
//     one type, and the first failure ends the verification;
//  4. phase 9 hashes the outputs on all cores. The reported failure is the first
//     in ascending order of path, regardless of which finished first. The block
//     table of each output is made in the same pass (package blockhash).
//
// # Trust
//
// Nothing in a run directory or below the project root is trusted, also while it is read: it may be
// changed, exchanged or made to block at any moment. No output is opened unless it is a regular
// file beneath the project root. PROOF.json is not covered by the signature, unless a block table
// is: the law requires its check, but the check does not stop a forger.
//
// # Promise
//
// A rejected bundle has exactly one [Reject], always the same; an accepted one is a sealed value
// with no other constructor. An error that is not a [Reject] means that there is no verdict.
//
// Not promised: that you trust the validator. That is decided by the layer above, never by an
// option here.
package verify
