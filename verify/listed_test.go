package verify_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestListed: what is to be hashed is reported before it is, and what is missing or has no
// plain path counts as nothing. It has no say in the verdict.
func TestListed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(p *bundletest.Project)
		bytes  int64
	}{
		"whole":   {func(*bundletest.Project) {}, 9},
		"missing": {func(p *bundletest.Project) { must(t, os.Remove(filepath.Join(p.Root, "dir/b"))) }, 5},
	} {
		t.Run(name, func(t *testing.T) {
			p := bundletest.New(t)
			run := p.Run("run-1", map[string]string{"a": "alpha", "dir/b": "beta"})
			c.change(p)
			var listed, hashed int64
			watch := verify.Watch{
				Listed: func(files int, bytes int64) {
					if files != 2 || hashed != 0 {
						t.Errorf("%d files, when %d bytes were hashed", files, hashed)
					}
					listed += bytes
				},
				Hashed: func(bytes int64) { hashed += bytes },
			}
			_, err := verify.Strict(t.Context(), openRuns(t, run)[0], watch)
			if listed != c.bytes || (err == nil) != (c.bytes == 9) || err == nil && hashed != 9 {
				t.Errorf("%d bytes listed, %d hashed, %v", listed, hashed, err)
			}
		})
	}
}
