package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// TestHolesArePolicy: a run of which too much is holes is rejected with exit status 5
// and no code of a law, and nothing is hashed.
func TestHolesArePolicy(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("huge", map[string]string{"huge": "small"})
	check(t, os.Truncate(filepath.Join(project.Root, "huge"), 1<<43))
	root := t.TempDir()
	for _, args := range [][]string{
		{"verify", run.Dir}, {"verify", "--law", "resume", run.Dir}, {"preview", "--restore-root", root, run.Dir}, {"ls", run.Dir}, {"commit", "--restore-root", root, run.Dir},
	} {
		stdout, stderr, status := spectrum(t, append(args, "--json")...)
		if status != statusPolicy || !strings.Contains(stdout, `"code":"CANDIDATE_TOO_SPARSE"`) || strings.Contains(stdout, "OUTPUT") {
			t.Errorf("%q: %d %s%s", args, status, stdout, stderr)
		}
	}
}

// TestHolesAreNotLatest: "latest" leads past a run that is rejected.
func TestHolesAreNotLatest(t *testing.T) {
	project := bundletest.New(t)
	project.Run("good", map[string]string{"good": "good"})
	project.Run("zz-huge", map[string]string{"huge": "small"})
	check(t, os.Truncate(filepath.Join(project.Root, "huge"), 1<<43))
	v := mountAll(t, project)
	if raw, err := os.ReadFile(v.at("latest/good")); err != nil || string(raw) != "good" {
		t.Errorf("%q, %v", raw, err)
	}
	if raw, err := os.ReadFile(v.at("zz-huge", rejectedFile)); err != nil || !strings.Contains(string(raw), `"code":"CANDIDATE_TOO_SPARSE"`) {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestHolesStopNobody: in a view of all runs one that is rejected, or takes minutes,
// stops neither the others nor latest.
func TestHolesStopNobody(t *testing.T) {
	project := bundletest.New(t)
	project.Run("good", map[string]string{"good": "good"})
	project.Run("slow", map[string]string{"slow": "small"})
	project.Run("zz-huge", map[string]string{"huge": "small"}) // the newest by its name
	check(t, os.Truncate(filepath.Join(project.Root, "slow"), verify.MaxHoles))
	check(t, os.Truncate(filepath.Join(project.Root, "huge"), 1<<43))
	v := mountAll(t, project)
	if got := names(t, v.at("zz-huge")); len(got) != 1 || got[0] != rejectedFile {
		t.Errorf("the huge run shows %q", got)
	}
	latest := func() {
		t.Helper()
		if latest, err := os.Readlink(v.at("latest")); err != nil || latest != "good" || v.state("slow") != "verifying" {
			t.Errorf("latest is %q, %v, while the slow one is %q", latest, err, v.state("slow"))
		}
	}
	latest() // no other reader has asked for the slow one
	entered := make(chan struct{})
	go func() {
		_, _ = os.ReadDir(v.at("slow")) // until the view is gone
		close(entered)
	}()
	harness.Eventually(t, "the slow one is at work", func() bool { return v.state("slow") == "verifying" })
	raw, err := os.ReadFile(v.at("good/good"))
	if err != nil || string(raw) != "good" || v.state("slow") != "verifying" {
		t.Errorf("%q, %v, while the slow one is %q", raw, err, v.state("slow"))
	}
	latest()
	if said, err := v.stop(os.Interrupt); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	<-entered
}
