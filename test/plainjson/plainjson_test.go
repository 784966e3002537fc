package plainjson_test

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/test/plainjson"
)

func TestSlowWriterKnowsShortestDigits(t *testing.T) {
	for s, want := range map[string]string{
		"0.5": "0.5", "1e21": "1" + strings.Repeat("0", 21), "5e-324": "0." + strings.Repeat("0", 323) + "5",
		"-12.50": "-12.5", "0.1e1": "1", "-0.0": "0", "1e-400": "0", "-0": "0", "2.2250738585072014e-308": "0." + strings.Repeat("0", 307) + "22250738585072014",
	} {
		if got := plainjson.Number(s); got != want {
			t.Errorf("%s: got %s, want %s", s, got, want)
		}
	}
	if got := plainjson.Number(strconv.FormatFloat(math.MaxFloat64, 'e', -1, 64)); !strings.HasPrefix(got, "17976931348623157000") || len(got) != 309 {
		t.Errorf("the largest float64: %s", got)
	}
}

// TestCharacters: written as UTF-8 and escaped, each is read as itself; and what
// is not a character is rejected. (The table of the suite stands in package
// canonjson, whose tests hold this parser against it too.)
func TestCharacters(t *testing.T) {
	for c := rune(0); c <= 0x10ffff+1; c++ {
		if c > 0x3000 && c%0x61 != 0 && c&0xffff < 0xfff0 && c&0xff > 1 {
			continue
		}
		raw := encode(c)
		v, err := plainjson.Parse([]byte(`"` + raw + `"`))
		want := utf8.ValidRune(c) && c >= ' ' && c != '"' && c != '\\'
		if (err == nil) != want || want && v != string(c) {
			t.Fatalf("%#x: %q, %v", c, v, err)
		}
		if c > 0xffff {
			continue
		}
		escaped := strconv.FormatInt(int64(0x10000+c), 16)[1:]
		v, err = plainjson.Parse([]byte(`"\u` + escaped + `"`))
		if (err == nil) != utf8.ValidRune(c) || err == nil && v != string(c) {
			t.Fatalf("\\u%s: %q, %v", escaped, v, err)
		}
	}
}

// encode writes a code point as UTF-8 would, also one that is not a character.
func encode(c rune) string {
	switch {
	case c < 0x80:
		return string([]byte{byte(c)})
	case c < 0x800:
		return string([]byte{0xc0 | byte(c>>6), 0x80 | byte(c&0x3f)})
	case c < 0x10000:
		return string([]byte{0xe0 | byte(c>>12), 0x80 | byte(c>>6&0x3f), 0x80 | byte(c&0x3f)})
	}
	return string([]byte{0xf0 | byte(c>>18), 0x80 | byte(c>>12&0x3f), 0x80 | byte(c>>6&0x3f), 0x80 | byte(c&0x3f)})
}

// TestEveryPair: two escapes are a character exactly where utf16 says so.
func TestEveryPair(t *testing.T) {
	for first := 0xd700; first < 0xe100; first += 0x3b {
		for second := 0xd700; second < 0xe100; second += 0x3b {
			text := `"\u` + strconv.FormatInt(int64(first), 16) + `\u` + strings.ToUpper(strconv.FormatInt(int64(second), 16)) + `"`
			alone := (first < 0xd800 || first > 0xdfff) && (second < 0xd800 || second > 0xdfff)
			pair := 0xd800 <= first && first < 0xdc00 && 0xdc00 <= second && second <= 0xdfff
			v, err := plainjson.Parse([]byte(text))
			if (err == nil) != (alone || pair) {
				t.Fatalf("%s: %v", text, err)
			}
			if c := rune(0x10000 + (first-0xd800)<<10 + second - 0xdc00); pair && v != string(c) {
				t.Fatalf("%s is %q", text, v)
			}
		}
	}
}

// TestSequences: four bytes from around every boundary of RFC 3629 are UTF-8
// exactly where package utf8 says so.
func TestSequences(t *testing.T) {
	const edges = "A\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5\xff"
	const last = "A\x7f\x80\xbf\xc0"
	n := len(edges)
	for i := range n * n * n * len(last) {
		text := []byte{'"', edges[i%n], edges[i/n%n], edges[i/n/n%n], last[i/n/n/n], '"'}
		if _, err := plainjson.Parse(text); (err == nil) != utf8.Valid(text) {
			t.Fatalf("%q: UTF-8 %v, error %v", text, utf8.Valid(text), err)
		}
	}
}

// TestFinite: at the very limit, which strconv rounds to infinity, and around
// it.
func TestFinite(t *testing.T) {
	power := func(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(2), big.NewInt(n), nil) }
	limit := new(big.Int).Sub(power(1024), power(970))
	least := limit.String()
	below := new(big.Int).Sub(limit, big.NewInt(1)).String()
	for text, want := range map[string]bool{
		least + ".0": false, least + ".0000001": false, least + "e0": false, "-" + least + ".0": false, least + "0e-1": false,
		below + ".99999": true, below + "e0": true, "-" + below + ".0": true, below + "0e-1": true, least[:300] + "e9": true,
		"0." + least + "e309": false, "0." + below + "e309": true, "0.000" + least + "e312": false, "0.000" + least + "e311": true,
		"1e308": true, "1e309": false, "0e999999999999999999999": true, "-0.0E+99999": true, "1e-999999999999999999999": true, "1e999999999999999999999": false,
		"10000e304": true, "10000e305": false, "0.0000000001e318": true, "0.0000000001e319": false,
	} {
		if got := plainjson.Finite(text); got != want {
			t.Errorf("%.40s...: %v", text, got)
		}
		if f, _ := strconv.ParseFloat(text, 64); math.IsInf(f, 0) == want {
			t.Errorf("%.40s...: strconv says %v", text, f)
		}
	}
}
