package plainjson

import (
	"fmt"
	"math/big"
	"strings"
)

// sequences is the grammar of UTF-8 (RFC 3629, section 4): the ranges of the
// bytes of one character.
var sequences = [][][2]byte{
	{{0x00, 0x7F}},
	{{0xC2, 0xDF}, tail},
	{{0xE0, 0xE0}, {0xA0, 0xBF}, tail},
	{{0xE1, 0xEC}, tail, tail},
	{{0xED, 0xED}, {0x80, 0x9F}, tail},
	{{0xEE, 0xEF}, tail, tail},
	{{0xF0, 0xF0}, {0x90, 0xBF}, tail, tail},
	{{0xF1, 0xF3}, tail, tail, tail},
	{{0xF4, 0xF4}, {0x80, 0x8F}, tail, tail},
}

var tail = [2]byte{0x80, 0xBF}

// checkUTF8 requires all of the text to be such sequences.
func checkUTF8(text []byte) error {
	for i := 0; i < len(text); {
		n := sequenceAt(text[i:])
		if n == 0 {
			return fmt.Errorf("byte %d is not UTF-8", i)
		}
		i += n
	}
	return nil
}

// sequenceAt is the length of the sequence that text begins with; 0 for none.
func sequenceAt(text []byte) int {
	for _, sequence := range sequences {
		n := 0
		for n < len(sequence) && n < len(text) && sequence[n][0] <= text[n] && text[n] <= sequence[n][1] {
			n++
		}
		if n == len(sequence) {
			return n
		}
	}
	return 0
}

// limit is the least magnitude that a float64 cannot hold: half a step beyond
// the largest, 2^1024 - 2^970, from where on it is rounded to infinity.
var limit = new(big.Int).Sub(power(2, 1024), power(2, 970)).String()

func power(base, exponent int64) *big.Int {
	return new(big.Int).Exp(big.NewInt(base), big.NewInt(exponent), nil)
}

// Finite reports whether a number (section 6) is finite as a float64. It compares digits: the
// number is 0.d1d2d3... x 10^e with d1 not zero, the limit is written likewise, and the greater
// exponent or else the greater digits win.
func Finite(number string) bool {
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return true
	}
	exponent := new(big.Int)
	exponent.SetString(strings.TrimPrefix(exponentText, "+"), 10) // stays 0 when there is none
	exponent.Add(exponent, big.NewInt(int64(len(digits)-len(fraction))))
	switch exponent.Cmp(big.NewInt(int64(len(limit)))) {
	case -1:
		return true
	case 1:
		return false
	}
	return digits < limit // a shorter text that begins the same is smaller: what is missing are zeros
}
