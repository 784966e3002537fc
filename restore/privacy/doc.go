// Package privacy has the names of files that usually hold secrets, so that a
// preview can treat them as restricted context (restore savepoint protocol,
// sections 5 and 12). It compares names alone and opens no output: it does not find
// a secret in a file with another name, and a file with such a name may hold none.
//
// # Rules
//
// The rules are the table of this package, which docs/restricted-names.md shows
// with the reason of each, and the rules of the operator: every file in the
// directory restricted.d of a place, in the order of the names (those that begin
// with a dot are skipped), the places in the order given. A line of a file is
// one of these:
//
//	# a comment, or nothing
//	PATTERN     such a path is restricted too
//	!PATTERN    removes this very pattern, of the table or of an earlier line
//
// Patterns are those of [github.com/spectrumfs/spectrum/restore/glob], with two
// differences: upper and lower case of ASCII letters are the same, and a pattern
// without a slash except at its end matches names at any depth, as if it began with
// "**/".
//
// # Trust
//
// The places are trusted like their owner. These are errors, and then there are no
// rules at all: a directory or file that other users may write, a link, anything but
// a regular file, a file above 64 KiB, a line that is not a pattern or has white
// space at an end, and a "!" before a pattern that is not in the list. A missing
// place is ignored.
package privacy
