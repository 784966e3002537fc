package verify_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// This file implements edwards25519 by its equations alone, slow and plain, and compares
// crypto/ed25519 and the program with it.

// prime is 2^255 - 19, curveD the constant of -x² + y² = 1 + d·x²·y².
var (
	prime  = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	curveD = mod(new(big.Int).Mul(big.NewInt(-121665), new(big.Int).ModInverse(big.NewInt(121666), prime)))
)

func mod(n *big.Int) *big.Int    { return n.Mod(n, prime) }
func mul(a, b *big.Int) *big.Int { return mod(new(big.Int).Mul(a, b)) }
func add(a, b *big.Int) *big.Int { return mod(new(big.Int).Add(a, b)) }
func sub(a, b *big.Int) *big.Int { return mod(new(big.Int).Sub(a, b)) }

// point is (x/z, y/z), with t = x·y/z (RFC 8032, section 5.1.4).
type point struct{ x, y, z, t *big.Int }

func affine(x, y *big.Int) point { return point{x, y, big.NewInt(1), mul(x, y)} }

// plus is complete: it also doubles, and adds points of small order.
func (p point) plus(q point) point {
	a := mul(sub(p.y, p.x), sub(q.y, q.x))
	b := mul(add(p.y, p.x), add(q.y, q.x))
	c := mul(mul(p.t, q.t), add(curveD, curveD))
	d := mul(p.z, add(q.z, q.z))
	e, f, g, h := sub(b, a), sub(d, c), add(d, c), add(b, a)
	return point{mul(e, f), mul(g, h), mul(f, g), mul(e, h)}
}

func (p point) negative() point {
	return point{sub(new(big.Int), p.x), p.y, p.z, sub(new(big.Int), p.t)}
}

func (p point) times(n *big.Int) point {
	sum := affine(new(big.Int), big.NewInt(1))
	for i := n.BitLen() - 1; i >= 0; i-- {
		if sum = sum.plus(sum); n.Bit(i) == 1 {
			sum = sum.plus(p)
		}
	}
	return sum
}

func (p point) equals(q point) bool {
	return mul(p.x, q.z).Cmp(mul(q.x, p.z)) == 0 && mul(p.y, q.z).Cmp(mul(q.y, p.z)) == 0
}

func (p point) encode() []byte {
	inverse := new(big.Int).ModInverse(p.z, prime)
	raw := fillLittle(mul(p.y, inverse))
	raw[31] |= byte(mul(p.x, inverse).Bit(0) << 7)
	return raw
}

// decode accepts any y, reduced or not, and either sign of x = 0.
func decode(raw []byte) (point, bool) {
	raw = slices.Clone(raw)
	sign := uint(raw[31] >> 7)
	raw[31] &= 0x7f
	y := mod(littleEndian(raw))
	y2 := mul(y, y)
	inverse := new(big.Int).ModInverse(add(big.NewInt(1), mul(curveD, y2)), prime)
	x := new(big.Int).ModSqrt(mul(sub(y2, big.NewInt(1)), inverse), prime)
	if x == nil {
		return point{}, false
	}
	if x.Bit(0) != sign {
		x = sub(new(big.Int), x)
	}
	return affine(x, y), true
}

// base is the point with y = 4/5 and x even.
var base = func() point {
	p, ok := decode(fillLittle(mul(big.NewInt(4), new(big.Int).ModInverse(big.NewInt(5), prime))))
	if !ok {
		panic("there is no base point")
	}
	return p
}()

// challenge is k = SHA-512(R, A, M) modulo the order of the base point.
func challenge(r, key, message []byte) *big.Int {
	sum := sha512.Sum512(slices.Concat(r, key, message))
	k := littleEndian(sum[:])
	return k.Mod(k, order)
}

// holds implements the rule of ref10: S is reduced, A is a point, and the encoding of [S]B - [k]A
// is R byte for byte.
func holds(key, message, signature []byte) bool {
	r, s := signature[:32], littleEndian(signature[32:])
	a, ok := decode(key)
	if !ok || s.Cmp(order) >= 0 {
		return false
	}
	return bytes.Equal(base.times(s).plus(a.negative().times(challenge(r, key, message))).encode(), r)
}

// torsion are the multiples of a point of order 8, from the identity on.
func torsion(t *testing.T) [8]point {
	t.Helper()
	var points [8]point
	for y := int64(2); y < 100; y++ {
		p, ok := decode(fillLittle(big.NewInt(y)))
		if !ok {
			continue
		}
		p = p.times(order)
		if points[0] = affine(new(big.Int), big.NewInt(1)); p.times(big.NewInt(4)).equals(points[0]) {
			continue // its order is 4 or less
		}
		for i := 1; i < 8; i++ {
			points[i] = points[i-1].plus(p)
		}
		return points
	}
	t.Fatal("found no point of order 8")
	return points
}

