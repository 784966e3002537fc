package verify_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// canonicalRun is a run whose artifacts are all written canonically, so that
// hardly a byte is without meaning.
func canonicalRun(t testing.TB) *bundletest.Run {
	t.Helper()
	r := newRun(t)
	r.Edit(bundle.Status, set("n", []any{0.5, 12, nil, true}))
	r.Edit(bundle.Proof, drop("proof_hash"))
	proof, err := canonjson.Parse(r.Read(bundle.Proof))
	must(t, err)
	r.Edit(bundle.Proof, set("proof_hash", proofHashOf(t, string(proof.Append(nil)))))
	for _, name := range []string{bundle.TaskSpec, bundle.Status, bundle.OutputHashes, bundle.Proof} {
		canonicalise(r, name)
	}
	r.Sign()
	r.Edit(bundle.Signature, set("signed_at", "2026-01-02T03:04:05Z"))
	for _, name := range []string{bundle.Identity, bundle.SignedPayload, bundle.Signature} {
		canonicalise(r, name)
	}
	return r
}

func canonicalise(r *bundletest.Run, name string) {
	value, err := canonjson.Parse(r.Read(name))
	must(r.T, err)
	r.WriteRaw(name, value.Append(nil))
}

// unsigned reports whether byte i of an artifact has no meaning for a signature: in
// OUTPUT_HASHES.json all but the member "hashes", in SIGNATURE.json the value of "signed_at", and
// all of PROOF.json.
func unsigned(t testing.TB, name string, raw []byte, i int) bool {
	t.Helper()
	span := func(from, to string) bool {
		begin := bytes.Index(raw, []byte(from))
		end := begin + bytes.Index(raw[begin:], []byte(to)) + len(to)
		if begin < 0 || end <= begin {
			t.Fatalf("%s does not hold %q and %q", name, from, to)
		}
		return begin <= i && i < end
	}
	switch name {
	case bundle.OutputHashes:
		return !span(`"hashes":{`, "}")
	case bundle.Signature:
		return span(`"2026-`, `Z"`)
	}
	return name == bundle.Proof
}

// verdict returns the content of a verified bundle, or the code of its rejection.
func verdict(t testing.TB, run *verify.Run) string {
	t.Helper()
	b, err := verify.Strict(t.Context(), run, verify.Watch{})
	if err != nil {
		return string(rejected(t, err).Code)
	}
	said := "accepted " + b.RunID() + " " + b.Root() + " " + b.ValidatorID()
	for o := range b.Outputs() {
		said += fmt.Sprintf("\n%q %d %s", o.Path(), o.Size(), o.Hash())
	}
	return said
}

// TestEveryBit flips each bit of each artifact. None is accepted, but where no
// signature covers it; and then nothing that is said about the bundle changes.
func TestEveryBit(t *testing.T) {
	tried := sample.Every(t, 37) // odd, so that the sample has every bit of a byte
	for _, name := range strictOrder {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := canonicalRun(t)
			run := openRuns(t, r)[0]
			original, raw := verdict(t, run), r.Read(name)
			if !strings.HasPrefix(original, "accepted") {
				t.Fatal(original)
			}
			codes := map[string]int{}
			for bit := range 8 * len(raw) {
				if !tried.Has(bit + 1) {
					continue
				}
				changed := bytes.Clone(raw)
				changed[bit/8] ^= 1 << (bit % 8)
				r.WriteRaw(name, changed)
				now := verdict(t, run)
				if now == original && unsigned(t, name, raw, bit/8) {
					now = "accepted"
				}
				if strings.Contains(now, "\n") {
					t.Errorf("byte %d, bit %d, to %q: %s", bit/8, bit%8, changed, now)
				}
				codes[now]++
			}
			t.Logf("%d bits: %v", 8*len(raw), codes)
			holds := slices.Contains([]string{bundle.OutputHashes, bundle.Signature, bundle.Proof}, name)
			if found := codes["accepted"] > 0; found && !holds || !found && holds && tried == sample.All || len(codes) == 0 {
				t.Errorf("unsigned bits were found: %v", found)
			}
		})
	}
}

