package canonjson_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// checkText compares AppendText with the general way, and reads it back.
func checkText(t testing.TB, text string) {
	t.Helper()
	want, err := canonjson.Marshal(text)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	got := canonjson.AppendText([]byte("before"), text)
	if string(got) != "before"+string(want) {
		t.Fatalf("%q becomes %q, want %q", text, got, want)
	}
	value, err := canonjson.Parse(got[len("before"):])
	if err != nil {
		t.Fatalf("%q becomes %q: %v", text, got, err)
	}
	if back, ok := value.Text(); !ok || back != text {
		t.Fatalf("%q comes back as %q", text, back)
	}
}

// TestAppendTextOfEveryCharacter alone, doubled, and between others.
func TestAppendTextOfEveryCharacter(t *testing.T) {
	for c := rune(0); c <= utf8.MaxRune; c++ {
		if !utf8.ValidRune(c) {
			continue
		}
		if c < 0x3000 || c%0x101 == 0 || c&0xffff >= 0xfff0 {
			checkText(t, fmt.Sprintf("%c", c))
			checkText(t, fmt.Sprintf("a%c%cb\\%c\"", c, c, c))
		}
	}
	checkText(t, "")
	checkText(t, strings.Repeat("long\x00\u2028\"", 10_000))
}

func FuzzAppendText(f *testing.F) {
	for _, text := range []string{"", "a", "\x00\x1f \x7f\u0080", `\"/`, "\u2028\u2029\ufeff\ufffd", "\U0010ffff", `\u0041`, "<&>"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if utf8.ValidString(text) {
			checkText(t, text)
		}
	})
}