// A named is bytes that are meant to be a point, dlog·B plus a point of small
// order.
type named struct {
	class string
	raw   []byte
	dlog  *big.Int // nil if it is not known
}

// encodings of a point are all that decode to it.
func encodings(p point) [][]byte {
	var all [][]byte
	canonical := p.encode()
	for _, sign := range []byte{0, 0x80} {
		raw := slices.Clone(canonical)
		raw[31] = raw[31]&0x7f | sign
		y := slices.Clone(raw)
		y[31] &= 0x7f
		unreduced := new(big.Int).Add(littleEndian(y), prime)
		forms := [][]byte{raw}
		if unreduced.BitLen() <= 255 {
			form := fillLittle(unreduced)
			form[31] |= sign
			forms = append(forms, form)
		}
		for _, form := range forms {
			if q, ok := decode(form); ok && q.equals(p) {
				all = append(all, form)
			}
		}
	}
	return all
}

// candidates are the points for keys and nonces: those with the discrete logarithm dlog.
func candidates(t *testing.T, dlog int64) []named {
	t.Helper()
	points := torsion(t)
	var all []named
	for _, p := range points {
		for _, raw := range encodings(p) {
			all = append(all, named{"small order", raw, new(big.Int)})
		}
	}
	if len(all) != 14 {
		t.Fatalf("%d encodings of small order", len(all))
	}
	secret := new(big.Int).Exp(big.NewInt(dlog), big.NewInt(97), order)
	honest := base.times(secret)
	all = append(all, named{"honest", honest.encode(), secret})
	for _, p := range points[1:] {
		all = append(all, named{"mixed order", honest.plus(p).encode(), secret})
	}
	unreduced := 0
	for y := int64(2); y < 19 && unreduced < 3; y++ {
		raw := fillLittle(new(big.Int).Add(prime, big.NewInt(y)))
		if _, ok := decode(raw); ok {
			unreduced++
			all = append(all, named{"not canonical", raw, nil})
		}
	}
	return append(all, named{"no point", noPoint(t), nil})
}

func noPoint(t *testing.T) []byte {
	t.Helper()
	for y := int64(2); y < 100; y++ {
		if _, ok := decode(fillLittle(big.NewInt(y))); !ok {
			return fillLittle(big.NewInt(y))
		}
	}
	t.Fatal("every y is a point")
	return nil
}

// TestCurve compares the equations with known values.
func TestCurve(t *testing.T) {
	for seed := range byte(5) {
		private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, 32))
		public := private.Public().(ed25519.PublicKey)
		expanded := sha512.Sum512(private.Seed())
		expanded[0], expanded[31] = expanded[0]&248, expanded[31]&63|64
		if got := base.times(littleEndian(expanded[:32])).encode(); !bytes.Equal(got, public) {
			t.Errorf("seed %d: public key %x, want %x", seed, got, public)
		}
		signature := ed25519.Sign(private, []byte("message"))
		if !holds(public, []byte("message"), signature) || holds(public, []byte("Message"), signature) {
			t.Errorf("seed %d: the oracle is wrong", seed)
		}
	}
	if identity := base.times(order); !identity.equals(affine(new(big.Int), big.NewInt(1))) {
		t.Error("the base point has another order")
	}
}

// TestSmallOrderTable: the fourteen encodings, found by arithmetic, and nothing
// else are rejected as keys.
func TestSmallOrderTable(t *testing.T) {
	found := 0
	for _, c := range candidates(t, 3) {
		if c.class == "small order" {
			found++
		}
		if got := bundle.SmallOrder(c.raw); got != (c.class == "small order") {
			t.Errorf("%s %x: small order %v", c.class, c.raw, got)
		}
	}
	if found != 14 {
		t.Errorf("%d encodings", found)
	}
}

// The kinds of S.
var scalars = []struct {
	class string
	of    func(honest *big.Int) *big.Int
}{
	{"S fits", func(s *big.Int) *big.Int { return s }},
	{"S = 0", func(*big.Int) *big.Int { return new(big.Int) }},
	{"S + L", func(s *big.Int) *big.Int { return new(big.Int).Add(s, order) }},
	{"S = L", func(*big.Int) *big.Int { return order }},
	{"S = L - 1", func(*big.Int) *big.Int { return new(big.Int).Sub(order, big.NewInt(1)) }},
	{"S with high bits", func(s *big.Int) *big.Int { return new(big.Int).SetBit(s, 255, 1) }},
}

