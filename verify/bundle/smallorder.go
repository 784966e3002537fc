package bundle

import (
	"crypto/ed25519"
	"encoding/hex"
	"iter"
)

// SmallOrder reports whether a public key is one of the fourteen encodings of points of small
// order. With such a key one signature can fit every message, so no bundle is sealed with one
// and none is ever pinned.
func SmallOrder(key ed25519.PublicKey) bool {
	if len(key) != ed25519.PublicKeySize {
		return false
	}
	y := [ed25519.PublicKeySize]byte(key)
	y[len(y)-1] &^= 0x80 // the sign of x
	return smallOrderY[hex.EncodeToString(y[:])]
}

// SmallOrderKeys yields the fourteen.
func SmallOrderKeys() iter.Seq[ed25519.PublicKey] {
	return func(yield func(ed25519.PublicKey) bool) {
		for y := range smallOrderY {
			for _, sign := range []byte{0, 0x80} {
				key, _ := hex.DecodeString(y)
				key[len(key)-1] |= sign
				if !yield(key) {
					return
				}
			}
		}
	}
}

// smallOrderY are the y coordinates of the points of small order, each with either sign; three of
// them are not reduced modulo p.
var smallOrderY = map[string]bool{
	"0000000000000000000000000000000000000000000000000000000000000000": true, // 0: order 4
	"0100000000000000000000000000000000000000000000000000000000000000": true, // 1: the identity
	"26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05": true, // order 8
	"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a": true, // order 8
	"ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": true, // p-1: order 2
	"edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": true, // p, which is 0
	"eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f": true, // p+1, which is 1
}
