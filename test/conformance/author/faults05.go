package main

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/test/conformance/suite"
	"github.com/spectrumfs/spectrum/test/forge"
)

func artifact(name string) forge.Fields { return forge.Fields{"artifact": name} }

// short names of the artifacts, for the names of cases.
func slug(name string) string {
	return strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(name, ".json"), "_", "-"))
}

// missing is an artifact that is not there.
func missing(name string) fault {
	f := fault{
		name:    "missing-" + slug(name),
		says:    name + " is missing",
		touches: []string{name},
		raw:     func(r *run) { delete(r.Run, name) },
	}
	f.laws = artifactLaws(name, in05(1, order(name), "ARTIFACT_MISSING", artifact(name)), "MISSING")
	return f
}

func order(name string) int {
	for i, n := range forge.Names {
		if n == name {
			return i
		}
	}
	panic(name)
}

// artifactLaws are the verdicts on an artifact that is missing or malformed.
func artifactLaws(name string, v verdict, how string) map[law]verdict {
	laws := map[law]verdict{strict: v}
	incomplete := func(from, to int) verdict {
		return in02(from, name, "BUNDLE_INCOMPLETE").until(0, to).under("section 5 and D12")
	}
	// 3.1 parses STATUS.json and OUTPUT_HASHES.json in its steps 1 and 2. When
	// the rest of section 2.1 is looked at is not said.
	switch name {
	case forge.TaskSpec:
		laws[resume] = incomplete(part02Any, part02Outputs)
	case forge.Status:
		laws[resume] = incomplete(part02Any, part02Status)
		if how == "MALFORMED" {
			laws[resume] = incomplete(part02Status, part02Status)
		}
	case forge.OutputHashes:
		laws[resume] = incomplete(part02Any, part02Hashes)
		if how == "MALFORMED" {
			laws[resume] = incomplete(part02Hashes, part02Hashes)
		}
		laws[restore] = hashes06(map[string]int{"MISSING": 0, "MALFORMED": 1}[how], "RESTORE_OUTPUT_HASHES_"+how)
	case forge.Proof:
		laws[restore] = proof06(map[string]int{"MISSING": 0, "MALFORMED": 1}[how], "RESTORE_PROOF_"+how)
	}
	return laws
}

// malformed is an artifact that the strict parser rejects. change makes it from the good one, so
// that a less strict reader finds nothing wrong.
func malformed(name, how, says string, change func(good []byte) suite.Entry) fault {
	f := fault{
		name:    fmt.Sprintf("malformed-%s-%s", slug(name), how),
		says:    name + " " + says,
		touches: []string{name},
	}
	act := func(r *run) {
		e := change(r.Run[name])
		r.pads[name] = e
		if e.Kind == suite.Link {
			r.extra = append(r.extra, suite.Entry{Path: e.Content, Content: string(r.Run[name])})
		}
		r.Run[name] = []byte(e.Content)
	}
	f.raw = act
	f.laws = artifactLaws(name, in05(2, order(name), "ARTIFACT_MALFORMED", artifact(name)).under("D6"), "MALFORMED")
	if name == forge.TaskSpec {
		// The root is over the bytes that are there, so nothing else is wrong.
		f.raw = func(r *run) {
			act(r)
			if r.pads[name].Kind != suite.File {
				return
			}
			pad := suite.Entry{Content: string(r.Run[name]), Pad: r.pads[name].Pad}
			spec := []byte(pad.Content + strings.Repeat(" ", max(0, pad.Pad-len(pad.Content))))
			r.resign(spec)
		}
		f.touches = append(f.touches, forge.Identity, forge.SignedPayload, forge.Signature)
	}
	return f
}

// resign signs the run anew, as if TASK_SPEC.json had these bytes.
func (r *run) resign(spec []byte) {
	r.root = forge.Root(spec, r.Fields(forge.OutputHashes)["hashes"], r.Fields(forge.Status))
	r.SignRoot(r.root, r.key)
}

// edited is a fault in a field of an artifact after signing.
func edited(name, field, slugs, says string, v verdict, change func(forge.Fields)) fault {
	return fault{
		name:    slugs,
		says:    says,
		touches: []string{name + ":" + field},
		laws:    map[law]verdict{strict: v.naming(artifact(name))},
		sealed:  func(r *run) { r.Edit(name, change) },
	}
}

func set(field string, value any) func(forge.Fields) {
	return func(f forge.Fields) { f[field] = value }
}

