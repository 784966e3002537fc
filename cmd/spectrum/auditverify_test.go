package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerifyBesideCommits: while commits are at work neither the log nor the
// savepoints seem to have lost anything.
func TestVerifyBesideCommits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must := func(args ...string) string {
		t.Helper()
		out, errs, status := spectrum(t, args...)
		if status != 0 {
			t.Errorf("%q: exit %d, %s", args, status, errs)
		}
		return strings.TrimSpace(out)
	}
	if err := os.MkdirAll(filepath.Join(dir, "p/out"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "p/out/a"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	run := filepath.Join(dir, "p/CONTRACTS/_runs/r1")
	must("keygen", "--out", filepath.Join(dir, "key.pem"))
	must("seal", "--key", filepath.Join(dir, "key.pem"), "--run-dir", run, filepath.Join(dir, "p/out"))

	const commits = 8
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range commits {
			root := filepath.Join(dir, fmt.Sprint(n))
			if err := os.Mkdir(root, 0o700); err != nil {
				t.Error(err)
			}
			id := must("preview", "-q", "--restore-root", root, run)
			must("commit", "-q", "--preview", id, "--approve", "Approved: commit the restore preview exactly as proposed.")
		}
	}()
	verified := 0
	for going := true; going; verified++ {
		select {
		case <-done:
			going = false
		default:
		}
		must("audit", "verify", "--json")
	}
	if out := must("audit", "verify"); !strings.HasPrefix(out, fmt.Sprintf("OK %d entries, ", 2*commits)) || !strings.HasSuffix(out, fmt.Sprintf(" %d savepoints", commits)) {
		t.Error(out)
	}
	t.Logf("verified %d times", verified)
}
