// Package ignore decides which files are left out of a seal, by patterns in the syntax of
// gitignore(5).
//
// It reads the file [File] of each directory that it is asked about, beneath a project root
// and through directory handles, and knows nothing of bundles. Where several patterns fit a
// path, the last one decides, and the ones of a directory decide before those of the
// directories above it; the patterns that the caller gives decide before all files. Nothing
// beneath a directory that is left out can be brought back: the caller does not enter it.
//
// # The syntax
//
//	#...     a comment, and an empty line, say nothing
//	!...     brings back what an earlier pattern leaves out
//	.../     only directories
//	a/b, /a  a slash at the beginning or in the middle: from the directory of the file on
//	a        no such slash: a name at any depth
//	**       alone between slashes: any number of names
//	* ? []   within a name, as a shell has them; "[[:alpha:]]" too
//	\        the next character for itself; also in front of a space at the end
//
// Matching itself is that of doublestar; this package brings patterns into its language. A "?"
// is one character, where git takes one byte.
//
// A file that git would understand in part is refused as a whole, with the number of the
// line: a bracket that does not end, a backslash at the end, an empty name, bytes that are not
// UTF-8, more than [MaxPattern] bytes.
package ignore
