// Package blocktable holds the format of BLOCKS, a block table that a signature covers, and
// reads a file through it.
//
// A [Table] has, for each output of a run, its size, permission bits and time, and the chaining
// values of SHA-256 at its block boundaries; and the permission bits of the directories that
// lead to the outputs. With it any block of an output can be checked alone, and attributes be
// shown, before the output was read as a whole.
//
// # Trust
//
// A Table comes from outside. [Parse] checks its form, and nothing else: the caller has compared
// the SHA-256 of the bytes with a digest that was signed. So it is another type than
// blockhash.Table, which is made of the very bytes that were hashed, in this process.
//
// # Promise
//
// A [Reader] returns only bytes of blocks that fit the table. If every block of a file fits, the
// file has the signed SHA-256: each block begins with the chaining value in which the block
// before ends, and the last one ends in the digest. A reader of some of the blocks relies on the
// table that was signed, and on this: no two different blocks lead from a chaining value that
// the signer may have chosen to the same next one (semi-free-start collision resistance of the
// compression function of SHA-256). That bytes can be appended to a hashed text does not matter:
// the table has the size, and the last block ends in the digest.
//
// A [Source] is asked once more for a block that does not fit, before that is an error.
package blocktable
