package visible

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// hidden are characters that a reader cannot see, or that turn around what he sees.
var hidden = []rune{
	0, '\n', '\r', '\t', 0x1b, 0x7f, 0x80, 0x85, 0x9b, 0xa0, 0xad, 0x34f, 0x61c, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x180b, 0x180e, 0x180f,
	0x200b, 0x200d, 0x200e, 0x2028, 0x202e, 0x2060, 0x2066, 0x206f, 0x2800, 0x3000, 0x3164, 0xfe00, 0xfe0f, 0xfeff, 0xffa0, 0xfff0,
	0xe000, 0x13441, 0x16fe4, 0x1d159, 0x1d173, 0xe0001, 0xe0041, 0xe0100, 0xe0fff, 0x10ffff, 0x303f, 0xfffc,
	0x1039, 0x17d2, 0x1a60, 0x1bab, 0x2d7f, 0xaaf6, 0x10a3f, 0x1107f, 0x11133, 0x1193e, 0x11a47, 0x11a99, 0x11d45, 0x11d97, 0x11f42,
	0x1bc9d, 0x1da9b, 0x1daa1, 0x1daaf,
}

func TestHidden(t *testing.T) {
	for _, r := range hidden {
		text := "a" + string(r) + "b"
		for how, got := range map[string]string{"Escape": Escape(text), "Quote": Quote(text), "JSON": string(AppendJSON(nil, []byte(`"`+text+`"`)))} {
			if strings.ContainsRune(got, r) || !strings.Contains(got, "a\\") {
				t.Errorf("%s of %U: %q", how, r, got)
			}
		}
		if back, err := strconv.Unquote(Quote(text)); err != nil || back != text {
			t.Errorf("%U is quoted as %s, which is %q (%v)", r, Quote(text), back, err)
		}
	}
	for _, text := range []string{"", "plain", "Änderung", "日本語", "한국어", "ไม่ได้", "हिन्दी", "a\u0301\u0323b", "\U0001f4a1", "\ufffd", `a\b"c`} {
		if got := Escape(text); got != text {
			t.Errorf("%q becomes %q", text, got)
		}
	}
	if got := Escape("a\x9b\ufffd\xffb\xe3\x85"); got != "a\\x9b\ufffd\\xffb\\xe3\\x85" {
		t.Errorf("%q", got)
	}
	if got := Lines("a\n\tb\u3164\x1b"); got != "a\n\tb\\u3164\\x1b" {
		t.Errorf("%q", got)
	}
}

// TestMarks: two combining marks on one character are shown, more are hidden.
func TestMarks(t *testing.T) {
	for text, want := range map[string]string{
		"a\u0301\u0301\u0301":                   "a\u0301\u0301\\u0301",
		"a" + strings.Repeat("\u0308", 5) + "b": "a\u0308\u0308" + strings.Repeat("\\u0308", 3) + "b",
		"a\u0301\u0301b\u0301\u0301":            "a\u0301\u0301b\u0301\u0301",
		"a\u0301\u200d\u0301\u0301":             "a\u0301\\u200d\u0301\u0301",
		"a\u0301\u20dd\u0903":                   "a\u0301\u20dd\\u0903", // marks of all three kinds
	} {
		if got := Escape(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

// TestNoInk: a stacker is writing where it stacks, and nothing anywhere else.
func TestNoInk(t *testing.T) {
	for text, want := range map[string]string{
		"\u1781\u17d2\u1798\u17c2\u179a":         "\u1781\u17d2\u1798\u17c2\u179a",         // Khmer
		"\u1019\u1004\u103a\u1039\u1002\u101c":   "\u1019\u1004\u103a\u1039\u1002\u101c",   // Burmese
		"\u1781\u17d2\u17d2\u1798":               "\u1781\u17d2\\u17d2\u1798",              // one more
		"\u1781\u1039\u1798":                     "\u1781\\u1039\u1798",                    // of another script
		"\u17d2\u1798":                           "\\u17d2\u1798",                          // first
		"\u17e1\u17d2":                           "\u17e1\\u17d2",                          // after a digit
		"\U00011066\U0001107f\U00011067":         "\U00011066\\U0001107f\U00011067",        // between numbers
		"\U0001d800\U0001da9b\U0001daa1":         "\U0001d800\U0001da9b\U0001daa1",         // a sign, filled and turned
		"a\u1039\u0301\u0301\u0301":              "a\\u1039\u0301\\u0301\\u0301",           // a mark as others are
		"\u0e01\u0e49 \u0915\u094d\u0937 \u0b95": "\u0e01\u0e49 \u0915\u094d\u0937 \u0b95", // viramas are drawn
	} {
		if got := Escape(text); got != want {
			t.Errorf("%+q becomes %+q, want %+q", text, got, want)
		}
	}
}

// TestUnicodeVersion: a new version of Unicode brings characters that were not looked
// at. What is blank, or has no ink, in it belongs into the tables above.
func TestUnicodeVersion(t *testing.T) {
	if unicode.Version != "15.0.0" {
		t.Errorf("the tables are those of Unicode 15.0.0, and this is %s", unicode.Version)
	}
}

// TestEveryCharacter: what is shown of each character, alone and among others, has
// nothing hidden in it and reads back as the character.
func TestEveryCharacter(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		text := string(r) + "a" + string(r)
		shown := Quote(text)
		if back, err := strconv.Unquote(shown); err != nil || back != text {
			t.Fatalf("%U is shown as %s, which is %q (%v)", r, shown, back, err)
		}
		if Escape(shown) != shown {
			t.Fatalf("%U is shown as %s, which can hide something", r, shown)
		}
	}
}

// TestDefaultIgnorable compares the rule with the derivation of the property in
// DerivedCoreProperties.txt.
func TestDefaultIgnorable(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		property := unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Cf, unicode.Variation_Selector)
		var scan Scanner
		if utf8.ValidRune(r) && property && !scan.Hidden(r) {
			t.Errorf("%U is shown", r)
		}
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("a\u202e\U000e0041\u0301\u0301\u0301")
	f.Fuzz(func(t *testing.T, text string) {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		shown := AppendJSON(nil, raw)
		if json.Unmarshal(raw, &want) != nil || json.Unmarshal(shown, &got) != nil || got != want {
			t.Errorf("%q becomes %s", text, shown)
		}
		if Escape(string(shown)) != string(shown) {
			t.Errorf("%s can hide something", shown)
		}
	})
}

// TestOneRule: no other package of the program uses Go's rules for printable characters.
func TestOneRule(t *testing.T) {
	top := filepath.Join("..", "..")
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(top, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (rel == "test" || rel == filepath.Join("internal", "visible") || strings.HasPrefix(entry.Name(), ".") && rel != "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, other := range []string{"unicode.IsPrint", "unicode.IsGraphic", "strconv.IsPrint", "strconv.IsGraphic", "strconv.QuoteRune("} {
			if strings.Contains(string(content), other) {
				t.Errorf("%s has %s; package visible has the rule", rel, other)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestIsMostlyText(t *testing.T) {
	script := "#!/bin/sh\necho hello\n"
	for content, want := range map[string]bool{
		"": true, script: true, script + "\x00": true, script + "\xff": true, "\x1b" + script + "\f": true, strings.Repeat("a\r\n", 9): true, "\u0085" + script: true,
		"\x00": false, "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00": false, "\xff\xfe": false, strings.Repeat("a\x00", 99): false,
	} {
		if IsMostlyText([]byte(content)) != want {
			t.Errorf("%q: %v", content, !want)
		}
	}
}
