package verify_test

import (
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// fieldCases are the values that a field may not have, one fault for each.
func fieldCases() []fault {
	var faults []fault
	each := func(artifact, field string, code verify.Code, values ...any) {
		for i, v := range values {
			change := edit(artifact, set(field, v))
			f := fault{name: strings.Join([]string{artifact, field, string(rune('a' + i))}, " "), want: want{code, about(artifact, field)}}
			switch artifact {
			case bundle.Status, bundle.Proof, bundle.OutputHashes:
				f.content = change
			case bundle.SignedPayload:
				f.payload = change
			default:
				f.after = change
			}
			faults = append(faults, f)
		}
	}
	upper := strings.Repeat("AB", 32)
	each(bundle.Identity, "algorithm", verify.AlgorithmUnsupported, "", "ED25519", "ed25519 ", "ed25519ph", "none", nil, 1, true, []string{"ed25519"})
	each(bundle.Identity, "public_key", verify.KeyInvalid, "", upper, zeros[1:], zeros+"0", zeros+zeros, "g"+zeros[1:], " "+zeros[1:], "0x"+zeros[2:], nil, 0, []string{zeros})
	each(bundle.Identity, "validator_id", verify.IdentityInvalid, "", zeros, upper, zeros[1:], nil, 1)
	each(bundle.SignedPayload, "decision", verify.DecisionInvalid, "", "accept", "ACCEPT ", " ACCEPT", "Accept", "REJECT", nil, true, 1, []string{"ACCEPT"})
	each(bundle.SignedPayload, "validator_id", verify.IdentityMismatch, "", zeros, upper, nil, 0)
	each(bundle.Signature, "payload_type", verify.SignatureMalformed, "", "bundle", "CHAIN", "BUNDLE ", nil, 1)
	each(bundle.Signature, "signature", verify.SignatureMalformed, "", zeros, zeros+zeros[1:], zeros+zeros+"0", zeros+zeros+"00", upper+upper, "0x"+zeros+zeros[2:], zeros+zeros[1:]+"g", zeros+zeros[1:]+"\n", nil, 0)
	each(bundle.Signature, "validator_id", verify.SignatureMalformed, "", zeros[1:], zeros+"0", upper, "g"+zeros[1:], nil, 1)
	each(bundle.Signature, "validator_id", verify.IdentityMismatch, zeros, strings.Repeat("ab", 32))
	each(bundle.Signature, "Signed_at", verify.SignatureMalformed, "now")
	each(bundle.OutputHashes, "hashes", verify.ArtifactMalformed, nil, []string{}, []string{"dist/a"}, "", "dist/a", 0, 1.5, true)
	each(bundle.Status, "status", verify.DecisionInvalid, "", "Success", "success ", "failure", "error", nil, true, 1, map[string]any{})
	each(bundle.Status, "cmp01", verify.DecisionInvalid, "", "PASS", "pass ", "fail", nil, true)
	for i, result := range []any{nil, true, 1, "verified", []any{true}, map[string]any{}, map[string]any{"Verified": true}} {
		each(bundle.Proof, "restoration_result", verify.RestorationFailed, result)
		faults[len(faults)-1].name += string(rune('0' + i))
	}
	for i, verified := range []any{false, nil, 1, 1.0, "true", "", []any{true}, map[string]any{"verified": true}} {
		each(bundle.Proof, "restoration_result", verify.RestorationFailed, map[string]any{"verified": verified, "Verified": true})
		faults[len(faults)-1].name += " verified " + string(rune('0'+i))
	}
	return append(faults,
		fault{name: "identity: another key", after: edit(bundle.Identity, set("public_key", zeros)), want: want{verify.IdentityInvalid, about(bundle.Identity, "validator_id")}},
		fault{name: "status: no status", content: edit(bundle.Status, drop("status")), want: want{verify.DecisionInvalid, about(bundle.Status, "status")}},
		fault{name: "status: no cmp01", content: edit(bundle.Status, drop("cmp01")), want: want{verify.DecisionInvalid, about(bundle.Status, "cmp01")}},
	)
}

func TestFieldCases(t *testing.T) { rejectsEach(t, sample.Pick(t, 40, fieldCases())) }

// rejectsEach causes each fault alone.
func rejectsEach(t *testing.T, faults []fault) {
	t.Helper()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			r := newRun(t)
			spoil(r, f)
			_, err := strict(t, r)
			checkReject(t, err, f.expected(r))
		})
	}
}

