package verify_test

import (
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// fault is one way to break a bundle, at one of three stages, so that two of
// them can be in one bundle: the content, before it is signed; the payload,
// before that is signed; whatever is left, after.
type fault struct {
	name    string
	content func(r *bundletest.Run)
	payload func(r *bundletest.Run)
	after   func(r *bundletest.Run)
	want    want
}

// spoil puts faults into a run. The first one's changes come last, so that
// they find what they change and the others cannot undo them.
func spoil(r *bundletest.Run, faults ...fault) {
	stage := func(of func(fault) func(*bundletest.Run)) {
		for i := len(faults) - 1; i >= 0; i-- {
			if change := of(faults[i]); change != nil {
				change(r)
			}
		}
	}
	stage(func(f fault) func(*bundletest.Run) { return f.content })
	r.Sign()
	stage(func(f fault) func(*bundletest.Run) { return f.payload })
	r.SignPayload()
	stage(func(f fault) func(*bundletest.Run) { return f.after })
}

// expected sets the roots that only the broken run has.
func (f fault) expected(r *bundletest.Run) want {
	w := want{f.want.code, map[string]string{}}
	for k, v := range f.want.details {
		if v == actualRoot {
			v = r.BundleRoot()
		}
		w.details[k] = v
	}
	return w
}

const (
	actualRoot = "the root of the artifacts"
	zeros      = "0000000000000000000000000000000000000000000000000000000000000000"
)

func edit(artifact string, change func(map[string]any)) func(*bundletest.Run) {
	return func(r *bundletest.Run) { r.Edit(artifact, change) }
}

func remove(name string) func(*bundletest.Run) {
	return func(r *bundletest.Run) { r.Remove(name) }
}

func write(name, text string) func(*bundletest.Run) {
	return func(r *bundletest.Run) { r.WriteRaw(name, []byte(text)) }
}

// strictFaults are faults of SPECTRUM-05 in the order in which it finds them.
var strictFaults = append(append(artifactFaults(),
	// Phase 3: the identity.
	fault{name: "identity: extra field", after: edit(bundle.Identity, set("Algorithm", "ed25519")), want: want{verify.FieldExtra, about(bundle.Identity, "Algorithm")}},
	fault{name: "identity: no algorithm", after: edit(bundle.Identity, drop("algorithm")), want: want{verify.FieldMissing, about(bundle.Identity, "algorithm")}},
	fault{name: "identity: no public_key", after: edit(bundle.Identity, drop("public_key")), want: want{verify.FieldMissing, about(bundle.Identity, "public_key")}},
	fault{name: "identity: no validator_id", after: edit(bundle.Identity, drop("validator_id")), want: want{verify.FieldMissing, about(bundle.Identity, "validator_id")}},
	fault{name: "identity: other algorithm", after: edit(bundle.Identity, set("algorithm", "Ed25519")), want: want{verify.AlgorithmUnsupported, about(bundle.Identity, "algorithm")}},
	fault{name: "identity: key form", after: edit(bundle.Identity, set("public_key", strings.ToUpper("ab"+zeros[2:]))), want: want{verify.KeyInvalid, about(bundle.Identity, "public_key")}},
	fault{name: "identity: derivation", after: edit(bundle.Identity, set("validator_id", zeros)), want: want{verify.IdentityInvalid, about(bundle.Identity, "validator_id")}},

	// Phase 4: the bundle root.
	fault{name: "hashes: missing", content: edit(bundle.OutputHashes, drop("hashes")), want: want{verify.FieldMissing, about(bundle.OutputHashes, "hashes")}},
	fault{name: "hashes: not an object", content: edit(bundle.OutputHashes, set("hashes", []string{})), want: want{verify.ArtifactMalformed, about(bundle.OutputHashes, "hashes")}},
	fault{name: "hashes: value not a string", content: edit(bundle.OutputHashes, set("hashes", map[string]any{"dist/a": nil})), want: want{verify.ArtifactMalformed, map[string]string{"artifact": bundle.OutputHashes, "field": "hashes", "path": "dist/a"}}},

	// Phase 5: the payload.
	fault{name: "payload: extra field", payload: edit(bundle.SignedPayload, set("a", 1)), want: want{verify.FieldExtra, about(bundle.SignedPayload, "a")}},
	fault{name: "payload: no bundle_root", payload: edit(bundle.SignedPayload, drop("bundle_root")), want: want{verify.FieldMissing, about(bundle.SignedPayload, "bundle_root")}},
	fault{name: "payload: no decision", payload: edit(bundle.SignedPayload, drop("decision")), want: want{verify.FieldMissing, about(bundle.SignedPayload, "decision")}},
	fault{name: "payload: no validator_id", payload: edit(bundle.SignedPayload, drop("validator_id")), want: want{verify.FieldMissing, about(bundle.SignedPayload, "validator_id")}},
	fault{name: "payload: other root", payload: edit(bundle.SignedPayload, set("bundle_root", zeros)), want: want{verify.BundleRootMismatch, map[string]string{"artifact": bundle.SignedPayload, "field": "bundle_root", "expected": zeros, "actual": actualRoot}}},
	fault{name: "payload: other decision", payload: edit(bundle.SignedPayload, set("decision", "REJECT")), want: want{verify.DecisionInvalid, about(bundle.SignedPayload, "decision")}},
	fault{name: "payload: other identity", payload: edit(bundle.SignedPayload, set("validator_id", zeros)), want: want{verify.IdentityMismatch, about(bundle.SignedPayload, "validator_id")}},

	// Phase 6: the signature.
	fault{name: "signature: extra field", after: edit(bundle.Signature, set("a", 1)), want: want{verify.SignatureMalformed, about(bundle.Signature, "a")}},
	fault{name: "signature: no payload_type", after: edit(bundle.Signature, drop("payload_type")), want: want{verify.SignatureIncomplete, about(bundle.Signature, "payload_type")}},
	fault{name: "signature: no signature", after: edit(bundle.Signature, drop("signature")), want: want{verify.SignatureIncomplete, about(bundle.Signature, "signature")}},
	fault{name: "signature: no validator_id", after: edit(bundle.Signature, drop("validator_id")), want: want{verify.SignatureIncomplete, about(bundle.Signature, "validator_id")}},
	fault{name: "signature: other type", after: edit(bundle.Signature, set("payload_type", "CHAIN")), want: want{verify.SignatureMalformed, about(bundle.Signature, "payload_type")}},
	fault{name: "signature: form", after: edit(bundle.Signature, set("signature", zeros+zeros[1:])), want: want{verify.SignatureMalformed, about(bundle.Signature, "signature")}},
	fault{name: "signature: form of identity", after: edit(bundle.Signature, set("validator_id", zeros[1:])), want: want{verify.SignatureMalformed, about(bundle.Signature, "validator_id")}},
	fault{name: "signature: other identity", after: edit(bundle.Signature, set("validator_id", zeros)), want: want{verify.IdentityMismatch, about(bundle.Signature, "validator_id")}},
	fault{name: "signature: wrong", after: edit(bundle.Signature, set("signature", zeros+zeros)), want: want{verify.SignatureInvalid, about(bundle.Signature)}},

	// Phase 7: the proof.
	fault{name: "proof: hash", content: edit(bundle.Proof, set("proof_hash", zeros)), want: want{verify.ArtifactMalformed, about(bundle.Proof)}},
	fault{name: "proof: no result", content: edit(bundle.Proof, drop("restoration_result")), want: want{verify.FieldMissing, about(bundle.Proof, "restoration_result")}},
	fault{name: "proof: not verified", content: edit(bundle.Proof, set("restoration_result", map[string]any{"verified": false})), want: want{verify.RestorationFailed, about(bundle.Proof, "restoration_result")}},

	// Phase 8: what must not be there.
	fault{name: "logs", after: write("logs", "x"), want: want{verify.ForbiddenArtifact, about("logs/")}},
	fault{name: "tmp", after: write("tmp", "x"), want: want{verify.ForbiddenArtifact, about("tmp/")}},
	fault{name: "transcript", after: write("transcript.json", "x"), want: want{verify.ForbiddenArtifact, about("transcript.json")}},

	// Phase 9: the outputs.
	fault{name: "first output missing", after: loseOutput("dist/a"), want: want{verify.OutputMissing, aboutPath("dist/a")}},
	fault{name: "first output changed", after: changeOutput("dist/a"), want: want{verify.HashMismatch, mismatch("dist/a", bundletest.Hash("aaa"), "changed")}},
	fault{name: "second output missing", after: loseOutput("dist/b"), want: want{verify.OutputMissing, aboutPath("dist/b")}},
	fault{name: "second output changed", after: changeOutput("dist/b"), want: want{verify.HashMismatch, mismatch("dist/b", bundletest.Hash("bbb"), "changed")}},
), statusFaults()...)

// artifactFaults are phases 1 and 2.
func artifactFaults() []fault {
	var faults []fault
	for _, name := range strictOrder {
		faults = append(faults, fault{name: "no " + name, after: remove(name), want: want{verify.ArtifactMissing, about(name)}})
	}
	for _, name := range []string{"SIGNATURE2.json", "SIGNED_PAYLOAD.old.json", "VALIDATOR_IDENTITY-.json"} {
		faults = append(faults, fault{name: "extra " + name, after: write(name, "{}"), want: want{verify.ArtifactExtra, about(name)}})
	}
	for _, name := range strictOrder {
		faults = append(faults, fault{name: "malformed " + name, after: write(name, `{"a":1,"a":1}`), want: want{verify.ArtifactMalformed, about(name)}})
	}
	return faults
}

// statusFaults are phase 10.
func statusFaults() []fault {
	return []fault{
		{name: "status", content: edit(bundle.Status, set("status", "failure")), want: want{verify.DecisionInvalid, about(bundle.Status, "status")}},
		{name: "cmp01", content: edit(bundle.Status, set("cmp01", "fail")), want: want{verify.DecisionInvalid, about(bundle.Status, "cmp01")}},
	}
}

func loseOutput(path string) func(*bundletest.Run) {
	return func(r *bundletest.Run) { must(r.T, os.Remove(at(r, path))) }
}

func changeOutput(path string) func(*bundletest.Run) {
	return func(r *bundletest.Run) { r.Write(path, "changed") }
}

func TestStrictAccepts(t *testing.T) {
	r := newRun(t)
	b, err := strict(t, r)
	must(t, err)
	if b.Root() != r.BundleRoot() || b.RunID() != "run-1" || b.Len() != 2 {
		t.Errorf("root %s, run %s, %d outputs", b.Root(), b.RunID(), b.Len())
	}
	spoil(r) // without a fault it is as good as before
	_, err = strict(t, r)
	must(t, err)
}

// TestStrictRejects causes each fault alone, and again and again.
func TestStrictRejects(t *testing.T) {
	for _, f := range strictFaults {
		t.Run(f.name, func(t *testing.T) {
			r := newRun(t)
			spoil(r, f)
			_, err := strict(t, r)
			checkReject(t, err, f.expected(r))
			run := openRuns(t, r)[0]
			always(t, func() error {
				_, err := verify.Strict(t.Context(), run, verify.Watch{})
				return err
			})
		})
	}
}

// TestStrictOrder puts two faults into one bundle: the one that the law finds
// first is the verdict.
func TestStrictOrder(t *testing.T) {
	tried := sample.Every(t, 29)
	for i, first := range strictFaults {
		t.Run(first.name, func(t *testing.T) {
			t.Parallel()
			for j, second := range strictFaults[i+1:] {
				if !tried.Has(i*len(strictFaults) + j + 1) {
					continue
				}
				r := newRun(t)
				spoil(r, first, second)
				_, err := strict(t, r)
				if checkReject(t, err, first.expected(r)); t.Failed() {
					t.Fatalf("with %q as well", second.name)
				}
			}
		})
	}
}
