package verify

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Code is a verdict of one of the laws. Codes are law: their text is fixed.
type Code string

// OK is the verdict of acceptance.
const OK Code = "OK"

// The codes of SPECTRUM-05 that input can cause. The law lists four more, which this verifier never
// returns: IDENTITY_MULTIPLE and SIGNATURE_MULTIPLE, since a second artifact is ARTIFACT_EXTRA;
// PAYLOAD_MISMATCH, since the payload's fields have codes of their own; and CHAIN_ROOT_MISMATCH,
// since no artifact states a chain root that could differ.
const (
	AlgorithmUnsupported Code = "ALGORITHM_UNSUPPORTED"
	ArtifactExtra        Code = "ARTIFACT_EXTRA"
	ArtifactMalformed    Code = "ARTIFACT_MALFORMED"
	ArtifactMissing      Code = "ARTIFACT_MISSING"
	BundleRootMismatch   Code = "BUNDLE_ROOT_MISMATCH"
	ChainDuplicateRun    Code = "CHAIN_DUPLICATE_RUN"
	ChainEmpty           Code = "CHAIN_EMPTY"
	DecisionInvalid      Code = "DECISION_INVALID"
	FieldExtra           Code = "FIELD_EXTRA"
	FieldMissing         Code = "FIELD_MISSING"
	ForbiddenArtifact    Code = "FORBIDDEN_ARTIFACT" // also SPECTRUM-03
	HashMismatch         Code = "HASH_MISMATCH"      // also SPECTRUM-02
	IdentityInvalid      Code = "IDENTITY_INVALID"
	IdentityMismatch     Code = "IDENTITY_MISMATCH"
	KeyInvalid           Code = "KEY_INVALID"
	OutputMissing        Code = "OUTPUT_MISSING" // also SPECTRUM-02
	RestorationFailed    Code = "RESTORATION_FAILED"
	SerializationInvalid Code = "SERIALIZATION_INVALID"
	SignatureIncomplete  Code = "SIGNATURE_INCOMPLETE"
	SignatureInvalid     Code = "SIGNATURE_INVALID"
	SignatureMalformed   Code = "SIGNATURE_MALFORMED"
)

// The codes of SPECTRUM-02 section 5 that SPECTRUM-05 does not have.
const (
	BundleIncomplete        Code = "BUNDLE_INCOMPLETE"
	StatusNotSuccess        Code = "STATUS_NOT_SUCCESS"
	CMP01NotPass            Code = "CMP01_NOT_PASS"
	ValidatorUnsupported    Code = "VALIDATOR_UNSUPPORTED"
	ValidatorBuildIDMissing Code = "VALIDATOR_BUILD_ID_MISSING"
	ValidatorBuildMismatch  Code = "VALIDATOR_BUILD_MISMATCH"
)

// The codes of SPECTRUM-03 section 6.3 that SPECTRUM-02 does not have.
const (
	InvalidChainReference Code = "INVALID_CHAIN_REFERENCE"
	ChainOrderViolation   Code = "CHAIN_ORDER_VIOLATION"
)

// Reject is the verdict of rejection. It is an error; read it with errors.As. Any other error
// of this package means that no verdict was reached: the work was interrupted, or this machine
// failed.
type Reject struct {
	Code    Code
	Message string            // for people
	RunID   string            // the run at fault in a chain, else ""
	Details map[string]string // "artifact", "field", "path", "expected", "actual": the subject of the code
}

func (r *Reject) Error() string {
	if r.RunID != "" {
		return fmt.Sprintf("%s: run %q: %s", r.Code, r.RunID, r.Message)
	}
	return fmt.Sprintf("%s: %s", r.Code, r.Message)
}

// JSON is the reject format of SPECTRUM-05 and SPECTRUM-03 section 6.2 as
// canonical JSON. Bytes of a file's name that are not UTF-8 become U+FFFD: a
// verdict can always be written.
func (r *Reject) JSON() ([]byte, error) {
	details := make(map[string]string, len(r.Details))
	for name, value := range r.Details {
		details[name] = validText(value)
	}
	out := map[string]any{"code": r.Code, "message": validText(r.Message), "details": details, "ok": false}
	if r.RunID != "" {
		out["run_id"] = validText(r.RunID)
	}
	if path, ok := details["path"]; ok {
		out["path"] = path
	}
	return canonjson.Marshal(out)
}

func validText(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

// in returns r as the verdict on one run of a chain.
func (r *Reject) in(runID string) *Reject {
	return &Reject{Code: r.Code, Message: r.Message, RunID: runID, Details: maps.Clone(r.Details)}
}

func rejectArtifact(code Code, name, format string, args ...any) *Reject {
	return &Reject{
		Code:    code,
		Message: label(name) + ": " + fmt.Sprintf(format, args...),
		Details: map[string]string{"artifact": name},
	}
}

// label returns the name of an artifact for a message, quoted if it is not plain.
func label(name string) string {
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

func rejectField(code Code, artifact, field, format string, args ...any) *Reject {
	r := rejectArtifact(code, artifact, format, args...)
	r.Details["field"] = field
	return r
}
