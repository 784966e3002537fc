// Package blockhash checks any part of a file against the SHA-256 of the
// whole, without reading the rest.
//
// A [Hasher] reads a file once, computes its SHA-256, and keeps in a [Table]
// what its blocks can be checked against later. There are two kinds.
//
// # Chaining values
//
// SHA-256 works through its input in order and carries 32 bytes of state, its
// chaining value. A table of [NewHasher] has that value at every block
// boundary. A block is later checked alone: start from the value before it,
// hash the block, compare with the value after it; the last block must end in
// the digest itself. Whoever finds other bytes that pass has found a collision
// of SHA-256's compression function. No second hash has to be believed, and the
// table costs nothing to make. It is for files that are checked once more, such
// as the copies of a commit.
//
// # Tags
//
// A table of [NewTagger] has a tag of every block: AES-256-GCM without a
// plaintext, which is a message authentication code, under a key that was drawn
// at random in this process and never leaves it. The tag is made of the very
// bytes that go into the SHA-256, in the same buffer. So it says that a block
// is the one that was hashed, and the digest says whether that was the one that
// was signed. It is a memory of what was hashed rather than a hash: it needs no
// collision resistance, only that nobody without the key can make a block that
// fits a tag he has never seen. That chance is below 2^-115 for each try, and
// each try that fails is a finding in the log. It is for files that are read
// again and again, such as those of a view: a tag is checked 4 times as fast as
// a hash where processors have instructions for SHA-256, and 25 times where not.
// Where they have none for AES ([HasInstructions]), tags should not be used: their
// time then depends on the key.
//
// # Trust
//
// A Table is right because of how it was made: only [Hasher.Sum] makes one,
// and the caller compares [Table.Digest] with the signed digest before using
// it for anything. It is never read from anywhere, and a table with tags means
// nothing outside the process that made it. Whoever can read the memory of this
// process could forge tags; he could as well change what it serves.
//
// # Promise
//
// A [Reader] copies a byte to its caller only after the block that holds it
// was read and checked: in the same call, or, with a [Cache], when it was put
// there.
package blockhash
