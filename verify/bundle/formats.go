package bundle

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// The artifacts of a run directory (SPECTRUM-04), in the order in which the
// law checks them.
const (
	TaskSpec      = "TASK_SPEC.json"
	Status        = "STATUS.json"
	OutputHashes  = "OUTPUT_HASHES.json"
	Proof         = "PROOF.json"
	Identity      = "VALIDATOR_IDENTITY.json"
	SignedPayload = "SIGNED_PAYLOAD.json"
	Signature     = "SIGNATURE.json"
)

// The fixed values of SPECTRUM-04.
const (
	Algorithm    = "ed25519"
	Accept       = "ACCEPT"
	PayloadType  = "BUNDLE"
	HashPrefix   = "sha256:"
	domainPrefix = "CAT-DPT-SPECTRUM-04-v1:BUNDLE:"
)

// MaxSize returns the size limit in bytes for an artifact of this name, for reading and for
// writing.
func MaxSize(name string) int64 {
	switch name {
	case OutputHashes, ChangesFile:
		return 256 << 20
	case BlocksFile:
		return blocktable.MaxSize
	}
	return 16 << 20
}

// Root is the bundle root: the lower-case hex SHA-256 of the canonical JSON of
// {"output_hashes","status","task_spec_hash"} (SPECTRUM-04, "Roots"). taskSpec
// is TASK_SPEC.json as stored, hashes the "hashes" object of
// OUTPUT_HASHES.json, status the whole of STATUS.json.
func Root(taskSpec []byte, hashes, status canonjson.Value) string {
	h := sha256.New()
	writePreimage(h, taskSpec, hashes, status)
	return hex.EncodeToString(h.Sum(nil))
}

// writePreimage writes the input of the hash of [Root]. Writes to a hash do not fail.
func writePreimage(w io.Writer, taskSpec []byte, hashes, status canonjson.Value) {
	_, _ = io.WriteString(w, `{"output_hashes":`)
	_, _ = hashes.WriteTo(w)
	_, _ = io.WriteString(w, `,"status":`)
	_, _ = status.WriteTo(w)
	_, _ = io.WriteString(w, `,"task_spec_hash":"`+hexSum(taskSpec)+`"}`)
}

// ChainRoot is the lower-case hex SHA-256 of the canonical JSON of
// {"bundle_roots","run_ids"}, both in chain order. It fails when a run id
// cannot be written as JSON, since it is not UTF-8.
func ChainRoot(bundleRoots, runIDs []string) (string, error) {
	preimage, err := chainPreimage(bundleRoots, runIDs)
	if err != nil {
		return "", err
	}
	return hexSum(preimage), nil
}

func chainPreimage(bundleRoots, runIDs []string) ([]byte, error) {
	return canonjson.Marshal(map[string][]string{"bundle_roots": bundleRoots, "run_ids": runIDs})
}

// Message returns the signed bytes: the domain prefix and the canonical JSON of the payload
// (SPECTRUM-04, "Roots").
func Message(payload canonjson.Value) []byte {
	return payload.Append([]byte(domainPrefix))
}

// ValidatorID is the lower-case hex SHA-256 of the 32 bytes of a public key.
func ValidatorID(key ed25519.PublicKey) string { return hexSum(key) }

func hexSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// ProofHash is the value that proof_hash must have: SHA-256 over the ASCII
// form of PROOF.json without that field (SPECTRUM-04, PROOF.json).
func ProofHash(proof canonjson.Object) string {
	h := sha256.New()
	_ = proof.Without("proof_hash").WriteASCII(h) // writes to a hash do not fail
	return hex.EncodeToString(h.Sum(nil))
}
