// Package suite reads, writes and runs the cases of the conformance suite.
//
// A case is one text file: what stands on the disk, which commands are run, and
// what each of them must answer and leave behind. docs/conformance-suite.md is
// the document of the format; this package is one reading of it. It trusts the
// cases and nothing else: a program passes only by its exit status, its bytes on
// stdout, and the tree that it leaves.
//
//  1. [Load] reads the cases. That it finds none is an error.
//  2. [Runner.Run] makes the tree of a case, runs its commands, and compares.
//  3. [Format] writes a case; [Parse] of that is the same case.
package suite