// signatureFor computes S as far as possible modulo the prime order: r + k·a.
func signatureFor(key, nonce named, message []byte, of func(*big.Int) *big.Int) []byte {
	s := new(big.Int)
	if key.dlog != nil && nonce.dlog != nil {
		s.Mul(challenge(nonce.raw, key.raw, message), key.dlog)
		s.Mod(s.Add(s, nonce.dlog), order)
	}
	return slices.Concat(nonce.raw, fillLittle(of(s)))
}

// ground looks for a message with this k modulo 8.
func ground(key, nonce named, want int) []byte {
	for i := uint64(0); ; i++ {
		message := binary.LittleEndian.AppendUint64(nil, i)
		if int(new(big.Int).And(challenge(nonce.raw, key.raw, message), big.NewInt(7)).Int64()) == want {
			return message
		}
	}
}

// tally counts verdicts by class.
type tally map[string][2]int

func (c tally) count(class string, accepted bool) {
	n := c[class]
	if accepted {
		n[0]++
	} else {
		n[1]++
	}
	c[class] = n
}

func (c tally) log(t *testing.T) (total int) {
	t.Helper()
	for _, class := range sortedKeys(c) {
		t.Logf("%-16s %4d accepted, %4d rejected", class, c[class][0], c[class][1])
		total += c[class][0] + c[class][1]
	}
	return total
}

// TestEd25519Edges: the oracle and crypto/ed25519 agree on keys and nonces of
// small order, mixed order and in other forms, for every k modulo 8. The sample
// tries a part of the pairs, which need not hold every class.
func TestEd25519Edges(t *testing.T) {
	keys, nonces := candidates(t, 3), candidates(t, 5)
	counts := tally{}
	vectors, number, tried := 0, 0, sample.Every(t, 13)
	check := func(key, nonce named, k, scalar int) {
		if number++; !tried.Has(number) {
			return
		}
		message := ground(key, nonce, k)
		signature := signatureFor(key, nonce, message, scalars[scalar].of)
		want := holds(key.raw, message, signature)
		if got := ed25519.Verify(key.raw, message, signature); got != want {
			t.Errorf("key %x, message %x, signature %x: %v, the oracle says %v", key.raw, message, signature, got, want)
		}
		vectors++
		counts.count("A "+key.class, want)
		counts.count("R "+nonce.class, want)
		counts.count(scalars[scalar].class, want)
	}
	for i, key := range keys {
		for j, nonce := range nonces {
			check(key, nonce, (i+j)%8, 0)
			if (i+j)%2 == 0 {
				check(key, nonce, (i-j+26)%8, 1+(i+j)/2%(len(scalars)-1))
			}
		}
		for k := range 8 {
			check(key, nonces[14], k, 0)
		}
	}
	counts.log(t)
	if vectors < sample.Of(60, 900, 900) {
		t.Errorf("only %d vectors", vectors)
	}
	if tried != sample.All {
		return
	}
	for _, class := range []string{"A small order", "A honest", "A mixed order", "R small order", "R honest", "R mixed order", "S fits", "S = 0"} {
		if n := counts[class]; n[0] == 0 || n[1] == 0 {
			t.Errorf("%s: %d accepted, %d rejected; there must be both", class, n[0], n[1])
		}
	}
	for _, class := range []string{"A no point", "R not canonical", "R no point", "S + L", "S = L", "S with high bits"} {
		if n := counts[class]; n[0] != 0 || n[1] == 0 {
			t.Errorf("%s: %d accepted, %d rejected; all must be rejected", class, n[0], n[1])
		}
	}
}

