// Package blockhash checks any part of a file against the SHA-256 of the
// whole, without reading the rest.
//
// SHA-256 works through its input in order and carries 32 bytes of state, its
// chaining value. While a [Hasher] computes a digest it keeps that value at
// every block boundary, in a [Table]. A block is later checked alone: start
// from the value before it, hash the block, compare with the value after it;
// the last block must end in the digest itself. Whoever finds other bytes
// that pass has found a collision of SHA-256's compression function. So a
// block is as trustworthy as the digest that was signed, no second hash has
// to be believed, the table costs nothing to make, and the blocks of one file
// can be checked in parallel.
//
// # Trust
//
// A Table is right because of how it was made: only [Hasher.Sum] makes one,
// and the caller compares [Table.Digest] with the signed digest before using
// it for anything. It is never read from anywhere.
//
// # Promise
//
// A [Reader] copies a byte to its caller only after the block that holds it
// has been read and checked in the same call. Nothing is kept between calls.
package blockhash
