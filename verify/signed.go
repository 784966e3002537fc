package verify

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// identity is a validator identity that phase 3 accepted.
type identity struct {
	validatorID string
	public      ed25519.PublicKey
}

// identity is phase 3.
func (e *examination) identity(context.Context) error {
	o := e.artifacts[bundle.Identity].object
	if err := exactFields(bundle.Identity, o, "algorithm", "public_key", "validator_id"); err != nil {
		return err
	}
	if !fieldIs(o, "algorithm", bundle.Algorithm) {
		return rejectField(AlgorithmUnsupported, bundle.Identity, "algorithm", "algorithm is not %q", bundle.Algorithm)
	}
	public := textOf(o, "public_key")
	if !hexdigits.Are(public, 64) {
		return rejectField(KeyInvalid, bundle.Identity, "public_key", "public_key is not 64 lower-case hex digits")
	}
	raw, _ := hex.DecodeString(public)
	e.key = identity{textOf(o, "validator_id"), raw}
	if derived := bundle.ValidatorID(e.key.public); derived != e.key.validatorID {
		return rejectField(IdentityInvalid, bundle.Identity, "validator_id", "validator_id is not the SHA-256 of public_key")
	}
	return nil
}

// payload is phase 5.
func (e *examination) payload(context.Context) error {
	o := e.artifacts[bundle.SignedPayload].object
	if err := exactFields(bundle.SignedPayload, o, "bundle_root", "decision", "validator_id"); err != nil {
		return err
	}
	if e.root != "" && !fieldIs(o, "bundle_root", e.root) {
		reject := rejectField(BundleRootMismatch, bundle.SignedPayload, "bundle_root", "the signed bundle root is not that of the artifacts")
		reject.Details["expected"], reject.Details["actual"] = textOf(o, "bundle_root"), e.root
		return reject
	}
	if !fieldIs(o, "decision", bundle.Accept) {
		return rejectField(DecisionInvalid, bundle.SignedPayload, "decision", "decision is not %q", bundle.Accept)
	}
	return e.sameValidator(bundle.SignedPayload, o)
}

// signature is phase 6.
func (e *examination) signature(context.Context) error {
	o := e.artifacts[bundle.Signature].object
	if err := signatureForm(o); err != nil {
		return err
	}
	if err := e.sameValidator(bundle.Signature, o); err != nil {
		return err
	}
	raw, _ := hex.DecodeString(textOf(o, "signature"))
	payload := e.artifacts[bundle.SignedPayload].object.Value
	if !ed25519.Verify(e.key.public, bundle.Message(payload), raw) {
		return rejectArtifact(SignatureInvalid, bundle.Signature, "the signature does not fit the payload and the key")
	}
	return nil
}

// signatureForm checks the fields of SIGNATURE.json.
func signatureForm(o canonjson.Object) error {
	required := []string{"payload_type", "signature", "validator_id"}
	if name, ok := unknownField(o, append(required, "signed_at")); ok {
		return rejectField(SignatureMalformed, bundle.Signature, name, "field %q is not allowed", name)
	}
	if name, ok := missingField(o, required); ok {
		return rejectField(SignatureIncomplete, bundle.Signature, name, "field %q is missing", name)
	}
	switch {
	case !fieldIs(o, "payload_type", bundle.PayloadType):
		return rejectField(SignatureMalformed, bundle.Signature, "payload_type", "payload_type is not %q", bundle.PayloadType)
	case !hexdigits.Are(textOf(o, "signature"), 128):
		return rejectField(SignatureMalformed, bundle.Signature, "signature", "signature is not 128 lower-case hex digits")
	case !hexdigits.Are(textOf(o, "validator_id"), 64):
		return rejectField(SignatureMalformed, bundle.Signature, "validator_id", "validator_id is not 64 lower-case hex digits")
	}
	return nil
}

func (e *examination) sameValidator(name string, o canonjson.Object) error {
	if fieldIs(o, "validator_id", e.key.validatorID) {
		return nil
	}
	return rejectField(IdentityMismatch, name, "validator_id", "validator_id is not that of %s", bundle.Identity)
}

// exactFields rejects extra fields, then missing ones.
func exactFields(name string, o canonjson.Object, want ...string) error {
	if field, ok := unknownField(o, want); ok {
		return rejectField(FieldExtra, name, field, "field %q is not allowed", field)
	}
	if field, ok := missingField(o, want); ok {
		return rejectField(FieldMissing, name, field, "field %q is missing", field)
	}
	return nil
}

// unknownField returns the first unknown field, in byte order, or false.
func unknownField(o canonjson.Object, known []string) (string, bool) {
	for name := range o.Members() {
		if !slices.Contains(known, name) {
			return name, true
		}
	}
	return "", false
}

// missingField returns the first missing field, or false.
func missingField(o canonjson.Object, want []string) (string, bool) {
	for _, name := range want {
		if _, ok := o.Get(name); !ok {
			return name, true
		}
	}
	return "", false
}

// textOf is the text of a string member, or "".
func textOf(o canonjson.Object, name string) string {
	value, _ := o.Get(name)
	text, _ := value.Text()
	return text
}

func isHexAnyCase(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
