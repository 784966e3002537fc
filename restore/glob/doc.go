// Package glob is the one pattern language of the project: patterns for output
// paths, as a signed TASK_SPEC.json and an operator's rules write them.
//
// It knows nothing of disks and of what a pattern is for. What a pattern
// matches is decided by its text and the path alone.
//
// # The language
//
// A path is names with a "/" between each two. A pattern is made the same way;
// each of its parts stands for names:
//
//	**     alone between slashes: any number of names, also none
//	*      within a name: any number of characters, also none
//	?      within a name: one character (a byte that is not UTF-8 counts as one)
//	else   itself, byte for byte; upper and lower case differ
//
// A pattern matches a path when all of it stands for all of the path. A pattern
// that ends with "/" names a directory: it matches what is beneath it, at any
// depth, and not the directory's own name. So "notes/" is "notes/**/*", while
// "notes/**" matches "notes" as well, and "notes" nothing else.
//
// Not a pattern: an empty text or part, a text that begins with "/", "." or
// ".." as a part, "**" beside other characters, bytes that are not UTF-8, a
// control character, more than [MaxLength] bytes, and any of the characters
// [ ] { } \, which mean something in other languages of this kind. A "?" stands
// for each of these in a name.
//
// # Cost
//
// A match allocates nothing and goes back only to the last "**" and, within a
// name, to the last "*": at most length of the pattern times length of the path,
// whatever both hold.
//
// # Order
//
// [Compare] puts the more specific of two patterns first. The first difference
// decides: more bytes before the first wildcard (and before the slash in front
// of a "**"), more literal bytes without slashes, more parts other than "**",
// fewer "**", fewer "*", more "?", and at last the bytes of the texts. Only the
// same text is equal.
package glob
