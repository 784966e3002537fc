package hostile

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/test/forge"
	"github.com/spectrumfs/spectrum/test/harness"
)

// another is another valid bundle; every artifact of it is another one.
func another(key byte) forge.Run {
	r := forge.New(forge.Outputs{"gen/c.txt": content, "gen/d.txt": "d"})
	r.Edit(forge.TaskSpec, set("task_id", "another"))
	r.Edit(forge.Status, set("completed_at", "2026-02-03T04:05:06Z"))
	r.Edit(forge.Proof, set("note", "of another"))
	r.Sign(forge.Key(key))
	return r
}

// bindingRows mix artifacts of valid bundles.
func bindingRows() (entries []entry) {
	const sameKey, otherKey = 1, 2
	for _, c := range []struct {
		artifact    string
		same, other verdict
	}{
		{forge.TaskSpec, "BUNDLE_ROOT_MISMATCH", "BUNDLE_ROOT_MISMATCH"},
		{forge.Status, "BUNDLE_ROOT_MISMATCH", "BUNDLE_ROOT_MISMATCH"},
		{forge.OutputHashes, "BUNDLE_ROOT_MISMATCH", "BUNDLE_ROOT_MISMATCH"},
		{forge.SignedPayload, "BUNDLE_ROOT_MISMATCH", "BUNDLE_ROOT_MISMATCH"},
		{forge.Signature, "SIGNATURE_INVALID", "IDENTITY_MISMATCH"},
		{forge.Identity, "", "IDENTITY_MISMATCH"}, // with the same key it is the same
	} {
		for key, want := range map[byte]verdict{sameKey: c.same, otherKey: c.other} {
			if want == "" {
				continue
			}
			entries = append(entries, entry{57, fmt.Sprintf("%s of another bundle, key %d", c.artifact, key), func(p *place) {
				p.replace(p.at("gen/d.txt"), file("d"))
				p.edit(func(r forge.Run) { r[c.artifact] = another(key)[c.artifact] })
			}, planned(want, strict, taken)})
		}
	}
	for _, key := range []byte{sameKey, otherKey} {
		entries = append(entries, entry{57, fmt.Sprintf("%s of another bundle, key %d", forge.Proof, key), func(p *place) {
			p.edit(func(r forge.Run) { r[forge.Proof] = another(key)[forge.Proof] })
			p.check = saysUnsigned(p)
		}, planned(accepted, accepted, taken)})
	}
	return entries
}

// saysUnsigned requires the preview to show what no signature covers, in JSON and in text.
func saysUnsigned(p *place) func(string, reply) {
	return func(command string, r reply) {
		if command != "preview" {
			return
		}
		if !strings.Contains(r.stdout, `"unsigned_artifacts":["PROOF.json"]`) {
			p.Errorf("the preview does not say that PROOF.json is unsigned: %v", r)
		}
		shown := p.run("preview", "--restore-root", p.root, p.dirs[0])
		if !strings.Contains(shown.stderr, "| Not covered by the signature | `PROOF.json` |\n") {
			p.Errorf("the report does not say that PROOF.json is unsigned: %v", shown)
		}
	}
}

