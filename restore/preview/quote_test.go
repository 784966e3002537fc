package preview

import (
	"strings"
	"testing"
	"unicode"
)

// TestMarkup: names and words that Markdown would render as something else. The
// Markdown is written so that what is rendered is the words themselves.
func TestMarkup(t *testing.T) {
	for words, want := range map[string]string{
		"__init__.py":          `\_\_init\_\_.py`,
		"_a_ *b* ~~c~~":        `\_a\_ \*b\* \~\~c\~\~`,
		"[x](http://y.z)":      `\[x\](http\://y.z)`,
		"![x](y)":              `!\[x\](y)`,
		"<https://y.z> &lt;":   `\<https\://y.z\> \&lt;`,
		"HTTPS://y.z":          `HTTPS\://y.z`,
		"git+ssh://y.z":        `git+ssh\://y.z`,
		"see www.y.z, WWW.y.z": `see www\.y.z, WWW\.y.z`,
		"mailto:a@y.z":         `mailto\:a\@y.z`,
		"xmpp:a@y.z":           `xmpp\:a\@y.z`,
		"a|b `c`":              "a\\|b \\`c\\`",
		`\_x_`:                 `\\\_x\_`,
		"sha256:ab a.b/c-d":    "sha256:ab a.b/c-d",
	} {
		if got := text(words); got != want {
			t.Errorf("%q is written as %s, want %s", words, got, want)
		}
		if got := Quote(words); got != `"`+want+`"` {
			t.Errorf("the name %q is written as %s", words, got)
		}
	}
}

// TestNothingIsHidden: what cannot be seen is an escape in the report and on the page.
func TestNothingIsHidden(t *testing.T) {
	for _, r := range []rune{0x3164, 0x115f, 0x1160, 0xffa0, 0x2800, 0xfe0f, 0x34f, 0x17b4, 0x180b, 0x202e, 0x200b, 0x85, 0x7f, 0xe0100} {
		s := "a" + string(r) + "b"
		shown := map[string]string{"Quote": Quote(s), "text": text(s), "words": words(s), "name": name(s)}
		for _, p := range partsOf(s) {
			shown["parts"] += p.Text
		}
		for how, got := range shown {
			if strings.ContainsRune(got, r) || !strings.Contains(got, `\`) {
				t.Errorf("%U by %s: %q", r, how, got)
			}
		}
	}
	marks := "e" + strings.Repeat("\u0301", 9)
	if got := words(marks); strings.Count(got, "\u0301") != 2 || !unicode.Is(unicode.M, []rune(got)[2]) {
		t.Errorf("%q", got)
	}
}
