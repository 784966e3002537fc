package restore_test

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// 57: each artifact of another valid bundle, of the same key and of another
// one. PROOF.json is not bound and is among the good cases.
func TestHostileMixAndMatch(t *testing.T) {
	harness.TempInMemory(t)
	for _, artifact := range []string{
		bundle.TaskSpec, bundle.Status, bundle.OutputHashes, bundle.SignedPayload, bundle.Signature, bundle.Identity,
	} {
		for _, otherKey := range []bool{false, true} {
			if artifact == bundle.Identity && !otherKey {
				continue // it is the same file
			}
			t.Run(fmt.Sprintf("57 %s, other key %v", artifact, otherKey), func(t *testing.T) {
				s := newScene(t, false, oneRun)
				s.last().WriteRaw(artifact, other(s, otherKey).Read(artifact))
				if got := s.refused(); got.Code != restore.VerifyStrictFailed {
					t.Errorf("%+v", got)
				}
			})
		}
	}
}

// other is another valid bundle, every artifact of which differs.
func other(s *scene, otherKey bool) *bundletest.Run {
	s.t.Helper()
	r := s.Run("other", anotherRun)
	if otherKey {
		copy(r.Seed[:], "another key, for other tests, too")
	}
	r.Edit(bundle.Status, set("completed_at", "2026-02-03T04:05:06Z"))
	r.Sign()
	return r
}

// 62 and 63: what exactly is signed.
func TestHostileMessages(t *testing.T) {
	for _, c := range []struct {
		no      string
		message func(payload canonjson.Value, raw []byte) []byte
		good    bool
	}{
		{"62 without prefix", func(p canonjson.Value, _ []byte) []byte { return p.Append(nil) }, false},
		{"62b chain prefix", func(p canonjson.Value, _ []byte) []byte { return p.Append([]byte("CAT-DPT-SPECTRUM-04-v1:CHAIN:")) }, false},
		{"62c raw bytes", func(_ canonjson.Value, raw []byte) []byte {
			return append([]byte("CAT-DPT-SPECTRUM-04-v1:BUNDLE:"), raw...)
		}, false},
		{"62d the message", func(p canonjson.Value, _ []byte) []byte { return bundle.Message(p) }, true},
	} {
		t.Run(c.no, func(t *testing.T) {
			s := newScene(t, false, anotherRun)
			signMessage(s, c.message)
			if c.good {
				s.mustRestore(anotherRun)
				return
			}
			if got := s.refused(); got.Code != restore.VerifyStrictFailed {
				t.Errorf("%+v", got)
			}
			_, err := s.plan()
			wantVerdict(t, err, verify.SignatureInvalid)
		})
	}
}

func signMessage(s *scene, message func(canonjson.Value, []byte) []byte) {
	s.t.Helper()
	raw := s.last().Read(bundle.SignedPayload)
	payload, err := canonjson.Parse(raw)
	must(s.t, err)
	key := ed25519.NewKeyFromSeed(s.last().Seed[:])
	s.last().Edit(bundle.Signature, set("signature", hex.EncodeToString(ed25519.Sign(key, message(payload, raw)))))
}

// 65: the decision is exactly ACCEPT, however well it is signed.
func TestHostileDecision(t *testing.T) {
	harness.TempInMemory(t)
	for _, decision := range []any{"accept", "ACCEPT ", " ACCEPT", "Accept", "REJECT", "", nil, true, []string{"ACCEPT"}} {
		t.Run(fmt.Sprintf("65 %q", decision), func(t *testing.T) {
			s := newScene(t, false, oneRun)
			s.last().Edit(bundle.SignedPayload, set("decision", decision))
			s.last().SignPayload()
			if got := s.refused(); got.Code != restore.VerifyStrictFailed {
				t.Errorf("%+v", got)
			}
			_, err := s.plan()
			wantVerdict(t, err, verify.DecisionInvalid)
		})
	}
}

// A bundle root of another bundle, signed: the payload is what binds.
func TestHostileRoot(t *testing.T) {
	s := newScene(t, false, oneRun)
	s.last().Edit(bundle.SignedPayload, set("bundle_root", other(s, false).BundleRoot()))
	s.last().SignPayload()
	s.refused()
	_, err := s.plan()
	wantVerdict(t, err, verify.BundleRootMismatch)
}
