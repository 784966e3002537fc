package statedir_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
)

// Previews that are made at the same time are stored by all processes that make them: a file that
// another process has stored first is not an error.
func TestPreviewsAreKeptTogether(t *testing.T) {
	const rounds, together = 50, 4
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("same=%v", same), func(t *testing.T) {
			path := t.TempDir() + "/state"
			for round := range rounds {
				id := fmt.Sprintf("%064x", round)
				var all sync.WaitGroup
				errs := make([]error, 2*together)
				for n := range together {
					data := []byte("text")
					if !same {
						data = []byte(strings.Repeat("text", n))
					}
					all.Go(func() {
						d, err := statedir.Open(path)
						if err != nil {
							errs[2*n] = err
							return
						}
						defer d.Close()
						errs[2*n], errs[2*n+1] = d.SaveReport(id, data), d.SavePreview(id, data)
						if same && errs[2*n+1] == nil { // it stays, whichever process is still at work
							kept, err := d.LoadPreview(id)
							if err != nil || !bytes.Equal(kept, data) {
								errs[2*n+1] = fmt.Errorf("kept %q, %w", kept, err)
							}
						}
					})
				}
				all.Wait()
				for _, err := range errs {
					if err != nil {
						t.Fatalf("round %d: %v", round, err)
					}
				}
			}
		})
	}
}
