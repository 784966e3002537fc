package canonjson_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/plainjson"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// TestNumbers checks the canonical form of numbers, case by case.
func TestNumbers(t *testing.T) {
	long := strings.Repeat("1234567890", 40)
	for _, c := range []struct{ in, want string }{
		{"0", "0"}, {"-0", "0"}, {"-0.0", "0"}, {"0.0", "0"}, {"0e5", "0"}, {"-0E+5", "0"}, {"0.000", "0"},
		{"1", "1"}, {"-1", "-1"}, {"10", "10"}, {"100e0", "100"}, {"1.0", "1"}, {"-7.000", "-7"},
		{"9007199254740993", "9007199254740993"},   // 2^53+1: verbatim
		{"9007199254740993.0", "9007199254740992"}, // a float64 cannot hold it
		{"18446744073709551616", "18446744073709551616"},
		{long, long}, {"-" + long, "-" + long},
		{"1e2", "100"}, {"1E2", "100"}, {"1e+2", "100"}, {"1e-2", "0.01"}, {"12.50", "12.5"}, {"0.10", "0.1"},
		{"1e22", "1" + strings.Repeat("0", 22)}, {"1e23", "1" + strings.Repeat("0", 23)},
		{"1e-7", "0.0000001"}, {"123456789.123456789", "123456789.12345679"},
		{"5e-324", "0." + strings.Repeat("0", 323) + "5"}, {"2e-324", "0"}, {"-1e-999", "0"}, {"1e-99999999999", "0"},
		{"1.7976931348623157e308", "17976931348623157" + strings.Repeat("0", 292)},
		{"0.1000000000000000055511151231257827", "0.1"}, {"0.30000000000000004", "0.30000000000000004"},
		{"4.35", "4.35"}, {"2.675", "2.675"}, {"1.005", "1.005"},
	} {
		if got := canonical(t, []byte(c.in)); got != c.want {
			t.Errorf("%.60s: got %s, want %s", c.in, got, c.want)
		}
	}
}

func TestNumbersThatAreNotFinite(t *testing.T) {
	zeros := strings.Repeat("0", 400)
	for _, in := range []string{
		"1e400", "-1e400", "1E+309", "1.8e308", "1.7976931348623159e308", "123.456e789", "1" + zeros + ".0",
		"1" + zeros + "e0", "-1" + zeros + ".5", "1e99999999999999999999",
	} {
		if _, err := canonjson.Parse([]byte(in)); err == nil {
			t.Errorf("%.40s: accepted", in)
		}
		if _, err := canonjson.Parse([]byte(`{"a":[` + in + `]}`)); err == nil {
			t.Errorf("%.40s, nested: accepted", in)
		}
	}
}

// TestNumbersAgainstSlowWriter compares floats of every magnitude, and those next to powers of two
// and ten, where the shortest digits are hard to find.
func TestNumbersAgainstSlowWriter(t *testing.T) {
	rng := sample.Rand(t)
	for range 3000 {
		checkFloat(t, math.Float64frombits(rng.Uint64()))
	}
	for e := -1074; e < 1024; e += 3 {
		f := math.Ldexp(1, e)
		checkFloat(t, f)
		checkFloat(t, math.Nextafter(f, 0))
	}
	for e := -323; e < 309; e += 2 {
		f, _ := strconv.ParseFloat("1e"+strconv.Itoa(e), 64)
		checkFloat(t, f)
		checkFloat(t, -math.Nextafter(f, math.Inf(1)))
	}
}

func checkFloat(t *testing.T, f float64) {
	t.Helper()
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return
	}
	checkNumber(t, strconv.FormatFloat(f, 'e', -1, 64))
}

// checkNumber compares one accepted number with its canonical form.
func checkNumber(t *testing.T, in string) {
	t.Helper()
	got := canonical(t, []byte(in))
	if want := plainjson.Number(in); got != want {
		t.Errorf("%.60s: got %s, want %s", in, got, want)
	}
	if strings.ContainsAny(got, "eE+") || got == "-0" || strings.Contains(got, ".") && strings.HasSuffix(got, "0") {
		t.Errorf("%.60s: %s is not the canonical form of any number", in, got)
	}
	if again := canonical(t, []byte(got)); again != got {
		t.Errorf("%.60s: no fixed point: %s, then %s", in, got, again)
	}
	if !strings.ContainsAny(in, ".eE") {
		return
	}
	before, _ := strconv.ParseFloat(in, 64)
	if after, err := strconv.ParseFloat(got, 64); err != nil || after != before {
		t.Errorf("%.60s: reads back as %v, not %v", in, after, before)
	}
}

// FuzzNumber checks the canonical form of each accepted number, and why others
// are rejected.
func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-0.0", "1e308", "1e400", "12.50", "9007199254740993", "5e-324", "1.", "01", "-", "1e", "1E+2", "0.1e-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" || strings.Trim(s, "0123456789+-.eE") != "" {
			t.Skip("not made of the characters of a number")
		}
		_, err := canonjson.Parse([]byte(s))
		switch grammar, finite := isNumber(s), isFinite(s); {
		case (err == nil) != (grammar && finite):
			t.Errorf("%q: number %v, finite %v, error %v", s, grammar, finite, err)
		case err == nil:
			checkNumber(t, s)
		}
	})
}

// isNumber is the grammar of RFC 8259, section 6.
func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole, s := digits(s)
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	if rest, ok := strings.CutPrefix(s, "."); ok {
		var fraction string
		if fraction, s = digits(rest); fraction == "" {
			return false
		}
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	if s = s[1:]; s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	exponent, rest := digits(s)
	return exponent != "" && rest == ""
}

func digits(s string) (string, string) {
	rest := strings.TrimLeft(s, "0123456789")
	return s[:len(s)-len(rest)], rest
}

// isFinite reports whether a number may be written at all: an integer always.
func isFinite(s string) bool {
	if !strings.ContainsAny(s, ".eE") {
		return true
	}
	f, _ := strconv.ParseFloat(s, 64)
	return !math.IsInf(f, 0)
}
