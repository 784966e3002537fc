package bundle_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// field is the prime of edwards25519, 2^255 - 19.
var field = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))

// torsionY computes the y coordinates of the eight points whose order divides
// 8, from the curve -x² + y² = 1 + d·x²·y² alone: the identity (1), order 2
// (-1), order 4 (0), and order 8, where twice the point has y = 0, so x² = -y²
// and d·y⁴ + 2·y² - 1 = 0.
func torsionY(t *testing.T) []*big.Int {
	t.Helper()
	mod := func(x *big.Int) *big.Int { return x.Mod(x, field) }
	inverse := func(x int64) *big.Int { return new(big.Int).ModInverse(big.NewInt(x), field) }
	d := mod(new(big.Int).Mul(big.NewInt(-121665), inverse(121666)))
	root := new(big.Int).ModSqrt(mod(new(big.Int).Add(d, big.NewInt(1))), field)
	if root == nil {
		t.Fatal("1 + d has no root")
	}
	ys := []*big.Int{big.NewInt(1), new(big.Int).Sub(field, big.NewInt(1)), big.NewInt(0)}
	for _, r := range []*big.Int{root, new(big.Int).Neg(root)} {
		y2 := new(big.Int).Sub(r, big.NewInt(1))
		y2 = mod(y2.Mul(y2, new(big.Int).ModInverse(d, field)))
		if y := new(big.Int).ModSqrt(y2, field); y != nil {
			ys = append(ys, y, new(big.Int).Sub(field, y))
		}
	}
	return ys
}

// encodings are all the ways to write these coordinates in 255 bits, reduced
// or not, with either sign bit.
func encodings(t *testing.T) []ed25519.PublicKey {
	t.Helper()
	var keys []ed25519.PublicKey
	limit := new(big.Int).Lsh(big.NewInt(1), 255)
	for _, y := range torsionY(t) {
		for v := new(big.Int).Set(y); v.Cmp(limit) < 0; v = new(big.Int).Add(v, field) {
			raw := v.FillBytes(make([]byte, ed25519.PublicKeySize))
			slices.Reverse(raw)
			negative := slices.Clone(raw)
			negative[31] |= 0x80
			keys = append(keys, raw, negative)
		}
	}
	return keys
}

func TestSmallOrder(t *testing.T) {
	keys := encodings(t)
	distinct := map[string]bool{}
	for _, key := range keys {
		distinct[string(key)] = true
		if !bundle.SmallOrder(key) {
			t.Errorf("%x is not found out", key)
		}
	}
	if len(distinct) != 14 {
		t.Errorf("%d encodings, want 14", len(distinct))
	}
	for y := range bundle.SmallOrderY {
		raw, err := hex.DecodeString(y)
		if err != nil || !distinct[string(raw)] {
			t.Errorf("the table holds %s, which is none of them", y)
		}
	}
	if 2*len(bundle.SmallOrderY) != len(distinct) {
		t.Errorf("the table has %d coordinates for %d encodings", len(bundle.SmallOrderY), len(distinct))
	}
}

// TestSmallOrderKeysAreWeak shows what the table is for: with such a key a
// signature made without any secret passes.
func TestSmallOrderKeysAreWeak(t *testing.T) {
	keys := encodings(t)
	for _, key := range keys {
		if !forged(key, keys) {
			t.Errorf("%x: no signature was forged, so it may not be weak", key)
		}
	}
	strong := ed25519.NewKeyFromSeed(fromHex(t, goldenSeed)).Public().(ed25519.PublicKey)
	if forged(strong, keys) {
		t.Error("a signature was forged for a good key: the test proves nothing")
	}
}

// forged looks for a message of 200 and an R that pass with S = 0.
func forged(key ed25519.PublicKey, rs []ed25519.PublicKey) bool {
	for i := range 200 {
		message := fmt.Appendf(nil, "message %d", i)
		for _, r := range rs {
			signature := append(slices.Clone([]byte(r)), make([]byte, 32)...)
			if ed25519.Verify(key, message, signature) {
				return true
			}
		}
	}
	return false
}

func TestNotSmallOrder(t *testing.T) {
	for _, key := range encodings(t) {
		for i := range key {
			other := slices.Clone(key)
			other[i] ^= 4
			if bundle.SmallOrder(other) {
				t.Errorf("%x is refused too", other)
			}
		}
	}
	for _, key := range []ed25519.PublicKey{nil, {}, make([]byte, 31), make([]byte, 33)} {
		if bundle.SmallOrder(key) {
			t.Errorf("%d bytes are no key of small order", len(key))
		}
	}
	for range 50 {
		key, err := bundle.GenerateKey()
		must(t, err)
		if len(key.ValidatorID()) != 64 {
			t.Errorf("validator id %q", key.ValidatorID())
		}
	}
}
