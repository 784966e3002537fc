package plainjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// Canonical writes a tree in canonical form (SPECTRUM-04), slowly and by other
// means than package canonjson.
func Canonical(v any) string {
	var b strings.Builder
	writeValue(&b, v)
	return b.String()
}

func writeValue(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		writeObject(b, v)
	case []any:
		writeArray(b, v)
	case string:
		writeString(b, v)
	case json.Number:
		b.WriteString(Number(string(v)))
	case nil:
		b.WriteString("null")
	default:
		fmt.Fprint(b, v)
	}
}

func writeObject(b *strings.Builder, members map[string]any) {
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return bytes.Compare([]byte(x), []byte(y)) })
	b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			b.WriteByte(',')
		}
		writeString(b, name)
		b.WriteByte(':')
		writeValue(b, members[name])
	}
	b.WriteByte('}')
}

func writeArray(b *strings.Builder, elements []any) {
	b.WriteByte('[')
	for i, v := range elements {
		if i > 0 {
			b.WriteByte(',')
		}
		writeValue(b, v)
	}
	b.WriteByte(']')
}

func writeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case strings.ContainsRune("\"\\\b\f\n\r\t", r):
			b.WriteString(map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}[r])
		case r < ' ':
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// Number returns a number in canonical form, with digits found by search.
func Number(s string) string {
	if n, ok := new(big.Int).SetString(s, 10); ok {
		return n.String()
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return "not finite: " + s
	}
	if f == 0 {
		return "0"
	}
	sign := ""
	if f < 0 {
		sign, f = "-", -f
	}
	digits, exponent := shortestDigits(f)
	return sign + positional(digits, exponent)
}

// shortestDigits finds the fewest decimal digits d and the exponent e for
// which 0.d x 10^e reads back to f; of several the nearest to f.
func shortestDigits(f float64) (string, int) {
	for n := 1; n < 18; n++ {
		if digits, exponent, ok := readsBack(f, n); ok {
			return digits, exponent
		}
	}
	panic(fmt.Sprint("17 digits are enough for every float64: ", f))
}

// readsBack tries the n digits nearest to f, and the numbers beside them: at a
// power of two a neighbour may read back where the nearest does not.
func readsBack(f float64, n int) (string, int, bool) {
	text := strconv.FormatFloat(f, 'e', n-1, 64)
	mantissa, exponentText, _ := strings.Cut(text, "e")
	exponent, _ := strconv.Atoi(exponentText)
	centre, _ := new(big.Int).SetString(strings.Replace(mantissa, ".", "", 1), 10)
	var best string
	var bestDistance *big.Rat
	for _, step := range []int64{0, -1, 1} {
		digits := new(big.Int).Add(centre, big.NewInt(step)).String()
		candidate := digits + "e" + strconv.Itoa(exponent-n+1)
		if back, err := strconv.ParseFloat(candidate, 64); err != nil || back != f {
			continue
		}
		if d := distance(candidate, f); bestDistance == nil || d.Cmp(bestDistance) < 0 {
			best, bestDistance = candidate, d
		}
	}
	if best == "" {
		return "", 0, false
	}
	digits, exponentText, _ := strings.Cut(best, "e")
	exponent, _ = strconv.Atoi(exponentText)
	return strings.TrimRight(digits, "0"), exponent + len(digits), true
}

// distance is how far a decimal is from f, exactly.
func distance(decimal string, f float64) *big.Rat {
	a, _ := new(big.Rat).SetString(decimal)
	d := a.Sub(a, new(big.Rat).SetFloat64(f))
	return d.Abs(d)
}

// positional writes 0.digits x 10^exponent without an exponent.
func positional(digits string, exponent int) string {
	switch {
	case exponent <= 0:
		return "0." + strings.Repeat("0", -exponent) + digits
	case exponent >= len(digits):
		return digits + strings.Repeat("0", exponent-len(digits))
	}
	return digits[:exponent] + "." + digits[exponent:]
}