func drop(field string) func(forge.Fields) {
	return func(f forge.Fields) { delete(f, field) }
}

// extraArtifact is a second artifact of a kind (D9).
func extraArtifact(name string) fault {
	return fault{
		name:    "artifact-extra-" + strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(name, ".json"), "_", "-")),
		says:    name + " is there too",
		touches: []string{"extra"},
		laws:    map[law]verdict{strict: in05(1, 50, "ARTIFACT_EXTRA", nil).naming(artifact(name)).under("D9")},
		raw: func(r *run) {
			of := forge.Signature
			for _, n := range []string{forge.Identity, forge.SignedPayload} {
				if strings.HasPrefix(name, strings.TrimSuffix(n, ".json")) {
					of = n
				}
			}
			r.extra = append(r.extra, suite.Entry{Path: name, Content: string(r.Run[of])})
		},
	}
}

// The identity (phase 3).

func identityExtra() fault {
	return edited(forge.Identity, "+", "identity-field-extra", forge.Identity+" has a field \"name\"",
		in05(3, 0, "FIELD_EXTRA", nil), set("name", "validator"))
}

func identityMissing(field string) fault {
	return edited(forge.Identity, field, "identity-field-missing-"+slug(field), forge.Identity+" has no "+field,
		in05(3, 10, "FIELD_MISSING", nil), drop(field))
}

func algorithm(how string, value any) fault {
	return edited(forge.Identity, "algorithm", "identity-algorithm-"+how, fmt.Sprintf("algorithm is %s", forge.Canonical(value)),
		in05(3, 20, "ALGORITHM_UNSUPPORTED", nil), set("algorithm", value))
}

// keyForm changes how the public key is written. Its derivation stays as it was.
func keyForm(how, says string, change func(string) any) fault {
	return edited(forge.Identity, "public_key", "identity-key-"+how, "public_key "+says,
		in05(3, 30, "KEY_INVALID", nil),
		func(f forge.Fields) { f["public_key"] = change(f["public_key"].(string)) })
}

// derivation is a validator_id that is not the key's, the same in all artifacts.
func derivation(how, says string, value any) fault {
	return fault{
		name:    "identity-derivation-" + how,
		says:    "validator_id is " + says + " in every artifact, and not the SHA-256 of the key",
		touches: []string{forge.Identity + ":validator_id"},
		laws:    map[law]verdict{strict: in05(3, 40, "IDENTITY_INVALID", nil).naming(artifact(forge.Identity))},
		payload: func(r *run) {
			r.Edit(forge.Identity, set("validator_id", value))
			r.Edit(forge.SignedPayload, set("validator_id", value))
		},
		sealed: func(r *run) { r.Edit(forge.Signature, set("validator_id", value)) },
	}
}

// The bundle root (phase 4).

// hashesMissing takes "hashes" away, before the run is signed.
func hashesMissing() fault {
	return fault{
		name:    "hashes-missing",
		says:    "OUTPUT_HASHES.json has no field \"hashes\"",
		touches: []string{forge.OutputHashes + ":hashes"},
		laws: map[law]verdict{
			strict:  in05(4, 0, "FIELD_MISSING", nil).naming(artifact(forge.OutputHashes)).under("D8"),
			resume:  in02(part02Hashes, "hashes", "BUNDLE_INCOMPLETE").until(0, part02Entries).under("D12"),
			restore: hashes06(2, "RESTORE_OUTPUT_HASHES_HASHES_MISSING"),
		},
		signed: func(r *run) { r.Edit(forge.OutputHashes, drop("hashes")) },
	}
}

// hashesForm is a "hashes" that is not an object. The law does not say whether that
// is found in phase 2 or in phase 4.
func hashesForm(how string, value any) fault {
	f := hashesMissing()
	f.name, f.says = "hashes-"+how, fmt.Sprintf("\"hashes\" is %s", forge.Canonical(value))
	f.signed = func(r *run) { r.Edit(forge.OutputHashes, set("hashes", value)) }
	f.laws[strict] = in05(2, order(forge.OutputHashes), "ARTIFACT_MALFORMED", artifact(forge.OutputHashes)).until(4, 0).under("D8")
	return f
}

