package verify_test

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestLongerWhileHashed: a file that begins with what was signed, and gets one byte more
// while it is hashed, is not the file that was signed.
func TestLongerWhileHashed(t *testing.T) {
	r := newRun(t)
	content := strings.Repeat("0123456789abcdef", 64<<10) // several reads
	must(t, os.WriteFile(at(r, "dist/a"), []byte(content), 0o644))
	r.EditHashes(func(h map[string]any) { h["dist/a"] = bundletest.Hash(content) })
	run := openRuns(t, r)[0]
	_, err := verify.Strict(t.Context(), run, verify.Watch{})
	must(t, err)
	var once sync.Once
	longer := func(int64) {
		once.Do(func() {
			f, err := os.OpenFile(at(r, "dist/a"), os.O_WRONLY|os.O_APPEND, 0)
			if err == nil {
				_, err = f.WriteString("x")
			}
			if err != nil {
				t.Error(err)
				return
			}
			f.Close()
		})
	}
	_, err = verify.Strict(t.Context(), run, verify.Watch{Hashed: longer})
	if reject := rejected(t, err); reject.Code != verify.HashMismatch || reject.Details["path"] != "dist/a" {
		t.Errorf("%v", err)
	}
}
