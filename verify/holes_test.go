package verify_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestTooManyHoles: a run of which more is holes than is hashed is rejected before
// anything is, by every law that reads outputs, and never by a verdict.
func TestTooManyHoles(t *testing.T) {
	for name, sizes := range map[string][]int64{
		"one hole": {1 << 43}, "one byte more": {verify.MaxHoles + 1<<20},
		"several holes": {verify.MaxHoles / 2, verify.MaxHoles / 2, 1 << 20},
	} {
		outputs := map[string]string{"a": "a"}
		for i := range sizes {
			outputs["holes/"+string(rune('a'+i))] = ""
		}
		r := bundletest.New(t).Run("run-1", outputs)
		for i, size := range sizes {
			must(t, os.Truncate(at(r, "holes/"+string(rune('a'+i))), size))
		}
		hashed := int64(0)
		watch := verify.Watch{Hashed: func(n int64) { hashed += n }}
		run := openRuns(t, r)[0]
		_, err := verify.Strict(t.Context(), run, watch)
		checkHoles(t, name, err)
		_, err = verify.Gate(t.Context(), run, watch)
		checkHoles(t, name+" in a restore", err)
		checkHoles(t, name+" by SPECTRUM-02", verify.Resume(t.Context(), run, "", watch))
		if hashed > 0 {
			t.Errorf("%s: %d bytes were hashed", name, hashed)
		}
	}
}

// TestTooManyHolesAttested: the same limit applies to outputs that are read one by one, and nothing
// is hashed beyond it. An output that is not read further does not count.
func TestTooManyHolesAttested(t *testing.T) {
	r := bundletest.New(t).Run("run-1", map[string]string{"a": "a", "b": "", "c": "ccc"})
	must(t, os.Truncate(at(r, "b"), 1<<43))
	must(t, os.Truncate(at(r, "c"), 3<<20))
	a, err := attest(t, r)
	must(t, err)
	whole := func(ctx context.Context, i int) error {
		f, st, err := a.Output(i).OpenSource()
		must(t, err)
		defer f.Close()
		_, err = a.Output(i).Whole(ctx, f, st.Size)
		return err
	}
	checkHoles(t, "one hole", whole(t.Context(), 1))
	must(t, whole(t.Context(), 0))
	verify.AddHoles(a, verify.MaxHoles-1<<20)
	checkHoles(t, "several holes", whole(t.Context(), 2))
	must(t, whole(t.Context(), 0))
	verify.AddHoles(a, -verify.MaxHoles/2)
	for range 3 {
		if err := whole(t.Context(), 2); err == nil || errors.Is(err, verify.ErrHoles) || !strings.Contains(err.Error(), "its SHA-256 is") {
			t.Error(err)
		}
	}
	must(t, os.Truncate(at(r, "c"), verify.MaxHoles/2-1<<20))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 3 {
		if err := whole(ctx, 2); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func checkHoles(t *testing.T, what string, err error) {
	t.Helper()
	var reject *verify.Reject
	if !errors.Is(err, verify.ErrHoles) || errors.As(err, &reject) {
		t.Errorf("%s: %v", what, err)
	}
}

// TestSparseOutputs: files with holes in all places are what was signed, or not, as
// the same files without holes are.
func TestSparseOutputs(t *testing.T) {
	const size = 3<<20 + 5
	for name, places := range map[string][]int64{
		"nothing but a hole": {}, "at the beginning": {0}, "at the end": {size - 1}, "in the middle": {1 << 20},
		"everywhere": {0, 200_000, 1 << 20, 1<<20 + 70_000, 2 << 20, size - 1},
	} {
		content := make([]byte, size)
		for _, place := range places {
			content[place] = 'x'
		}
		sum := sha256.Sum256(content)
		r := bundletest.New(t).Run("run-1", map[string]string{"a": "a"})
		must(t, os.Remove(at(r, "a")))
		f, err := os.Create(at(r, "a"))
		must(t, err)
		must(t, f.Truncate(size))
		for _, place := range places {
			_, err := f.WriteAt([]byte("x"), place)
			must(t, err)
		}
		must(t, f.Close())
		r.WriteJSON(bundle.OutputHashes, map[string]any{"validator_semver": "1.1.0", "validator_build_id": "git:abc1234", "generated_at": "2026-01-02T03:04:05Z",
			"hashes": map[string]any{"a": bundle.HashPrefix + hex.EncodeToString(sum[:])}})
		r.Sign()
		run := openRuns(t, r)[0]
		if _, err := verify.Strict(t.Context(), run, verify.Watch{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for what, change := range map[string]func() error{
			"longer": func() error { return os.Truncate(at(r, "a"), size+1) }, "shorter": func() error { return os.Truncate(at(r, "a"), size-1) },
		} {
			must(t, change())
			if _, err := verify.Strict(t.Context(), run, verify.Watch{}); err == nil || !strings.Contains(err.Error(), string(verify.HashMismatch)) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
			must(t, os.Truncate(at(r, "a"), size))
		}
	}
}