// hashValue is a hash that is not a string.
func hashValue(how string, value any) fault {
	return fault{
		name:    "hashes-value-" + how,
		says:    fmt.Sprintf("the hash of out/b.txt is %s", forge.Canonical(value)),
		touches: []string{forge.OutputHashes + ":hashes"},
		laws: map[law]verdict{
			strict: in05(2, order(forge.OutputHashes), "ARTIFACT_MALFORMED", artifact(forge.OutputHashes)).until(4, 0).under("D8"),
			resume: in02(part02Hashes, "hashes", "BUNDLE_INCOMPLETE").until(0, part02Entries).under("D8 and D12"),
		},
		signed: func(r *run) { r.declare("out/b.txt", value) },
	}
}

// The payload (phase 5).

func payloadFault(field, slugs, says string, v verdict, change func(forge.Fields)) fault {
	return fault{
		name:    slugs,
		says:    says,
		touches: []string{forge.SignedPayload + ":" + field},
		laws:    map[law]verdict{strict: v.naming(artifact(forge.SignedPayload))},
		payload: func(r *run) { r.Edit(forge.SignedPayload, change) },
	}
}

func payloadExtra() fault {
	return payloadFault("+", "payload-field-extra", "the signed payload has a field \"note\"",
		in05(5, 0, "FIELD_EXTRA", nil), set("note", ""))
}

func payloadMissing(field string) fault {
	return payloadFault(field, "payload-field-missing-"+slug(field), "the signed payload has no "+field,
		in05(5, 10, "FIELD_MISSING", nil), drop(field))
}

func rootMismatch(how, says string, change func(string) any) fault {
	f := payloadFault("bundle_root", "payload-root-"+how, "the signed bundle_root "+says,
		in05(5, 20, "BUNDLE_ROOT_MISMATCH", nil),
		func(f forge.Fields) { f["bundle_root"] = change(f["bundle_root"].(string)) })
	f.needs = []string{forge.OutputHashes, forge.OutputHashes + ":hashes"}
	return f
}

// afterSigning changes what the bundle root is over, once it is signed.
func afterSigning(name, how, says string, change func(*run)) fault {
	return fault{
		name:    "root-over-other-" + how,
		says:    says,
		touches: []string{name, forge.SignedPayload + ":bundle_root"},
		laws:    map[law]verdict{strict: in05(5, 20, "BUNDLE_ROOT_MISMATCH", nil).naming(artifact(forge.SignedPayload))},
		raw:     change,
	}
}

func decision(how string, value any) fault {
	return payloadFault("decision", "payload-decision-"+how, fmt.Sprintf("the signed decision is %s", forge.Canonical(value)),
		in05(5, 30, "DECISION_INVALID", nil), set("decision", value))
}

func payloadIdentity(how, says string, change func(string) any) fault {
	return payloadFault("validator_id", "payload-identity-"+how, "the payload's validator_id "+says,
		in05(5, 40, "IDENTITY_MISMATCH", nil),
		func(f forge.Fields) { f["validator_id"] = change(f["validator_id"].(string)) })
}

// The signature (phase 6).

func signatureFault(field, slugs, says string, v verdict, change func(forge.Fields)) fault {
	return edited(forge.Signature, field, slugs, says, v, change)
}

func signatureExtra(field string) fault {
	return signatureFault("+", "signature-field-extra-"+slug(field), "SIGNATURE.json has a field \""+field+"\"",
		in05(6, 0, "SIGNATURE_MALFORMED", nil).under("D8, D9"), set(field, "x"))
}

func signatureMissing(field string) fault {
	return signatureFault(field, "signature-field-missing-"+slug(field), "SIGNATURE.json has no "+field,
		in05(6, 10, "SIGNATURE_INCOMPLETE", nil), drop(field))
}

func signatureForm(field, how, says string, change func(string) any) fault {
	return signatureFault(field, "signature-form-"+slug(field)+"-"+how, field+" of SIGNATURE.json "+says,
		in05(6, 20, "SIGNATURE_MALFORMED", nil).under("D18"),
		func(f forge.Fields) { f[field] = change(f[field].(string)) })
}

func signatureIdentity() fault {
	return signatureFault("validator_id", "signature-identity-mismatch", "SIGNATURE.json names another validator_id",
		in05(6, 40, "IDENTITY_MISMATCH", nil), set("validator_id", otherID))
}

// The validator_ids of other keys.
var (
	otherID = validatorID(forge.Key(9))
	thirdID = validatorID(forge.Key(8))
)

func validatorID(key ed25519.PrivateKey) string {
	r := forge.Run{}
	r.SignRoot("", key)
	return r.Fields(forge.Identity)["validator_id"].(string)
}

