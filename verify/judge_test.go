package verify_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"

	"github.com/spectrumfs/spectrum/test/plainjson"
	"github.com/spectrumfs/spectrum/verify"
)

// This file is a second implementation of SPECTRUM-05 strict, from the document alone: over a run
// directory in memory, with the plain JSON parser, and without any of the product's packages except
// for the names of the codes.

// node is the entry at a name. A link of an output leads to another output of the same directory,
// or out of it.
type node struct {
	kind kind
	data string // content, or the target of a link
}

type kind byte

const (
	file kind = iota
	dirNode
	fifoNode
	linkNode
)

// folder is a run directory with the outputs of its project.
type folder struct {
	entries map[string]node // of the run directory
	outputs map[string]node // by path
}

// fields are the members of a JSON object.
type fields = map[string]any

// sentence is the verdict of the law on a folder: a code, or OK with what was signed.
type sentence struct {
	code   verify.Code
	root   string
	id     string
	hashes fields
}

// judge applies the ten phases in their order.
func judge(f *folder) sentence {
	if code := presence(f); code != verify.OK {
		return sentence{code: code}
	}
	objects := map[string]fields{}
	for _, name := range lawOrder {
		tree, err := plainjson.Parse([]byte(f.entries[name].data))
		object, ok := tree.(fields)
		if err != nil || !ok || f.entries[name].kind != file {
			return sentence{code: verify.ArtifactMalformed}
		}
		objects[name] = object
	}
	s := sentence{code: verify.OK}
	for _, phase := range []func() verify.Code{
		func() verify.Code { return judgeIdentity(objects[lawIdentity], &s) },
		func() verify.Code { return judgeRoot(f, objects, &s) },
		func() verify.Code { return judgePayload(objects[lawPayload], &s) },
		func() verify.Code { return judgeSignature(objects, &s) },
		func() verify.Code { return judgeProof(objects[lawProof]) },
		func() verify.Code { return judgeForbidden(f) },
		func() verify.Code { return judgeOutputs(f, s.hashes) },
		func() verify.Code { return judgeStatus(objects[lawStatus]) },
	} {
		if code := phase(); code != verify.OK {
			return sentence{code: code}
		}
	}
	return s
}

// The artifacts, as the law names them.
const (
	lawTask      = "TASK_SPEC.json"
	lawStatus    = "STATUS.json"
	lawHashes    = "OUTPUT_HASHES.json"
	lawProof     = "PROOF.json"
	lawIdentity  = "VALIDATOR_IDENTITY.json"
	lawPayload   = "SIGNED_PAYLOAD.json"
	lawSignature = "SIGNATURE.json"
)

var lawOrder = []string{lawTask, lawStatus, lawHashes, lawProof, lawIdentity, lawPayload, lawSignature}

func presence(f *folder) verify.Code {
	for _, name := range lawOrder {
		if _, ok := f.entries[name]; !ok {
			return verify.ArtifactMissing
		}
	}
	for name := range f.entries {
		for _, exact := range []string{lawIdentity, lawPayload, lawSignature} {
			stem := exact[:len(exact)-len(".json")]
			if name != exact && strings.HasPrefix(name, stem) && strings.HasSuffix(name, ".json") {
				return verify.ArtifactExtra
			}
		}
	}
	return verify.OK
}

// exactly reports fields beyond the required and optional ones, and missing required ones.
func exactly(object fields, required []string, optional ...string) (extra, missing bool) {
	for name := range object {
		extra = extra || !slices.Contains(required, name) && !slices.Contains(optional, name)
	}
	for _, name := range required {
		_, ok := object[name]
		missing = missing || !ok
	}
	return extra, missing
}

func isLowerHex(v any, n int) bool {
	s, _ := v.(string)
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == n
}

func hexOf(data string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(data))) }

func judgeIdentity(o fields, s *sentence) verify.Code {
	extra, missing := exactly(o, []string{"algorithm", "public_key", "validator_id"})
	switch {
	case extra:
		return verify.FieldExtra
	case missing:
		return verify.FieldMissing
	case o["algorithm"] != "ed25519":
		return verify.AlgorithmUnsupported
	case !isLowerHex(o["public_key"], 64):
		return verify.KeyInvalid
	}
	raw, _ := hex.DecodeString(o["public_key"].(string))
	if s.id = hexOf(string(raw)); o["validator_id"] != s.id {
		return verify.IdentityInvalid
	}
	return verify.OK
}

