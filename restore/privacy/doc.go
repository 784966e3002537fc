// Package privacy knows the names of files that usually hold secrets, so that a
// preview can hold them back as restricted context (restore savepoint protocol,
// sections 5 and 12). It looks at names alone and opens no output: a secret in a
// file with another name is not found, and a file with such a name may hold none.
//
// # Rules
//
// The rules are the table of this package, which docs/restricted-names.md shows
// with the reason of each, and what the operator adds: every file in the
// directory restricted.d of a place, in the order of the names (those that begin
// with a dot are skipped), the places in the order given. A line of a file is
// one of these:
//
//	# a comment, or nothing
//	PATTERN     such a path is restricted too
//	!PATTERN    takes back this very pattern, of the table or of a line before
//
// Patterns are those of [github.com/spectrumfs/spectrum/restore/glob], with two
// differences: upper and lower case of ASCII letters are the same, and a pattern
// without a slash but at its end is one of names at any depth, as if "**/" stood
// before it.
//
// # Trust
//
// The places are trusted as their owner is, and no further: a directory or file
// that others may write, a link, anything but a regular file, a file above 64
// KiB, a line that is not a pattern or has white space at an end, and a "!" before
// a pattern that was never there are errors, and then there are no rules at all.
// A place that is missing says nothing.
package privacy
