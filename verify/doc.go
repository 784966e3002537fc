// Package verify decides whether a run directory holds what its signature
// says, by three laws:
//
//   - [Strict] and [StrictChain]: SPECTRUM-05, strict, with the run-status
//     check. The only way to a [Bundle] or a [Chain].
//   - [Resume]: SPECTRUM-02, a bundle without signatures.
//   - [Memory]: SPECTRUM-03, a chain of those.
//
// [Gate] and [GateChain] are SPECTRUM-05 as a restore requires it: a fault for
// which the restore has a code of its own is noted instead of rejected.
//
// # Flow
//
//  1. [OpenRun] holds the run directory and the project root as handles;
//  2. each artifact is read once, from one handle, and what was hashed is what
//     was parsed;
//  3. the ten phases of SPECTRUM-05 run in the law's order, each a method of
//     one type, and the first failure ends it;
//  4. phase 9 hashes the outputs on all cores. The failure that is reported is
//     the first in ascending order of path, whatever finished first. In the
//     same pass the block table of each output is made (package blockhash).
//
// # Trust
//
// Nothing in a run directory or below the project root is trusted, also while
// it is read: it may be changed, swapped or made to block at any moment. No
// output is opened unless it is a regular file beneath the project root.
// PROOF.json is not covered by the signature, unless a block table is: its check
// is one the law asks for, not one that keeps a forger out.
//
// # Promise
//
// A rejected bundle gives exactly one [Reject], the same one every time; an
// accepted one is a sealed value with no other constructor. An error that is
// not a [Reject] means that there is no verdict.
//
// Not promised: that a validator is one you trust. That is a question for the
// layer above, never an option here.
package verify
