package forge

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// The seven artifacts, in the order of the law.
const (
	TaskSpec      = "TASK_SPEC.json"
	Status        = "STATUS.json"
	OutputHashes  = "OUTPUT_HASHES.json"
	Proof         = "PROOF.json"
	Identity      = "VALIDATOR_IDENTITY.json"
	SignedPayload = "SIGNED_PAYLOAD.json"
	Signature     = "SIGNATURE.json"
)

// Names are the seven artifacts, in the order of the law.
var Names = []string{TaskSpec, Status, OutputHashes, Proof, Identity, SignedPayload, Signature}

// Fields are the members of a JSON object.
type Fields = map[string]any

// A Run is the content of a run directory: raw bytes by file name.
type Run map[string][]byte

// Outputs are the files that a run signs: content by path below the project.
type Outputs map[string]string

// New is a good run over these outputs, signed with Key(1).
func New(outputs Outputs) Run {
	hashes := Fields{}
	for path, content := range outputs {
		hashes[path] = Hash(content)
	}
	r := Run{}
	r.Set(TaskSpec, Fields{"task_id": "task", "inputs": []any{}, "expected_outputs": []any{}, "constraints": Fields{}, "created_at": "2026-01-02T03:04:05Z"})
	r.Set(Status, Fields{"status": "success", "cmp01": "pass", "completed_at": "2026-01-02T03:04:05Z", "error": nil})
	r.Set(OutputHashes, Fields{"validator_semver": "1.1.0", "validator_build_id": "git:abc1234", "generated_at": "2026-01-02T03:04:05Z", "hashes": hashes})
	r.Set(Proof, Fields{"restoration_result": Fields{"verified": true}})
	r.Sign(Key(1))
	return r
}

// Key is a key that is public: its seed is 32 times the byte n.
func Key(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

// Hash is the value that OUTPUT_HASHES.json has for this content.
func Hash(content string) string { return "sha256:" + digest([]byte(content)) }

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// Set writes an artifact in canonical form. It does not sign.
func (r Run) Set(name string, fields Fields) { r[name] = Canonical(fields) }

// Edit changes an artifact's fields. It does not sign.
func (r Run) Edit(name string, change func(Fields)) {
	fields := r.Fields(name)
	change(fields)
	r.Set(name, fields)
}

// Fields are the members of an artifact that is a JSON object.
func (r Run) Fields(name string) Fields {
	fields := Fields{}
	dec := json.NewDecoder(bytes.NewReader(r[name]))
	dec.UseNumber()
	if err := dec.Decode(&fields); err != nil {
		panic(fmt.Sprintf("forge: %s: %v: %.100q", name, err, r[name]))
	}
	return fields
}

// Sign writes identity, payload and signature for the first three artifacts as
// they are.
func (r Run) Sign(key ed25519.PrivateKey) {
	r.SignRoot(r.Root(), key)
}

// Root is the bundle root of the first three artifacts as they are.
func (r Run) Root() string {
	return Root(r[TaskSpec], r.Fields(OutputHashes)["hashes"], r.Fields(Status))
}

// Root is the bundle root of these (SPECTRUM-04).
func Root(taskSpec []byte, hashes, status any) string {
	return digest(Canonical(Fields{"output_hashes": hashes, "status": status, "task_spec_hash": digest(taskSpec)}))
}

// ChainRoot is the root of these runs, in their order (SPECTRUM-04).
func ChainRoot(runIDs, roots []string) string {
	return digest(Canonical(Fields{"bundle_roots": roots, "run_ids": runIDs}))
}

// ProofHash is the proof_hash of a proof with these fields.
func ProofHash(fields Fields) string {
	others := Fields{}
	for name, value := range fields {
		if name != "proof_hash" {
			others[name] = value
		}
	}
	return digest(ascii(others))
}

// SignRoot writes identity, payload and signature for any bundle root.
func (r Run) SignRoot(root string, key ed25519.PrivateKey) {
	public := key.Public().(ed25519.PublicKey)
	r.Set(Identity, Fields{"algorithm": "ed25519", "public_key": hex.EncodeToString(public), "validator_id": digest(public)})
	r.Set(SignedPayload, Fields{"bundle_root": root, "decision": "ACCEPT", "validator_id": digest(public)})
	r.SignPayload(key)
}

// SignPayload signs the payload as it is.
func (r Run) SignPayload(key ed25519.PrivateKey) {
	r.SetSignature(ed25519.Sign(key, Message(Canonical(r.Fields(SignedPayload)))), key)
}

// SetSignature writes SIGNATURE.json with these bytes for a signature.
func (r Run) SetSignature(signature []byte, key ed25519.PrivateKey) {
	r.Set(Signature, Fields{
		"payload_type": "BUNDLE",
		"signature":    hex.EncodeToString(signature),
		"validator_id": digest(key.Public().(ed25519.PublicKey)),
	})
}

// Message is what is signed for a payload in canonical form.
func Message(payload []byte) []byte {
	return append([]byte("CAT-DPT-SPECTRUM-04-v1:BUNDLE:"), payload...)
}

// Write makes the run directory, with its parents.
func (r Run) Write(dir string) error { return writeAll(dir, r) }

// Write makes the files below a project root, with their parents.
func (o Outputs) Write(project string) error {
	files := map[string][]byte{}
	for path, content := range o {
		files[path] = []byte(content)
	}
	return writeAll(project, files)
}

func writeAll(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
