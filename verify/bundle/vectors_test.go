package bundle_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

func hexSHA256(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

func TestValidatorIDVectors(t *testing.T) {
	type vector struct {
		PublicKey   string `json:"public_key"`
		ValidatorID string `json:"validator_id"`
	}
	for _, v := range bundletest.Vectors[vector](t, "validator_id") {
		if got := bundle.ValidatorID(fromHex(t, v.PublicKey)); got != v.ValidatorID {
			t.Errorf("%s: got %s, want %s", v.PublicKey, got, v.ValidatorID)
		}
	}
}

func TestBundleRootVectors(t *testing.T) {
	type vector struct {
		Name            string
		TaskSpecHex     string `json:"task_spec_hex"`
		StatusHex       string `json:"status_hex"`
		OutputHashesHex string `json:"output_hashes_hex"`
		Preimage        string
		BundleRoot      string `json:"bundle_root"`
	}
	for _, v := range bundletest.Vectors[vector](t, "bundle_root") {
		hashes, ok := mustObject(t, string(fromHex(t, v.OutputHashesHex))).Get("hashes")
		if !ok {
			t.Fatalf("%s: no hashes", v.Name)
		}
		taskSpec, status := fromHex(t, v.TaskSpecHex), mustObject(t, string(fromHex(t, v.StatusHex)))
		if got := bundle.Root(taskSpec, hashes, status.Value); got != v.BundleRoot || hexSHA256(v.Preimage) != got {
			t.Errorf("%s: root %s, want %s; of the preimage %s", v.Name, got, v.BundleRoot, hexSHA256(v.Preimage))
		}
		if got := bundle.Preimage(taskSpec, hashes, status.Value); got != v.Preimage {
			t.Errorf("%s: preimage\ngot  %s\nwant %s", v.Name, got, v.Preimage)
		}
	}
}

func TestChainRootVectors(t *testing.T) {
	type vector struct {
		Name        string
		BundleRoots []string `json:"bundle_roots"`
		RunIDs      []string `json:"run_ids"`
		Preimage    string
		ChainRoot   string `json:"chain_root"`
	}
	for _, v := range bundletest.Vectors[vector](t, "chain_root") {
		got, err := bundle.ChainRoot(v.BundleRoots, v.RunIDs)
		if err != nil || got != v.ChainRoot || hexSHA256(v.Preimage) != got {
			t.Errorf("%s: root %s, want %s; of the preimage %s (%v)", v.Name, got, v.ChainRoot, hexSHA256(v.Preimage), err)
		}
		if preimage, err := bundle.ChainPreimage(v.BundleRoots, v.RunIDs); err != nil || string(preimage) != v.Preimage {
			t.Errorf("%s: preimage\ngot  %s\nwant %s (%v)", v.Name, preimage, v.Preimage, err)
		}
	}
}

func TestChainRootOfBadID(t *testing.T) {
	if root, err := bundle.ChainRoot([]string{"r"}, []string{"a\xff"}); err == nil || root != "" {
		t.Errorf("root %q, error %v", root, err)
	}
}

func TestSignatureVectors(t *testing.T) {
	type vector struct {
		PrivateKeyHex string `json:"private_key_hex"`
		PublicKey     string `json:"public_key"`
		Payload       json.RawMessage
		MessageHex    string `json:"message_hex"`
		Signature     string
		Valid         bool
	}
	verdicts := map[bool]int{}
	for i, v := range bundletest.Vectors[vector](t, "signature") {
		payload, err := canonjson.Parse(v.Payload)
		must(t, err)
		message := bundle.Message(payload)
		if !bytes.Equal(message, fromHex(t, v.MessageHex)) {
			t.Errorf("%d: message %q", i, message)
		}
		private := ed25519.NewKeyFromSeed(fromHex(t, v.PrivateKeyHex))
		if hex.EncodeToString(private.Public().(ed25519.PublicKey)) != v.PublicKey {
			t.Errorf("%d: another public key", i)
		}
		if same := hex.EncodeToString(ed25519.Sign(private, message)) == v.Signature; same != v.Valid {
			t.Errorf("%d: signed alike %v, valid %v", i, same, v.Valid)
		}
		if got := ed25519.Verify(fromHex(t, v.PublicKey), message, fromHex(t, v.Signature)); got != v.Valid {
			t.Errorf("%d: verdict %v, want %v", i, got, v.Valid)
		}
		verdicts[v.Valid]++
	}
	if verdicts[true] == 0 || verdicts[false] == 0 {
		t.Errorf("the vectors do not hold both verdicts: %v", verdicts)
	}
}
