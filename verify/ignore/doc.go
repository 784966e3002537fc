// Package ignore decides which files a seal excludes, by patterns in the syntax of gitignore(5).
//
// It reads the file [File] of each directory that is matched, beneath a project root and through
// directory handles, and is independent of bundles. If several patterns match a path, the last one
// decides, and those of a directory take precedence over those of the directories above it; the
// caller's patterns take precedence over all files. Nothing beneath an excluded directory can be
// included again: the caller does not enter it.
//
// # The syntax
//
//	#...     a comment, ignored like an empty line
//	!...     includes again what an earlier pattern excludes
//	.../     only directories
//	a/b, /a  a slash at the beginning or in the middle: relative to the directory of the file
//	a        no such slash: a name at any depth
//	**       alone between slashes: any number of names
//	* ? []   within a name, as in a shell; "[[:alpha:]]" too
//	\        quotes the next character; also a space at the end
//
// Doublestar does the matching; this package translates the patterns. A "?" matches one character,
// in git one byte.
//
// A file that git would understand only in part is rejected as a whole, with the number of the
// line: an unclosed bracket, a backslash at the end, an empty name, bytes that are not UTF-8, more
// than [MaxPattern] bytes.
package ignore