// signatureRows are about what is signed, how, and by whom.
func signatureRows() (entries []entry) {
	add := func(row int, name string, make func(p *place), want verdicts) {
		entries = append(entries, entry{row, name, make, want})
	}
	refused := func(row int, name string, verify verdict, change func(r forge.Run)) {
		add(row, name, func(p *place) { p.edit(change) }, planned(verify, strict, taken))
	}
	for name, change := range map[string]func(r, s []byte) []byte{
		"S + L":     func(r, s []byte) []byte { return slices.Concat(r, little(new(big.Int).Add(number(s), order()))) },
		"S = L":     func(r, _ []byte) []byte { return slices.Concat(r, little(order())) },
		"S of ones": func(r, _ []byte) []byte { return slices.Concat(r, bytes.Repeat([]byte{0xff}, 32)) },
		"R not canonical": func(_, s []byte) []byte {
			return slices.Concat(append([]byte{0xee}, append(bytes.Repeat([]byte{0xff}, 30), 0x7f)...), s)
		},
		"R no point": func(_, s []byte) []byte { return slices.Concat(bytes.Repeat([]byte{2}, 32), s) },
		"zeros":      func(_, _ []byte) []byte { return make([]byte, 64) },
	} {
		refused(59, name, "SIGNATURE_INVALID", func(r forge.Run) {
			sig := unhex(r.Fields(forge.Signature)["signature"].(string))
			r.SetSignature(change(sig[:32:32], sig[32:]), forge.Key(1))
		})
	}
	for name, change := range map[string]func(hex string) any{
		"127 digits": func(hex string) any { return hex[:127] }, "129 digits": func(hex string) any { return hex + "0" }, "130 digits": func(hex string) any { return hex + "00" },
		"upper case": func(hex string) any { return strings.ToUpper(hex) }, "with a space": func(hex string) any { return hex + " " }, "no hex": func(hex string) any { return hex[:127] + "g" },
		"null": func(string) any { return nil }, "empty": func(string) any { return "" },
	} {
		refused(60, name, "SIGNATURE_MALFORMED", func(r forge.Run) {
			r.Edit(forge.Signature, func(f forge.Fields) { f["signature"] = change(f["signature"].(string)) })
		})
	}
	add(61, "a signature for every message, of a key of small order", smallOrder, planned(accepted, accepted, accepted))
	for name, message := range map[string]func(raw []byte) []byte{
		"no prefix":      func(raw []byte) []byte { return raw },
		"a chain's":      func(raw []byte) []byte { return append([]byte("CAT-DPT-SPECTRUM-04-v1:CHAIN:"), raw...) },
		"raw file bytes": func(raw []byte) []byte { return forge.Message(spaced(raw)) },
		"the hash":       func(raw []byte) []byte { return []byte(forge.Hash(string(raw))) },
	} {
		refused(62, name, "SIGNATURE_INVALID", func(r forge.Run) {
			payload := r[forge.SignedPayload]
			r[forge.SignedPayload] = spaced(payload)
			r.SetSignature(ed25519.Sign(forge.Key(1), message(payload)), forge.Key(1))
		})
	}
	good := planned(accepted, accepted, taken)
	add(63, "spaced", func(p *place) { p.edit(func(r forge.Run) { r[forge.SignedPayload] = spaced(r[forge.SignedPayload]) }) }, good)
	add(63, "in another order", func(p *place) {
		p.edit(func(r forge.Run) {
			f := r.Fields(forge.SignedPayload)
			r[forge.SignedPayload] = fmt.Appendf(nil, `{"validator_id":%q,"decision":"\u0041CCEPT","bundle_root":%q}`, f["validator_id"], f["bundle_root"])
		})
	}, good)
	unpinned := verdicts{accepted, accepted, quarantined, quarantined, taken} // a view without a restore root is for looking
	add(64, "a key that is not pinned", func(p *place) {
		p.edit(func(r forge.Run) { r.Sign(forge.Key(7)) })
		p.trust("trusted.d", forge.Key(1))
	}, unpinned)
	add(64, "a key that is revoked", func(p *place) { p.trust("revoked.d", forge.Key(1)) }, verdicts{accepted, accepted, revoked, revoked, taken})
	add(64, "a key that is pinned", func(p *place) { p.trust("trusted.d", forge.Key(1)) }, good)
	for _, decision := range []any{"accept", "ACCEPT ", " ACCEPT", "Accept", "REJECT", "", nil, true, []any{"ACCEPT"}} {
		add(65, fmt.Sprintf("%q", decision), signedPayload(set("decision", decision)), planned("DECISION_INVALID", strict, taken))
	}
	return entries
}

// spaced is the same JSON with white space in it.
func spaced(raw []byte) []byte {
	return []byte("\n\t " + strings.NewReplacer(`":"`, "\" :\r\n\"", `","`, `" , "`).Replace(string(raw)) + "\n")
}

