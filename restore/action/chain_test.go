package action_test

import (
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestChainOrderDecides: of two failures that of the earlier run counts,
// though the later one comes first by name (section 8.4.2).
func TestChainOrderDecides(t *testing.T) {
	s := emptyScene(t, true)
	s.add("z", map[string]string{"of-z": "z"})
	s.add("a", map[string]string{"of-a": "a"})
	a := s.approve()
	must(t, os.WriteFile(s.source("of-z"), []byte("Z"), 0o644))
	must(t, os.Remove(s.source("of-a")))
	want := restore.Failure{Code: restore.StagingHashMismatch, Phase: restore.Execute, Path: "z/of-z"}
	if got := failureOf(t, s.commit(t.Context(), a, nil)); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestRunDirectoryMadeMeanwhile: a chain is never merged into a directory that was made after the
// plan (section 6.3).
func TestRunDirectoryMadeMeanwhile(t *testing.T) {
	s := newScene(t, "chain")
	a := s.approve()
	must(t, os.Mkdir(s.at("run-2"), 0o755))
	before := bundletest.Census(t, s.root)
	want := restore.Failure{Code: restore.TargetPathExists, Phase: restore.Execute, Path: "run-2"}
	if got := failureOf(t, s.commit(t.Context(), a, nil)); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if bundletest.Census(t, s.root) != before {
		t.Error("the refusal left a trace")
	}
}