func judgeRoot(f *folder, objects map[string]fields, s *sentence) verify.Code {
	value, ok := objects[lawHashes]["hashes"]
	if !ok {
		return verify.FieldMissing
	}
	hashes, ok := value.(fields)
	if !ok {
		return verify.ArtifactMalformed
	}
	for _, hash := range hashes {
		if _, ok := hash.(string); !ok {
			return verify.ArtifactMalformed
		}
	}
	s.hashes = hashes
	s.root = rootOf(f.entries[lawTask].data, hashes, objects[lawStatus])
	return verify.OK
}

// rootOf is the bundle root.
func rootOf(task string, hashes, status any) string {
	return hexOf(plainjson.Canonical(fields{"output_hashes": hashes, "status": status, "task_spec_hash": hexOf(task)}))
}

func judgePayload(o fields, s *sentence) verify.Code {
	extra, missing := exactly(o, []string{"bundle_root", "decision", "validator_id"})
	switch {
	case extra:
		return verify.FieldExtra
	case missing:
		return verify.FieldMissing
	case o["bundle_root"] != s.root:
		return verify.BundleRootMismatch
	case o["decision"] != "ACCEPT":
		return verify.DecisionInvalid
	case o["validator_id"] != s.id:
		return verify.IdentityMismatch
	}
	return verify.OK
}

func judgeSignature(objects map[string]fields, s *sentence) verify.Code {
	o := objects[lawSignature]
	extra, missing := exactly(o, []string{"payload_type", "signature", "validator_id"}, "signed_at")
	switch {
	case extra:
		return verify.SignatureMalformed
	case missing:
		return verify.SignatureIncomplete
	case o["payload_type"] != "BUNDLE" || !isLowerHex(o["signature"], 128) || !isLowerHex(o["validator_id"], 64):
		return verify.SignatureMalformed
	case o["validator_id"] != s.id:
		return verify.IdentityMismatch
	}
	public, _ := hex.DecodeString(objects[lawIdentity]["public_key"].(string))
	signature, _ := hex.DecodeString(o["signature"].(string))
	if !ed25519.Verify(public, messageOf(objects[lawPayload]), signature) {
		return verify.SignatureInvalid
	}
	return verify.OK
}

func messageOf(payload fields) []byte {
	return []byte("CAT-DPT-SPECTRUM-04-v1:BUNDLE:" + plainjson.Canonical(payload))
}

func judgeProof(o fields) verify.Code {
	if text, _ := o["proof_hash"].(string); isLowerHex(strings.ToLower(text), 64) && len(text) == 64 {
		others := maps.Clone(o)
		delete(others, "proof_hash")
		if strings.ToLower(text) != hexOf(onlyASCII(plainjson.Canonical(others))) {
			return verify.ArtifactMalformed
		}
	}
	value, ok := o["restoration_result"]
	if !ok {
		return verify.FieldMissing
	}
	if result, _ := value.(fields); result["verified"] != true {
		return verify.RestorationFailed
	}
	return verify.OK
}

// onlyASCII escapes what lies outside of U+0020 to U+007E.
func onlyASCII(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c <= '~':
			b.WriteRune(c)
		case c < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		}
	}
	return b.String()
}

func judgeForbidden(f *folder) verify.Code {
	for _, name := range []string{"logs", "tmp", "transcript.json"} {
		if _, ok := f.entries[name]; ok {
			return verify.ForbiddenArtifact
		}
	}
	return verify.OK
}

func judgeOutputs(f *folder, hashes fields) verify.Code {
	for _, path := range slices.Sorted(maps.Keys(hashes)) {
		content, ok := f.content(path)
		if !ok {
			return verify.OutputMissing
		}
		if hashes[path] != "sha256:"+hexOf(content) {
			return verify.HashMismatch
		}
	}
	return verify.OK
}

// content is that of an output, through a link if it is one.
func (f *folder) content(path string) (string, bool) {
	n, ok := f.outputs[path]
	if n.kind == linkNode {
		n, ok = f.outputs[path[:strings.LastIndexByte(path, '/')+1]+n.data]
	}
	return n.data, ok && n.kind == file
}

func judgeStatus(o fields) verify.Code {
	if o["status"] != "success" || o["cmp01"] != "pass" {
		return verify.DecisionInvalid
	}
	return verify.OK
}