// order is the order of the group, L.
func order() *big.Int {
	l, _ := new(big.Int).SetString("27742317777372353535851937790883648493", 10)
	return l.Add(l, new(big.Int).Lsh(big.NewInt(1), 252))
}

func number(little []byte) *big.Int {
	big1 := slices.Clone(little)
	slices.Reverse(big1)
	return new(big.Int).SetBytes(big1)
}

func little(n *big.Int) []byte {
	b := n.FillBytes(make([]byte, 32))
	slices.Reverse(b)
	return b
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

// smallOrder signs with the neutral element for a public key: R = [S]B + [k]A
// holds for every message when S is 0 and R the same point. The verdict is that
// of the law's reference. A key file that claims this public key
// beside its seed is what seal is given.
func smallOrder(p *place) {
	point := append([]byte{1}, make([]byte, 31)...)
	p.edit(func(r forge.Run) {
		id := strings.TrimPrefix(forge.Hash(string(point)), "sha256:")
		r.Set(forge.Identity, forge.Fields{"algorithm": "ed25519", "public_key": hex.EncodeToString(point), "validator_id": id})
		r.Set(forge.SignedPayload, forge.Fields{"bundle_root": r.Root(), "decision": "ACCEPT", "validator_id": id})
		r.Set(forge.Signature, forge.Fields{"payload_type": "BUNDLE", "signature": hex.EncodeToString(append(point, make([]byte, 32)...)), "validator_id": id})
	})
	harness.Must(p, os.WriteFile(p.key, claiming(p, point), 0o600))
	p.check = func(command string, r reply) {
		if command != "seal" || r.status != 0 {
			return
		}
		want := strings.TrimPrefix(forge.Hash(string(forge.Key(3).Public().(ed25519.PublicKey))), "sha256:")
		if !strings.Contains(r.stdout, want) {
			p.Errorf("it was not sealed with the key of the seed: %v", r)
		}
	}
}

// claiming is a key file (RFC 5958) with a seed and a public key that is not of
// that seed.
func claiming(p *place, public []byte) []byte {
	p.Helper()
	block, _ := pem.Decode(privateKey())
	var key struct {
		Version   int
		Algorithm asn1.RawValue
		Private   []byte
		Public    asn1.BitString `asn1:"optional,tag:1"`
	}
	if rest, err := asn1.Unmarshal(block.Bytes, &key); err != nil || len(rest) > 0 {
		p.Fatal(err)
	}
	key.Version, key.Public = 1, asn1.BitString{Bytes: public, BitLength: 8 * len(public)}
	der, err := asn1.Marshal(key)
	harness.Must(p, err)
	if _, err := x509.ParsePKCS8PrivateKey(der); err != nil {
		p.Fatalf("no key: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// bitRows flip each bit of the three artifacts about the signature, as they are in
// canonical form.
func bitRows() (entries []entry) {
	any1 := verdict(strings.Join(slices.DeleteFunc(slices.Clone(verifyCodes), func(code string) bool {
		return strings.HasPrefix(code, "CHAIN_") || strings.HasPrefix(code, "OUTPUT_") || code == "HASH_MISMATCH"
	}), "|"))
	good := forge.New(forge.Outputs{"gen/c.txt": content})
	for _, artifact := range []string{forge.Identity, forge.SignedPayload, forge.Signature} {
		for bit := range 8 * len(good[artifact]) {
			entries = append(entries, entry{58, fmt.Sprintf("bit %d of %s", bit, artifact), func(p *place) {
				p.edit(func(r forge.Run) { r[artifact][bit/8] ^= 1 << (bit % 8) })
			}, planned(any1, strict, taken)})
		}
	}
	return entries
}

// trust pins or revokes a key in the state directory.
func (p *place) trust(dir string, key ed25519.PrivateKey) {
	p.Helper()
	path := filepath.Join(p.state, "trust", dir)
	harness.Must(p, os.MkdirAll(path, 0o700))
	id := sha256.Sum256(key.Public().(ed25519.PublicKey))
	harness.Must(p, os.WriteFile(filepath.Join(path, "somebody"), fmt.Appendf(nil, "%x\n", id), 0o600))
}