// TestEveryCut cuts each artifact at every length.
func TestEveryCut(t *testing.T) {
	r := canonicalRun(t)
	run := openRuns(t, r)[0]
	tried := sample.Every(t, 19)
	for _, name := range strictOrder {
		raw := r.Read(name)
		for n := range raw {
			if !tried.Has(n + 1) {
				continue
			}
			r.WriteRaw(name, raw[:n])
			if now := verdict(t, run); now != string(verify.ArtifactMalformed) {
				t.Errorf("%s cut to %q: %s", name, raw[:n], now)
			}
		}
		r.WriteRaw(name, raw)
	}
}

// TestEveryOutputBit flips each bit of each output, cuts each, and adds to it.
func TestEveryOutputBit(t *testing.T) {
	contents := map[string]string{"a": "", "b/c": "x", "b/d": "some bytes that are signed"}
	r := bundletest.New(t).Run("run-1", contents)
	run := openRuns(t, r)[0]
	number, tried := 0, sample.Every(t, 7)
	for _, path := range sortedKeys(contents) {
		content := contents[path]
		for _, changed := range mutations(content) {
			if number++; !tried.Has(number) {
				continue
			}
			r.Write(path, changed)
			_, err := verify.Strict(t.Context(), run, verify.Watch{})
			checkReject(t, err, want{verify.HashMismatch, mismatch(path, bundletest.Hash(content), changed)})
		}
		r.Write(path, content)
	}
	_, err := strict(t, r)
	must(t, err)
}

func mutations(content string) []string {
	changed := []string{content + "\x00", content + content + "x", "\x00" + content}
	for i := range content {
		changed = append(changed, content[:i])
		for bit := range 8 {
			raw := []byte(content)
			raw[i] ^= 1 << bit
			changed = append(changed, string(raw))
		}
	}
	return changed
}

// droppedField is the verdict on an artifact without one of its fields; what
// is not listed is bound by the bundle root.
var droppedField = map[string]string{
	bundle.OutputHashes + " generated_at":       "accepted",
	bundle.OutputHashes + " validator_semver":   "accepted",
	bundle.OutputHashes + " validator_build_id": "accepted",
	bundle.OutputHashes + " hashes":             "FIELD_MISSING",
	bundle.Proof + " restoration_result":        "ARTIFACT_MALFORMED", // by its proof_hash
	bundle.Proof + " proof_hash":                "accepted",
	bundle.Identity + " algorithm":              "FIELD_MISSING",
	bundle.Identity + " public_key":             "FIELD_MISSING",
	bundle.Identity + " validator_id":           "FIELD_MISSING",
	bundle.SignedPayload + " bundle_root":       "FIELD_MISSING",
	bundle.SignedPayload + " decision":          "FIELD_MISSING",
	bundle.SignedPayload + " validator_id":      "FIELD_MISSING",
	bundle.Signature + " payload_type":          "SIGNATURE_INCOMPLETE",
	bundle.Signature + " signature":             "SIGNATURE_INCOMPLETE",
	bundle.Signature + " signed_at":             "accepted",
	bundle.Signature + " validator_id":          "SIGNATURE_INCOMPLETE",
}

// TestEveryField drops each field of each artifact, doubles it with the same and with another
// value, renames it, and adds an unknown one.
func TestEveryField(t *testing.T) {
	r := canonicalRun(t)
	run := openRuns(t, r)[0]
	original := verdict(t, run)
	check := func(what, name, changed, want string) {
		t.Helper()
		r.WriteRaw(name, []byte(changed))
		now := verdict(t, run)
		if now == original {
			now = "accepted"
		}
		if now != want {
			t.Errorf("%s %s: %s, want %s", name, what, now, want)
		}
	}
	listed := maps.Clone(droppedField)
	for _, name := range strictOrder {
		raw := r.Read(name)
		var fields map[string]json.RawMessage
		must(t, json.Unmarshal(raw, &fields))
		for _, field := range sortedKeys(fields) {
			member := fmt.Sprintf("%q:%s", field, fields[field])
			others := maps.Clone(fields)
			delete(others, field)
			dropped, err := json.Marshal(others)
			must(t, err)
			want, ok := droppedField[name+" "+field]
			if delete(listed, name+" "+field); !ok {
				want = "BUNDLE_ROOT_MISMATCH"
			}
			check("without "+field, name, string(dropped), want)
			check("with twice "+field, name, "{"+member+","+string(raw[1:]), "ARTIFACT_MALFORMED")
			check("with another "+field, name, fmt.Sprintf(`{%q:null,%s`, field, raw[1:]), "ARTIFACT_MALFORMED")
			check("with a last "+field, name, fmt.Sprintf(`%s,"\u%04x%s":0}`, raw[:len(raw)-1], field[0], field[1:]), "ARTIFACT_MALFORMED")
		}
		r.WriteRaw(name, raw)
		check("with a new field", name, `{"new":1,`+string(raw[1:]), newField(name))
		r.WriteRaw(name, raw)
	}
	if len(listed) > 0 {
		t.Errorf("no artifact has these fields: %v", listed)
	}
}