// TestEd25519InBundles: the verdict on a whole bundle is the oracle's. The
// message is that of the payload, so nonces are what is ground.
func TestEd25519InBundles(t *testing.T) {
	r := newRun(t)
	run := openRuns(t, r)[0]
	counts := tally{}
	nonces := candidates(t, 7)
	number, tried := 0, sample.Every(t, 11)
	for _, key := range candidates(t, 3) {
		id := bundle.ValidatorID(key.raw)
		r.Edit(bundle.Identity, func(f map[string]any) { f["public_key"], f["validator_id"] = hex.EncodeToString(key.raw), id })
		r.Edit(bundle.SignedPayload, set("validator_id", id))
		payload, err := canonjson.Parse(r.Read(bundle.SignedPayload))
		must(t, err)
		message := bundle.Message(payload)
		for j, nonce := range nonces {
			kinds := scalars
			switch {
			case j == 14: // of the honest nonces, those with every kind of S
			case nonce.class == "small order" || j%3 == 0:
				kinds = scalars[:1]
			default:
				continue
			}
			for _, scalar := range kinds {
				if number++; tried.Has(number) {
					inBundle(t, run, r, counts, id, key, message, signatureFor(key, nonce, message, scalar.of))
				}
			}
		}
	}
	if total := counts.log(t); total < sample.Of(25, 500, 500) {
		t.Errorf("only %d bundles", total)
	}
	if tried != sample.All {
		return
	}
	for _, class := range []string{"A small order", "A honest", "A mixed order"} {
		if n := counts[class]; n[0] == 0 || n[1] == 0 {
			t.Errorf("%s: %d accepted, %d rejected; there must be both", class, n[0], n[1])
		}
	}
}

// inBundle puts a signature into the run and compares the three verdicts.
func inBundle(t *testing.T, run *verify.Run, r *bundletest.Run, counts tally, id string, key named, message, signature []byte) {
	t.Helper()
	r.WriteJSON(bundle.Signature, map[string]any{"payload_type": bundle.PayloadType, "signature": hex.EncodeToString(signature), "validator_id": id})
	_, err := verify.Strict(t.Context(), run, verify.Watch{})
	want := holds(key.raw, message, signature)
	if got := ed25519.Verify(key.raw, message, signature); got != want || (err == nil) != want {
		t.Errorf("key %x, signature %x: the program says %v, crypto/ed25519 %v, the oracle %v", key.raw, signature, err, got, want)
	}
	if err != nil {
		checkReject(t, err, badSignature)
	}
	counts.count("A "+key.class, want)
}

var badSignature = want{verify.SignatureInvalid, about(bundle.Signature)}

// TestSecondSignature: the owner of a key can make many signatures of one payload. All are good,
// and what is verified is the very same: the identity of a bundle is its root, and no byte of its
// signature.
func TestSecondSignature(t *testing.T) {
	r := newRun(t)
	run := openRuns(t, r)[0]
	first, err := verify.Strict(t.Context(), run, verify.Watch{})
	must(t, err)
	private := ed25519.NewKeyFromSeed(r.Seed[:])
	expanded := sha512.Sum512(r.Seed[:])
	expanded[0], expanded[31] = expanded[0]&248, expanded[31]&63|64
	key := named{"", private.Public().(ed25519.PublicKey), littleEndian(expanded[:32])}
	payload, err := canonjson.Parse(r.Read(bundle.SignedPayload))
	must(t, err)
	signatures := map[string]bool{string(r.Read(bundle.Signature)): true}
	for n := range int64(5) {
		secret := big.NewInt(1_000_003 + n)
		nonce := named{"", base.times(secret).encode(), secret}
		signature := signatureFor(key, nonce, bundle.Message(payload), scalars[0].of)
		r.Edit(bundle.Signature, set("signature", hex.EncodeToString(signature)))
		again, err := verify.Strict(t.Context(), run, verify.Watch{})
		must(t, err)
		if !reflect.DeepEqual(first, again) {
			t.Errorf("signature %d makes another bundle: %+v, not %+v", n, again, first)
		}
		signatures[string(r.Read(bundle.Signature))] = true
	}
	if len(signatures) != 6 {
		t.Errorf("only %d signatures", len(signatures))
	}
}

// TestValidatorIDInFull: no digit of it may differ, at any position.
func TestValidatorIDInFull(t *testing.T) {
	r := newRun(t)
	run := openRuns(t, r)[0]
	for artifact, code := range map[string]verify.Code{
		bundle.Identity: verify.IdentityInvalid, bundle.SignedPayload: verify.IdentityMismatch, bundle.Signature: verify.IdentityMismatch,
	} {
		good := r.Read(artifact)
		for i := range 64 {
			r.Edit(artifact, func(f map[string]any) {
				digits := []byte(f["validator_id"].(string))
				digits[i] = "123456789abcdef0"[bytes.IndexByte([]byte("0123456789abcdef"), digits[i])]
				f["validator_id"] = string(digits)
			})
			_, err := verify.Strict(t.Context(), run, verify.Watch{})
			if checkReject(t, err, want{code, about(artifact, "validator_id")}); t.Failed() {
				t.Fatalf("%s, digit %d", artifact, i)
			}
			r.WriteRaw(artifact, good)
		}
	}
}