// TestHashValues: a malformed hash is found when the file is read, so a missing file comes first.
func TestHashValues(t *testing.T) {
	right := bundletest.Hash("aaa")
	for _, declared := range []string{
		"", "sha256:", right[7:], strings.ToUpper(right), "sha256:" + strings.ToUpper(right[7:]), "SHA256:" + right[7:],
		right[:70], right + "0", right + " ", " " + right, "sha512:" + right[7:], "sha256:sha256:" + right[7:], "sha256:" + strings.Repeat("g", 64), bundletest.Hash("bbb"),
	} {
		change := func(r *bundletest.Run) {
			r.EditHashes(func(h map[string]any) { h["dist/a"] = declared })
		}
		rejectsEach(t, []fault{
			{name: "present " + declared, content: change, want: want{verify.HashMismatch, mismatch("dist/a", declared, "aaa")}},
			{name: "missing " + declared, content: change, after: loseOutput("dist/a"), want: want{verify.OutputMissing, aboutPath("dist/a")}},
		})
	}
	for i, value := range []any{nil, 1, true, []string{right}, map[string]string{"sha256": right}} {
		rejectsEach(t, []fault{{
			name:    "kind " + string(rune('a'+i)),
			content: edit(bundle.OutputHashes, set("hashes", map[string]any{"dist/a": right, "dist/b": value, "dist/c": nil})),
			want:    want{verify.ArtifactMalformed, map[string]string{"artifact": bundle.OutputHashes, "field": "hashes", "path": "dist/b"}},
		}})
	}
}

// TestExtraFieldsFirst: an extra field is reported before a
// missing one, and of several of each the first.
func TestExtraFieldsFirst(t *testing.T) {
	both := func(f map[string]any) { delete(f, "validator_id"); f["z"], f["y"] = 1, 1 }
	rejectsEach(t, []fault{
		{name: "identity", after: edit(bundle.Identity, both), want: want{verify.FieldExtra, about(bundle.Identity, "y")}},
		{name: "payload", payload: edit(bundle.SignedPayload, both), want: want{verify.FieldExtra, about(bundle.SignedPayload, "y")}},
		{name: "signature", after: edit(bundle.Signature, both), want: want{verify.SignatureMalformed, about(bundle.Signature, "y")}},
		{name: "empty identity", after: write(bundle.Identity, "{}"), want: want{verify.FieldMissing, about(bundle.Identity, "algorithm")}},
		{name: "empty payload", payload: write(bundle.SignedPayload, "{}"), want: want{verify.FieldMissing, about(bundle.SignedPayload, "bundle_root")}},
		{name: "empty signature", after: write(bundle.Signature, "{}"), want: want{verify.SignatureIncomplete, about(bundle.Signature, "payload_type")}},
		{name: "empty name", after: edit(bundle.Identity, set("", 1)), want: want{verify.FieldExtra, about(bundle.Identity, "")}},
	})
}

