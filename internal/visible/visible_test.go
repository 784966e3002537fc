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
	0xe000, 0x13441, 0x16fe4, 0x1d159, 0x1d173, 0xe0001, 0xe0041, 0xe0100, 0xe0fff, 0x10ffff,
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

// TestMarks: two combining marks on one character are writing, more are none.
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

// TestDefaultIgnorable holds the rule against the derivation of the property in
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

// TestOneRule: no other package that is shipped asks Go which characters are printed.
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
