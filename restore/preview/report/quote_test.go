package report

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/test/sample"
)

// TestMarkup: names and words of which Markdown, GitHub or GitLab would make something
// else are code, whose content no renderer changes.
func TestMarkup(t *testing.T) {
	for words, want := range map[string]string{
		"":                       "",
		"is plain, isn't it?":    "is plain, isn't it?",
		"12 of 1,234 files (a)":  "12 of 1,234 files (a)",
		"Änderung 日本語 e\u0301":   "Änderung 日本語 e\u0301",
		"a - b … c":              "a - b … c",
		"fixes #12":              "fixes `#12`",
		"d3c5a4c2... x;y; a: :b": "`d3c5a4c2`... `x;y`; a: `:b`",
		"GH-1 gh-1, JIRA-7":      "`GH-1` `gh-1`, `JIRA-7`",
		"@user and @org/team":    "`@user` and `@org/team`",
		"user@host.example":      "`user@host.example`",
		"owner/repo#3 !4 %5 &6":  "`owner/repo#3` `!4` `%5` `&6`",
		"$x$ $a b$ $$":           "`$x$` `$a` `b$` `$$`",
		":word: x:word:":         "`:word:` `x:word:`",
		"d3c5a4c2 DEFACED":       "`d3c5a4c2` `DEFACED`",
		"1234567":                "`1234567`",
		"__init__.py":            "`__init__.py`",
		"_a_ *b* ~~c~~ ==d==":    "`_a_` `*b*` `~~c~~` `==d==`",
		"[x](http://y.z) ![]()":  "`[x](http://y.z)` `![]()`",
		"<https://y.z> &lt; <b>": "`<https://y.z>` `&lt;` `<b>`",
		"HTTPS://y.z www.y.z":    "`HTTPS://y.z` `www.y.z`",
		"mailto:a@y.z xmpp:a":    "`mailto:a@y.z` `xmpp:a`",
		"[^1] [ ] [[x]] {{x}}":   "`[^1]` `[` `]` `[[x]]` `{{x}}`",
		"a|b `c` x``y ```":       "`a\\|b` `` `c` `` ```x``y``` ```` ``` ````",
		`\_x_ \#12 a\|b`:         "`\\\\_x_` `\\\\#12` `a\\\\\\|b`",
		"sha256:ab":              "`sha256:ab`",
	} {
		if got := text(words); got != want {
			t.Errorf("%q is written as %s, want %s", words, got, want)
		}
		for how, got := range map[string]string{"text": text(words), "Quote": Quote(words)} {
			checkMarkdown(t, how, words, got)
		}
	}
}

// TestMarkupOfAll: whatever character a name or a claim has, and wherever, what is
// rendered is the name or the claim.
func TestMarkupOfAll(t *testing.T) {
	every := rune(sample.Of(101, 1, 1))
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0x500 && r%every != 0 || !utf8.ValidRune(r) {
			continue
		}
		c := string(r)
		for _, words := range []string{c, c + "12", "GH" + c + "1", c + "x" + c, "a" + c + c + " " + c + "b"} {
			checkMarkdown(t, "text", words, text(words))
		}
		checkMarkdown(t, "Quote", c+"1"+c, Quote(c+"1"+c))
		if t.Failed() {
			t.Fatalf("%U", r)
		}
	}
}

// checkMarkdown reads Markdown of one cell as a renderer does: it takes the cell out of
// its row, then the code out of the cell. Nothing else in it may mean anything.
func checkMarkdown(t *testing.T, how, words, markdown string) {
	t.Helper()
	want := escaped(words)
	if how == "Quote" {
		want = visible.Quote(words)
	}
	cell := strings.ReplaceAll(markdown, `\|`, "\x00")
	if strings.Contains(cell, "|") {
		t.Errorf("%s of %q: %s is two cells", how, words, markdown)
	}
	cell = strings.ReplaceAll(cell, "\x00", "|")
	rendered, outside, ok := Rendered(cell)
	if !ok {
		t.Errorf("%s of %q: %s has code without an end", how, words, markdown)
	}
	if rendered != want {
		t.Errorf("%s of %q: %s is rendered as %q, want %q", how, words, markdown, rendered, want)
	}
	if strings.ContainsAny(outside, "#@$&_*~[]<>\\={}^+`|") || strings.Contains(outside, "://") || strings.Contains(outside, "www.") {
		t.Errorf("%s of %q: %s has markup", how, words, markdown)
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
