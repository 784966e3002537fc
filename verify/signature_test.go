package verify_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// order is that of the base point of edwards25519: 2^252 + …
var order, _ = new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)

// rawSignature is the signature of a run, as R and S.
func rawSignature(t *testing.T, r *bundletest.Run) (nonce []byte, s *big.Int) {
	t.Helper()
	var raw []byte
	r.Edit(bundle.Signature, func(f map[string]any) {
		var err error
		raw, err = hex.DecodeString(f["signature"].(string))
		must(t, err)
	})
	return raw[:32], littleEndian(raw[32:])
}

func littleEndian(raw []byte) *big.Int {
	raw = slices.Clone(raw)
	slices.Reverse(raw)
	return new(big.Int).SetBytes(raw)
}

func putSignature(r *bundletest.Run, nonce []byte, s *big.Int) {
	raw := s.FillBytes(make([]byte, 32))
	slices.Reverse(raw)
	r.Edit(bundle.Signature, set("signature", hex.EncodeToString(slices.Concat(nonce, raw))))
}

// TestSignatureIsNotMalleable: S has one form, and R is recomputed by the check.
func TestSignatureIsNotMalleable(t *testing.T) {
	r := newRun(t)
	nonce, s := rawSignature(t, r)
	putSignature(r, nonce, s)
	_, err := strict(t, r)
	must(t, err)
	sum := func(a, b *big.Int) *big.Int { return new(big.Int).Add(a, b) }
	negative := slices.Clone(nonce)
	negative[31] ^= 0x80
	for name, c := range map[string]struct {
		nonce []byte
		s     *big.Int
	}{
		"S + L": {nonce, sum(s, order)}, "S + 2L": {nonce, sum(s, sum(order, order))}, "S = L": {nonce, order}, "S = 0": {nonce, new(big.Int)},
		"L - S": {nonce, new(big.Int).Sub(order, s)}, "-R": {negative, s}, "R = 0": {make([]byte, 32), s}, "R not reduced": {notReduced(), s}, "swapped": {fillLittle(s), littleEndian(nonce)},
	} {
		putSignature(r, c.nonce, c.s)
		_, err := strict(t, r)
		if checkReject(t, err, want{verify.SignatureInvalid, about(bundle.Signature)}); t.Failed() {
			t.Fatal(name)
		}
	}
}

func fillLittle(n *big.Int) []byte {
	raw := n.FillBytes(make([]byte, 32))
	slices.Reverse(raw)
	return raw
}

// notReduced is the identity, written as p + 1.
func notReduced() []byte {
	raw := slices.Repeat([]byte{0xff}, 32)
	raw[0], raw[31] = 0xee, 0x7f
	return raw
}

// TestSmallOrderKey: with such a key one signature fits every
// bundle, and the law accepts it. Keeping it out is for the trust above.
func TestSmallOrderKey(t *testing.T) {
	identity := make(ed25519.PublicKey, 32)
	identity[0] = 1
	id := bundle.ValidatorID(identity)
	for i := range 3 {
		r := bundletest.New(t).Run(fmt.Sprint("run-", i), map[string]string{"a": fmt.Sprint(i)})
		r.Edit(bundle.Identity, func(f map[string]any) { f["public_key"], f["validator_id"] = hex.EncodeToString(identity), id })
		r.Edit(bundle.SignedPayload, set("validator_id", id))
		r.Edit(bundle.Signature, func(f map[string]any) { f["signature"], f["validator_id"] = hex.EncodeToString(identity)+zeros, id })
		b, err := strict(t, r)
		must(t, err)
		if !bundle.SmallOrder(identity) || b.ValidatorID() != id {
			t.Errorf("validator %s", b.ValidatorID())
		}
	}
}

// TestSignatureVectors puts the known answers into a bundle.
func TestSignatureVectors(t *testing.T) {
	type vector struct {
		PrivateKeyHex string `json:"private_key_hex"`
		Payload       map[string]any
		Signature     string
		Valid         bool
	}
	for i, v := range bundletest.Vectors[vector](t, "signature") {
		r := newRun(t)
		seed, err := hex.DecodeString(v.PrivateKeyHex)
		must(t, err)
		copy(r.Seed[:], seed)
		r.Sign()
		r.WriteJSON(bundle.SignedPayload, v.Payload)
		r.Edit(bundle.Signature, set("signature", v.Signature))
		// The bundle root differs, so the verdict comes from a gate that cannot compute one.
		r.Remove(bundle.OutputHashes)
		_, err = gate(t, r)
		if v.Valid && err != nil {
			t.Errorf("%d: %v", i, err)
		} else if !v.Valid {
			checkReject(t, err, want{verify.SignatureInvalid, about(bundle.Signature)})
		}
	}
}