// newField is the verdict on an artifact with one more field.
func newField(name string) string {
	switch name {
	case bundle.Identity, bundle.SignedPayload:
		return "FIELD_EXTRA"
	case bundle.Signature:
		return "SIGNATURE_MALFORMED"
	case bundle.OutputHashes:
		return "accepted"
	case bundle.Proof:
		return "ARTIFACT_MALFORMED" // by its proof_hash
	}
	return "BUNDLE_ROOT_MISMATCH"
}

// TestLayout writes each artifact anew, with white space and in another order:
// only the bytes of TASK_SPEC.json count.
func TestLayout(t *testing.T) {
	r := canonicalRun(t)
	run := openRuns(t, r)[0]
	original := verdict(t, run)
	for _, name := range strictOrder {
		raw := r.Read(name)
		for _, changed := range []string{" " + string(raw), string(raw) + "\n", relaid(t, raw)} {
			r.WriteRaw(name, []byte(changed))
			if now := verdict(t, run); (now == original) != (name != bundle.TaskSpec) {
				t.Errorf("%s as %q: %s", name, changed, now)
			}
		}
		r.WriteRaw(name, raw)
	}
}

// relaid writes an object's members in descending order, with white space.
func relaid(t testing.TB, raw []byte) string {
	t.Helper()
	var fields map[string]json.RawMessage
	must(t, json.Unmarshal(raw, &fields))
	names := sortedKeys(fields)
	slices.Reverse(names)
	var members []string
	for _, name := range names {
		members = append(members, fmt.Sprintf("\t%q\r\n: %s ", name, fields[name]))
	}
	return "{ " + strings.Join(members, ",") + "}"
}

// TestMixAndMatch takes each artifact from another good bundle, of the same key
// and of another: only the proof is not bound.
func TestMixAndMatch(t *testing.T) {
	r := canonicalRun(t)
	other := r.Project.Run("other", map[string]string{"dist/a": "aaa"})
	other.Edit(bundle.TaskSpec, set("task_id", "other"))
	other.Edit(bundle.Status, set("more", 1))
	other.Edit(bundle.Proof, set("more", 1))
	other.Sign()
	run, original := openRuns(t, r)[0], ""
	original = verdict(t, run)
	for _, seed := range []byte{0, 1} {
		other.Seed[0] ^= seed
		other.Sign()
		for _, name := range strictOrder {
			raw := r.Read(name)
			r.WriteRaw(name, other.Read(name))
			same := name == bundle.Proof || name == bundle.Identity && seed == 0
			if now := verdict(t, run); (now == original) != same {
				t.Errorf("%s of another bundle: %s", name, now)
			}
			r.WriteRaw(name, raw)
		}
	}
}

// TestOtherMessages signs what looks like the message and is not.
func TestOtherMessages(t *testing.T) {
	r := canonicalRun(t)
	run := openRuns(t, r)[0]
	payload := r.Read(bundle.SignedPayload)
	const prefix = "CAT-DPT-SPECTRUM-04-v1:"
	sign := func(message string) string {
		private := ed25519.NewKeyFromSeed(r.Seed[:])
		r.Edit(bundle.Signature, set("signature", fmt.Sprintf("%x", ed25519.Sign(private, []byte(message)))))
		return verdict(t, run)
	}
	if now := sign(prefix + "BUNDLE:" + string(payload)); !strings.HasPrefix(now, "accepted") {
		t.Errorf("the message itself: %s", now)
	}
	for _, message := range []string{
		string(payload), prefix + string(payload), prefix + "CHAIN:" + string(payload), prefix + "BUNDLE:" + string(payload) + "\n", prefix + "bundle:" + string(payload),
		"", prefix + "BUNDLE:", r.BundleRoot(), prefix + "BUNDLE:" + r.BundleRoot(), prefix + "BUNDLE: " + string(payload),
	} {
		if now := sign(message); now != string(verify.SignatureInvalid) {
			t.Errorf("signed %q: %s", message, now)
		}
	}
}
