package forge_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/forge"
)

// The known answers, as far as they are about what this package makes.
type answers struct {
	CanonicalJSON []struct {
		Name, Input string
		Canonical   string
	} `json:"canonical_json"`
	BundleRoot []struct {
		Name     string
		TaskSpec string `json:"task_spec_hex"`
		Status   string `json:"status_hex"`
		Hashes   string `json:"output_hashes_hex"`
		Root     string `json:"bundle_root"`
	} `json:"bundle_root"`
	ChainRoot []struct {
		Roots []string `json:"bundle_roots"`
		IDs   []string `json:"run_ids"`
		Root  string   `json:"chain_root"`
	} `json:"chain_root"`
	Signature []struct {
		Private   string         `json:"private_key_hex"`
		Payload   map[string]any `json:"payload"`
		Message   string         `json:"message_hex"`
		Signature string         `json:"signature"`
		Valid     bool           `json:"valid"`
	} `json:"signature"`
}

func load(t *testing.T) answers {
	t.Helper()
	raw, err := os.ReadFile("../../testdata/vectors/known-answers.json")
	if err != nil {
		t.Fatal(err)
	}
	var a answers
	if err := json.Unmarshal(raw, &a); err != nil {
		t.Fatal(err)
	}
	if len(a.CanonicalJSON) == 0 || len(a.BundleRoot) == 0 || len(a.ChainRoot) == 0 || len(a.Signature) == 0 {
		t.Fatal("the vectors are not all there")
	}
	return a
}

func TestRoots(t *testing.T) {
	for _, c := range load(t).BundleRoot {
		r := forge.Run{}
		for name, content := range map[string]string{forge.TaskSpec: c.TaskSpec, forge.Status: c.Status, forge.OutputHashes: c.Hashes} {
			r[name] = unhex(t, content)
		}
		if got := r.Root(); got != c.Root {
			t.Errorf("%s: %s, want %s", c.Name, got, c.Root)
		}
	}
	for _, c := range load(t).ChainRoot {
		if got := forge.ChainRoot(c.IDs, c.Roots); got != c.Root {
			t.Errorf("%q: %s, want %s", c.IDs, got, c.Root)
		}
	}
}

func TestSignatures(t *testing.T) {
	n := 0
	for _, c := range load(t).Signature {
		if !c.Valid {
			continue
		}
		message := forge.Message(forge.Canonical(c.Payload))
		if !bytes.Equal(message, unhex(t, c.Message)) {
			t.Errorf("message %q", message)
		}
		if got := ed25519.Sign(ed25519.NewKeyFromSeed(unhex(t, c.Private)), message); !bytes.Equal(got, unhex(t, c.Signature)) {
			t.Errorf("signature %x", got)
		}
		n++
	}
	if n == 0 {
		t.Error("no vector is valid")
	}
}

// TestNewIsGood: a run is what it says, and signing it again changes nothing.
func TestNewIsGood(t *testing.T) {
	r := forge.New(forge.Outputs{"a": "1", "b/c\u00e9\n\U0001f4a1": ""})
	payload := r.Fields(forge.SignedPayload)
	if payload["bundle_root"] != r.Root() {
		t.Errorf("payload %v", payload)
	}
	public, _ := hex.DecodeString(r.Fields(forge.Identity)["public_key"].(string))
	signature, _ := hex.DecodeString(r.Fields(forge.Signature)["signature"].(string))
	if !ed25519.Verify(public, forge.Message(r[forge.SignedPayload]), signature) {
		t.Error("the signature is wrong")
	}
	dir := t.TempDir()
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range forge.Names {
		if raw, err := os.ReadFile(dir + "/" + name); err != nil || !bytes.Equal(raw, r[name]) {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
