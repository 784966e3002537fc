// Package hexdigits has the one check for identities and hashes as text.
package hexdigits

import "strings"

// Least is the minimum number of digits that name something by the beginning of its ID.
const Least = 4

// Begins reports whether digits are the first digits of an ID, and at least [Least].
func Begins(id, digits string) bool { return len(digits) >= Least && strings.HasPrefix(id, digits) }

// Only reports whether a text has nothing but lower-case hex digits; the empty text has nothing.
func Only(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// Are reports whether a text is n lower-case hex digits.
func Are(s string, n int) bool { return len(s) == n && Only(s) }
