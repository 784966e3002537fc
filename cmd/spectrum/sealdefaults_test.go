package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestSealAtOnce: of several that seal at once for the first time, all sign with the one key
// that one of them makes, each into a run directory of its own.
func TestSealAtOnce(t *testing.T) {
	project := t.TempDir()
	check(t, os.WriteFile(filepath.Join(project, "a.txt"), []byte("alpha"), 0o644))
	const processes = 8
	var all sync.WaitGroup
	outs, errs := make([]string, processes), make([]string, processes)
	for i := range processes {
		cmd := command(t, "seal", "--task", "same", ".")
		cmd.Dir = project
		all.Go(func() {
			var out, said strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &said
			if err := cmd.Run(); err != nil {
				t.Errorf("%v: %s", err, said.String())
			}
			outs[i], errs[i] = strings.TrimSpace(out.String()), said.String()
		})
	}
	all.Wait()
	runs := map[string]bool{}
	for _, run := range outs {
		runs[run] = true
	}
	if made := strings.Count(strings.Join(errs, ""), "made the key"); made != 1 || len(runs) != processes {
		t.Errorf("%d keys and %d run directories: %q", made, len(runs), outs)
	}
	must(t, append([]string{"verify", "--chain"}, outs...)...)
	identities := map[string]bool{}
	for _, run := range outs {
		raw, err := os.ReadFile(filepath.Join(run, "VALIDATOR_IDENTITY.json"))
		check(t, err)
		identities[string(raw)] = true
	}
	if len(identities) != 1 {
		t.Errorf("signed by %d", len(identities))
	}
}

// TestFreeRunDir: a name that is taken is not used, whatever has it.
func TestFreeRunDir(t *testing.T) {
	root := t.TempDir()
	now := time.Date(2026, 3, 4, 5, 6, 7, 89_000_000, time.FixedZone("", 3600))
	const name = "20260304T040607.089Z-t"
	for i, make := range []func(path string) error{
		func(path string) error { return os.MkdirAll(path, 0o755) },
		func(path string) error { return os.Symlink("nowhere", path) },
		func(path string) error { return os.WriteFile(path, nil, 0o644) },
	} {
		want := filepath.Join(root, "CONTRACTS/_runs", name)
		if i > 0 {
			want += fmt.Sprintf("-%d", i+1)
		}
		got := freeRunDir(root, now, "t")
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
		check(t, make(got))
	}
}