// rootVector is a known answer: artifacts and their bundle root.
type rootVector struct {
	Name            string
	TaskSpecHex     string `json:"task_spec_hex"`
	StatusHex       string `json:"status_hex"`
	OutputHashesHex string `json:"output_hashes_hex"`
	BundleRoot      string `json:"bundle_root"`
}

// run puts the artifacts into a run.
func (v rootVector) run(t *testing.T) *bundletest.Run {
	r := newRun(t)
	for name, text := range map[string]string{bundle.TaskSpec: v.TaskSpecHex, bundle.Status: v.StatusHex, bundle.OutputHashes: v.OutputHashesHex} {
		raw, err := hex.DecodeString(text)
		must(t, err)
		r.WriteRaw(name, raw)
	}
	return r
}

// TestRootsInBundles puts the artifacts of the known answers into a bundle.
func TestRootsInBundles(t *testing.T) {
	for _, v := range bundletest.Vectors[rootVector](t, "bundle_root") {
		r := v.run(t)
		r.Edit(bundle.SignedPayload, set("bundle_root", zeros))
		_, err := strict(t, r)
		checkReject(t, err, want{verify.BundleRootMismatch, map[string]string{"artifact": bundle.SignedPayload, "field": "bundle_root", "expected": zeros, "actual": v.BundleRoot}})
		r.Edit(bundle.SignedPayload, set("bundle_root", v.BundleRoot))
		r.SignPayload()
		_, err = strict(t, r)
		if err == nil {
			continue
		}
		if code := rejected(t, err).Code; code != verify.OutputMissing { // their outputs are not here
			t.Errorf("%s: %v", v.Name, err)
		}
	}
}

// TestPayloadForm: the signature is over the canonical form, and the bytes of
// the file are free.
func TestPayloadForm(t *testing.T) {
	r := newRun(t)
	value, err := canonjson.Parse(r.Read(bundle.SignedPayload))
	must(t, err)
	r.WriteRaw(bundle.SignedPayload, append([]byte("\n\t "), value.Append(nil)...))
	_, err = strict(t, r)
	must(t, err)
}

// TestHexForm: a key or signature that decodes to the right bytes, but is not
// written in exactly so many lower-case digits, is rejected before it is decoded.
func TestHexForm(t *testing.T) {
	for _, c := range []struct {
		artifact, field string
		code            verify.Code
	}{
		{bundle.Identity, "public_key", verify.KeyInvalid},
		{bundle.Signature, "signature", verify.SignatureMalformed},
		{bundle.Signature, "validator_id", verify.SignatureMalformed},
	} {
		r := newRun(t)
		run := openRuns(t, r)[0]
		var right string
		r.Edit(c.artifact, func(f map[string]any) { right = f[c.field].(string) })
		for _, form := range hexForms(right) {
			r.Edit(c.artifact, set(c.field, form))
			_, err := verify.Strict(t.Context(), run, verify.Watch{})
			if checkReject(t, err, want{c.code, about(c.artifact, c.field)}); t.Failed() {
				t.Fatalf("%s.%s = %q", c.artifact, c.field, form)
			}
		}
		r.Edit(c.artifact, set(c.field, right))
		_, err := verify.Strict(t.Context(), run, verify.Watch{})
		must(t, err)
	}
}

// hexForms are other ways to write what these digits mean, and near misses.
func hexForms(right string) []string {
	letter := bytes.IndexAny([]byte(right), "abcdef")
	return []string{
		right[:letter] + string(right[letter]-32) + right[letter+1:],
		string(bytes.ToUpper([]byte(right))), right[1:], right[:len(right)-1], right + "0", "0" + right, right + "00",
		" " + right, right + " ", right + "\n", right[:2] + " " + right[3:], "0x" + right, "0x" + right[2:], "0X" + right[2:],
		right[:2] + ":" + right[2:], right[:10] + "\u0430" + right[12:], right[:10] + "g" + right[11:], fmt.Sprintf("%q", right), "",
	}
}
