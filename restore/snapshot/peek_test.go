package snapshot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/restore/snapshot"
	"github.com/spectrumfs/spectrum/test/harness"
)

// TestPeek: the content of a digest, or nothing; and nothing is made.
func TestPeek(t *testing.T) {
	store := t.TempDir()
	put := func(name, content string) snapshot.Digest {
		d := snapshot.Digest(sha256.Sum256([]byte(name)))
		at := filepath.Join(store, "objects", hex.EncodeToString(d[:1]), hex.EncodeToString(d[:]))
		harness.Must(t, os.MkdirAll(filepath.Dir(at), 0o700))
		harness.Must(t, os.WriteFile(at, []byte(content), 0o600))
		return d
	}
	good, empty, other := put("good", "good"), put("", ""), put("other", "good")
	for _, test := range []struct {
		d    snapshot.Digest
		most int64
		want string
		ok   bool
	}{
		{good, 4, "good", true}, {good, 100, "good", true}, {empty, 0, "", true},
		{good, 3, "", false}, {other, 100, "", false}, {snapshot.Digest{}, 100, "", false},
	} {
		if got, err := snapshot.Peek(store, test.d, test.most); (err == nil) != test.ok || string(got) != test.want {
			t.Errorf("%x, %d: %q, %v", test.d, test.most, got, err)
		}
	}
	nowhere := filepath.Join(store, "nowhere")
	if got, err := snapshot.Peek(nowhere, good, 4); err == nil || got != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Lstat(nowhere); err == nil {
		t.Error("it was made")
	}
}