// signatureInvalid is a signature of the right form that does not fit.
func signatureInvalid(how, says string, forged func(*run) []byte) fault {
	return fault{
		name:    "signature-invalid-" + how,
		says:    "the signature " + says,
		touches: []string{forge.Signature + ":signature"},
		laws:    map[law]verdict{strict: in05(6, 50, "SIGNATURE_INVALID", nil).naming(artifact(forge.Signature))},
		sealed: func(r *run) {
			r.Edit(forge.Signature, set("signature", hex.EncodeToString(forged(r))))
		},
	}
}

// signatureOf is the signature as it is.
func signatureOf(r *run) []byte {
	raw, err := hex.DecodeString(r.Fields(forge.Signature)["signature"].(string))
	if err != nil {
		panic(err)
	}
	return raw
}

func bitFlipped() fault {
	return signatureInvalid("bit", "has one bit changed", func(r *run) []byte {
		s := bytes.Clone(signatureOf(r))
		s[0] ^= 1
		return s
	})
}

// The proof (phase 7).

func proofFault(part int, field, slugs, says, code, restoreCode string, restorePart int, change func(forge.Fields)) fault {
	v := in05(7, part, code, nil).naming(artifact(forge.Proof))
	if code == "ARTIFACT_MALFORMED" {
		v = in05(7, part, code, artifact(forge.Proof))
	}
	f := edited(forge.Proof, field, slugs, says, v, change)
	f.laws = map[law]verdict{strict: v, restore: proof06(restorePart, restoreCode)}
	return f
}

func proofHash() fault {
	f := proofFault(0, "proof_hash", "proof-hash-mismatch", "proof_hash is not that of PROOF.json",
		"ARTIFACT_MALFORMED", "RESTORE_PROOF_MALFORMED", 1, set("proof_hash", strings.Repeat("0", 64)))
	return f
}

func proofResultMissing() fault {
	return proofFault(10, "restoration_result", "proof-result-missing", "PROOF.json has no restoration_result",
		"FIELD_MISSING", "RESTORE_PROOF_RESTORATION_RESULT_MISSING", 2, drop("restoration_result"))
}

func proofResultForm(how string, value any) fault {
	return proofFault(20, "restoration_result", "proof-result-"+how, fmt.Sprintf("restoration_result is %s", forge.Canonical(value)),
		"RESTORATION_FAILED", "RESTORE_PROOF_RESTORATION_RESULT_MISSING", 2, set("restoration_result", value))
}

func notVerified(how string, result forge.Fields) fault {
	return proofFault(20, "restoration_result", "proof-verified-"+how, fmt.Sprintf("restoration_result is %s", forge.Canonical(result)),
		"RESTORATION_FAILED", "RESTORE_PROOF_NOT_VERIFIED", 3, set("restoration_result", result))
}

// Forbidden artifacts (phase 8; SPECTRUM-03; D18).

func forbidden(name, how string, e suite.Entry) fault {
	i := map[string]int{"logs": 0, "tmp": 1, "transcript.json": 2}[name]
	written := []string{"logs/", "tmp/", "transcript.json"}[i]
	e.Path = name + e.Path
	return fault{
		name:    "forbidden-" + slug(name) + "-" + how,
		says:    fmt.Sprintf("%s (%s) is in the run directory", name, how),
		touches: []string{"forbidden " + name},
		laws: map[law]verdict{
			strict: in05(8, i, "FORBIDDEN_ARTIFACT", artifact(written)).under("D18, D29"),
			memory: in03(memoryForbidden, "forbidden artifacts", "FORBIDDEN_ARTIFACT").naming(artifact(written)),
		},
		raw: func(r *run) { r.extra = append(r.extra, e) },
	}
}

// The run status (phase 10; SPECTRUM-02).

func status(field, how string, value any) fault {
	code, part, part05 := "STATUS_NOT_SUCCESS", part02StatusField, 0
	if field == "cmp01" {
		code, part, part05 = "CMP01_NOT_PASS", part02CMP01, 10
	}
	says := fmt.Sprintf("%s is %s", field, forge.Canonical(value))
	change := set(field, value)
	if how == "missing" {
		says, change = "STATUS.json has no "+field, drop(field)
	}
	return fault{
		name:    "status-" + field + "-" + how,
		says:    says,
		touches: []string{forge.Status + ":" + field},
		laws: map[law]verdict{
			strict: in05(10, part05, "DECISION_INVALID", nil).naming(artifact(forge.Status)),
			resume: in02(part, "step 1, "+field, code),
		},
		signed: func(r *run) { r.Edit(forge.Status, change) },
	}
}
