package canonjson

import (
	"strconv"
	"unicode/utf8"
)

// PathText returns an absolute path as JSON can represent it: quoted if it is not UTF-8. An
// absolute path does not begin with a quote, so the two forms cannot be confused.
func PathText(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.QuoteToASCII(path)
}
