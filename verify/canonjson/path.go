package canonjson

import (
	"strconv"
	"unicode/utf8"
)

// PathText returns an absolute path as JSON can hold it: quoted if it is not UTF-8. An absolute path
// does not begin with a quote, so that the two forms cannot be mistaken.
func PathText(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return strconv.QuoteToASCII(path)
}