// TestExtraArtifacts: what begins and ends like one of three
// artifacts is one too many, whatever it is.
func TestExtraArtifacts(t *testing.T) {
	for _, name := range []string{
		"SIGNATURE2.json", "SIGNATURE.json.json", "SIGNATURE_.json", "SIGNATURE-OLD.json", "SIGNATURES.json", "SIGNATURE .json", "SIGNATURE\n.json", "SIGNATURE\x1b[2J.json", "SIGNATURE\u202e.json", "SIGNATURE\xff.json",
		"SIGNED_PAYLOAD1.json", "SIGNED_PAYLOAD.json.json", "VALIDATOR_IDENTITY_2.json", "VALIDATOR_IDENTITY\u00fc.json",
	} {
		rejectsEach(t, []fault{{name: name, after: write(name, "{}"), want: want{verify.ArtifactExtra, about(name)}}})
	}
	for _, name := range []string{
		"SIGNATURE.json.bak", "SIGNATURE", "SIGNATURE.JSON", "signature2.json", "xSIGNATURE.json", "SIGNATUR.json", "SIGNED.json", "SIGNED_PAYLOAD",
		"PROOF2.json", "STATUS2.json", "TASK_SPEC.old.json", "OUTPUT_HASHES_.json", "VALIDATOR_IDENTITY.json~", ".SIGNATURE2.json", "notes.txt",
	} {
		r := newRun(t)
		r.WriteRaw(name, []byte("{}"))
		if _, err := strict(t, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for kind, make := range special() {
		r := newRun(t)
		must(t, make(r.Path("SIGNATURE2.json")))
		_, err := strict(t, r)
		t.Logf("as %s", kind)
		checkReject(t, err, want{verify.ArtifactExtra, about("SIGNATURE2.json")})
	}
	r := newRun(t)
	for _, name := range []string{"VALIDATOR_IDENTITY2.json", "SIGNED_PAYLOAD2.json", "SIGNATURE3.json", "SIGNATURE2.json"} {
		r.WriteRaw(name, nil)
	}
	_, err := strict(t, r)
	checkReject(t, err, want{verify.ArtifactExtra, about("SIGNATURE2.json")})
}

// TestForbidden: forbidden names are rejected, whatever the type of the entry.
func TestForbidden(t *testing.T) {
	kinds := special()
	kinds["file"] = func(path string) error { return writeFile(path, "x") }
	kinds["empty file"] = func(path string) error { return writeFile(path, "") }
	kinds["link"] = harness.LinkTo(bundle.Status)
	kinds["dangling link"] = harness.LinkTo("nowhere")
	kinds["link out"] = harness.LinkTo("/tmp")
	for _, kind := range sortedKeys(kinds) {
		for name, written := range map[string]string{"logs": "logs/", "tmp": "tmp/", "transcript.json": "transcript.json"} {
			f := fault{name: name + " as " + kind, after: func(r *bundletest.Run) { must(r.T, kinds[kind](r.Path(name))) }, want: want{verify.ForbiddenArtifact, about(written)}}
			rejectsEach(t, []fault{f})
		}
	}
	for _, name := range []string{"log", "Logs", "logs2", "temp", "tmp.json", "transcript", "transcript.json.bak", "Transcript.json"} {
		r := newRun(t)
		r.WriteRaw(name, nil)
		if _, err := strict(t, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnsignedFields are those that a bundle may have in any form.
func TestUnsignedFields(t *testing.T) {
	for name, f := range map[string]fault{
		"signed_at null":     {after: edit(bundle.Signature, set("signed_at", nil))},
		"signed_at a list":   {after: edit(bundle.Signature, set("signed_at", []any{1, map[string]any{"a": "b"}}))},
		"hashes: extra":      {content: edit(bundle.OutputHashes, set("more", []int{1}))},
		"hashes: no semver":  {content: edit(bundle.OutputHashes, drop("validator_semver"))},
		"hashes: build null": {content: edit(bundle.OutputHashes, set("validator_build_id", nil))},
		"proof: extra":       {content: edit(bundle.Proof, set("more", "\u00fc"))},
		"proof_hash short":   {content: edit(bundle.Proof, set("proof_hash", zeros[1:]))},
		"proof_hash null":    {content: edit(bundle.Proof, set("proof_hash", nil))},
		"proof_hash number":  {content: edit(bundle.Proof, set("proof_hash", 5))},
		"proof_hash prefix":  {content: edit(bundle.Proof, set("proof_hash", "sha256:"+zeros))},
		"status: extra":      {content: edit(bundle.Status, set("more", map[string]any{"n": 1e300}))},
		"task spec: no task": {content: func(r *bundletest.Run) { r.WriteRaw(bundle.TaskSpec, []byte("\n{}\n")) }},
		"no outputs":         {content: edit(bundle.OutputHashes, set("hashes", map[string]any{}))},
	} {
		r := newRun(t)
		spoil(r, f)
		if _, err := strict(t, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestProofHash: where there is one of 64 hex digits, of either case, it counts.
func TestProofHash(t *testing.T) {
	proof := `{"restoration_result":{"verified":true},"note":"` + "\u00fc\U0001f4a1" + `","n":[1.50,1e3]}`
	hash := proofHashOf(t, proof)
	for text, ok := range map[string]bool{
		hash: true, strings.ToUpper(hash): true, zeros: false, hash[:63] + "x": true, "": true, flipLast(hash): false, strings.ToUpper(flipLast(hash)): false,
	} {
		r := newRun(t)
		r.WriteRaw(bundle.Proof, []byte(`{"proof_hash":"`+text+`",`+proof[1:]))
		if _, err := strict(t, r); ok && err != nil {
			t.Errorf("%s: %v", text, err)
		} else if !ok {
			checkReject(t, err, want{verify.ArtifactMalformed, about(bundle.Proof)})
		}
	}
}

func flipLast(hex string) string {
	last := byte('0')
	if hex[len(hex)-1] == last {
		last = '1'
	}
	return hex[:len(hex)-1] + string(last)
}
