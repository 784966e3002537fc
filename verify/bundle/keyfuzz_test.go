package bundle_test

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// pkcs8 is the prefix of the seed of an Ed25519 key in PKCS#8.
var pkcs8 = []byte("\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20")

// FuzzKey reads any bytes as a key file: an accepted file is one PEM block with nothing after it,
// its key belongs to a seed in it, and the saved key is the same. A file in the usual form is
// always accepted.
func FuzzKey(f *testing.F) {
	usual := append(bytes.Clone(pkcs8), goldenSeed[:]...)
	f.Add(usual, "", "")
	f.Add(append(bytes.Clone(usual), 0), "", "")
	f.Add(usual[:47], "text\n", "")
	f.Add(usual, "-----BEGIN PRIVATE KEY-----\n", "")
	f.Add(usual, "", "-----BEGIN PRIVATE KEY-----\n")
	f.Add(bytes.Replace(usual, []byte("\x2b\x65\x70"), []byte("\x2b\x65\x6e"), 1), "", "\n")
	f.Add(append([]byte("\x30\x51\x02\x01\x01"), usual[5:]...), "", "")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, der []byte, before, after string) {
		block := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
		text := before + string(block) + after
		path := filepath.Join(dir, "key.pem")
		must(t, os.WriteFile(path, []byte(text), 0o600))
		key, err := bundle.LoadKey(path)
		isUsual := len(der) == 48 && bytes.HasPrefix(der, pkcs8)
		if before+after == "" && isUsual && err != nil || err != nil && key.ValidatorID() != "" {
			t.Fatalf("%q: %q, %v", text, key.ValidatorID(), err)
		}
		if err == nil {
			checkKey(t, key, text)
		}
	})
}

func checkKey(t *testing.T, key bundle.Key, text string) {
	t.Helper()
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "PRIVATE KEY" || len(rest) > 0 {
		t.Fatalf("%q was taken", text)
	}
	found := false
	for i := 0; i+ed25519.SeedSize <= len(block.Bytes); i++ {
		public := ed25519.NewKeyFromSeed(block.Bytes[i : i+ed25519.SeedSize]).Public().(ed25519.PublicKey)
		found = found || bundle.ValidatorID(public) == key.ValidatorID()
	}
	if !found {
		t.Errorf("%q holds no seed of %s", text, key.ValidatorID())
	}
	saved := filepath.Join(t.TempDir(), "key.pem")
	must(t, key.Save(saved))
	if again, err := bundle.LoadKey(saved); err != nil || again.ValidatorID() != key.ValidatorID() {
		t.Errorf("saved it is %s, %v", again.ValidatorID(), err)
	}
}
