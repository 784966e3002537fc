package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// deepRun is a run that names outputs, none of which is there, with so many directories to each.
func deepRun(t *testing.T, outputs, depth int, with ...map[string]any) *bundletest.Run {
	t.Helper()
	r := bundletest.New(t).Run("run-1", map[string]string{"a": ""})
	hashes := map[string]any{}
	for i := range outputs {
		hashes[fmt.Sprintf("%d/%sf", i, strings.Repeat("d/", depth-1))] = bundletest.Hash("")
	}
	for _, more := range with {
		for name, hash := range more {
			hashes[name] = hash
		}
	}
	r.Edit(bundle.OutputHashes, func(fields map[string]any) { fields["hashes"] = hashes })
	r.Sign()
	return r
}

// TestTooManyDirectories: a run whose outputs are in more directories than real trees have is not
// attested, and that is not a verdict; directories that outputs share count once.
func TestTooManyDirectories(t *testing.T) {
	attempt := func(r *bundletest.Run) error {
		_, err := verify.Attest(t.Context(), openRuns(t, r)[0], verify.Watch{Reread: true})
		return err
	}
	err := attempt(deepRun(t, 60, 1980))
	var reject *verify.Reject
	if !errors.Is(err, verify.ErrDirectories) || errors.As(err, &reject) || !strings.Contains(err.Error(), "more than 100240, to 60") {
		t.Error(err)
	}
	shared := map[string]any{}
	for i := range 100 { // 2,000 directories for all of them
		shared["s/"+strings.Repeat("d/", 1980)+fmt.Sprint(i)] = bundletest.Hash("")
	}
	if err := attempt(deepRun(t, 10, 100, shared)); err != nil {
		t.Error(err)
	}
}

// TestAttestStops: listing directories ends when the caller does not wait any more.
func TestAttestStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := verify.Attest(ctx, openRuns(t, newRun(t))[0], verify.Watch{})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
