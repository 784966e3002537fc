package canonjson_test

import (
	"strconv"
	"testing"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// TestPathText: the text of a path is UTF-8, decodes to the same path, and differs for different
// paths.
func TestPathText(t *testing.T) {
	seen := map[string]bool{}
	for _, path := range []string{"/a", "/\"quoted\"", "/\xff", "/\\xff", "/\n", "/\u00e4"} {
		text := canonjson.PathText(path)
		back := text
		if text[0] == '"' {
			back, _ = strconv.Unquote(text)
		}
		if !utf8.ValidString(text) || back != path || seen[text] {
			t.Errorf("%q: %q, back %q", path, text, back)
		}
		seen[text] = true
	}
}
