package main

import (
	"os"
	"strings"
	"testing"
)

// TestLatestOfRun: "latest" is the candidate that was sealed, not a run directory that the command has
// made in its layer, whatever that is called and however complete it is; nor the layer of a run that
// was not sealed.
func TestLatestOfRun(t *testing.T) {
	r := newRunner(t, os.Getuid(), "p")
	r.spectrum(0, "seal", "--task", "first", "src")
	r.spectrum(0, "run", "--", "sh", "-ec", "echo x > new; cp -r CONTRACTS/_runs/*-first CONTRACTS/_runs/99991231T000000.000Z")
	r.spectrum(1, "diff", "--name-status", "latest")
	if !strings.HasSuffix(r.stdout, "\nA\tnew\n") || !strings.Contains(r.errs, ", over "+r.dir) {
		t.Errorf("%q %q", r.stdout, r.errs)
	}
	r.spectrum(0, "run", "--", "true")
	r.spectrum(statusRunFailed, "run", "--", "mkfifo", "fifo")
	r.spectrum(1, "diff", "--name-status", "latest")
	if !strings.HasSuffix(r.stdout, "\nA\tnew\n") {
		t.Errorf("%q", r.stdout)
	}
}
