// Package bundle has the formats of SPECTRUM-04 and seals bundles.
//
// This package is law: [Root], [ChainRoot], [Message], [ValidatorID] and [ProofHash] decide what a
// signature covers. Both sides use it: [Seal], which makes a bundle, and package verify, which
// trusts none.
//
// # Sealing
//
//  1. every output is found beneath the project root, through directory
//     handles, except what package ignore and the other rules of [SealOptions]
//     exclude; links, special files and paths that could never be restored are
//     rejected before anything is hashed;
//  2. the outputs are hashed on all cores;
//  3. the seven artifacts are written as canonical JSON into a directory beside
//     the run directory, with [BlocksFile] if requested, and synced;
//  4. one rename gives that directory its name. Before it there is no bundle,
//     after it a whole one.
//
// [SealKnown] omits the first two steps: the caller vouches for the outputs.
//
// # Keys
//
// A key is an Ed25519 seed in a PKCS#8 PEM file that only its owner can read. The public key is
// always derived from the seed.
package bundle
