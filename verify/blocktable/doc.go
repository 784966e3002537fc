// Package blocktable has the format of BLOCKS, a signed block table, and reads a file through it.
//
// A [Table] has, for each output of a run, its size, permission bits and time, and the chaining
// values of SHA-256 at its block boundaries; and the permission bits of the parent directories of
// the outputs. With it any block of an output can be checked alone, and attributes be shown, before
// the output was read as a whole.
//
// # Trust
//
// A Table comes from outside. [Parse] checks only its form: the caller has compared the SHA-256 of
// the bytes with a signed digest. So it is another type than blockhash.Table, which is computed
// from the hashed bytes in this process.
//
// # Promise
//
// A [Reader] returns only bytes of blocks that match the table. If every block of a file matches,
// the file has the signed SHA-256: each block starts with the chaining value with which the block
// before ends, and the last one ends in the digest. A reader of some of the blocks relies on the
// signed table, and on the assumption that no two different blocks lead from a chaining value that
// the signer may have chosen to the same next one (semi-free-start collision resistance of the
// compression function of SHA-256). Length extension does not matter: the table has the size, and
// the last block ends in the digest.
//
// A block that does not match is read once more from a [Source] before that is an error.
package blocktable
