// Package blockhash checks any part of a file against the SHA-256 of the whole, without reading the
// rest.
//
// A [Hasher] reads a file once, computes its SHA-256, and stores in a [Table] a value for each
// block, against which the block can be checked later. There are two kinds.
//
// # Chaining values
//
// SHA-256 processes its input in order and carries 32 bytes of state, its chaining value. A table
// of [NewHasher] has that value at every block boundary. A block is later checked alone: start from
// the value before it, hash the block, compare with the value after it; the last block must end in
// the digest itself. Other bytes that pass this check are a collision of SHA-256's compression
// function, so no second hash needs to be trusted, and making the table costs nothing. It is for
// files that are checked once more, such as the copies of a commit.
//
// # Tags
//
// A table of [NewTagger] has a tag of every block: AES-256-GCM without a plaintext, which is a
// message authentication code, under a random key of this process that never leaves it. The tag is
// computed over the same bytes, in the same buffer, as the SHA-256. So a tag proves that a block is
// the one that was hashed, and the digest proves that those were the signed bytes. A tag requires
// no collision resistance: an attacker without the key must only be unable to make a block that
// matches an unknown tag. The probability of that is below 2^-115 for each try, and each failed try
// is logged. It is for files that are read repeatedly, such as those of a view: a tag is checked 4
// times as fast as a hash on processors with instructions for SHA-256, and 25 times on others.
// Without instructions for AES ([HasInstructions]), tags should not be used: their time then
// depends on the key.
//
// # Trust
//
// A Table is trusted because only [Hasher.Sum] constructs one, and because the caller compares
// [Table.Digest] with the signed digest before using it. It is never read from outside, and a table
// with tags is meaningless outside the process that made it. A process that can read the memory of
// this one could forge tags; it could as well change the served content.
//
// # Promise
//
// A [Reader] copies a byte to its caller only after the block that contains it was read and
// checked: in the same call or, with a [Cache], when it was stored there.
package blockhash
