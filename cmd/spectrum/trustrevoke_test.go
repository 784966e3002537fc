package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/terminal"
)

// TestRevokeAsks: on a terminal a revocation asks for its reason and for a word, and anything else
// revokes nothing.
func TestRevokeAsks(t *testing.T) {
	t.Parallel()
	id := strings.Repeat("ab12", 16)
	for name, c := range map[string]struct {
		args   []string
		typed  []string // after each question
		status int
		note   string
	}{
		"the word":           {nil, []string{"key was stolen\r", "revoke\r"}, statusOK, "key was stolen"},
		"the digits":         {nil, []string{"stolen\r", id[:8] + "\r"}, statusOK, "stolen"},
		"all digits, groups": {nil, []string{"stolen\r", inGroups(id) + "\r"}, statusOK, "stolen"},
		"reason with flag":   {[]string{"--reason", "lost"}, []string{"", "revoke\r"}, statusOK, "lost"},
		"no reason":          {nil, []string{"\r"}, statusApproval, ""},
		"no":                 {nil, []string{"stolen\r", "no\r"}, statusApproval, ""},
		"yes":                {nil, []string{"stolen\r", "yes\r"}, statusApproval, ""},
		"Enter":              {[]string{"--reason", "lost"}, []string{"", "\r"}, statusApproval, ""},
		"few digits":         {nil, []string{"stolen\r", id[:7] + "\r"}, statusApproval, ""},
		"other digits":       {nil, []string{"stolen\r", "abababab\r"}, statusApproval, ""},
		"Ctrl-C":             {nil, []string{"stolen\r", "\x03"}, statusInterrupted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			state := t.TempDir() + "/state"
			seat := terminal.Sit(t, 60, 24)
			cmd := command(t, append([]string{"--state-dir", state, "trust", "revoke", id}, c.args...)...)
			cmd.Stdin, cmd.Stderr, cmd.Stdout = seat.Program, seat.Program, nil
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for n, typed := range c.typed {
				if typed == "" {
					continue
				}
				seat.Await(t, "cannot be undone", []string{"reason:", "revoke:"}[n])
				seat.Type(t, typed)
			}
			_ = cmd.Wait()
			said := seat.Hang(t)
			if got := cmd.ProcessState.ExitCode(); got != c.status {
				t.Errorf("exit status %d, want %d:\n%s", got, c.status, said)
			}
			listed := must(t, "--state-dir", state, "trust", "list")
			if (c.status == statusOK) != strings.Contains(listed, id+" revoked ") || !strings.Contains(listed, c.note) {
				t.Errorf("listed: %q\n%s", listed, said)
			}
		})
	}
}

// TestRevokeTypedBefore: what was typed before the questions of a revocation does not answer them.
func TestRevokeTypedBefore(t *testing.T) {
	t.Parallel()
	state, id := t.TempDir()+"/state", strings.Repeat("ab12", 16)
	seat := terminal.Sit(t, 60, 24)
	cmd := command(t, "--state-dir", state, "trust", "revoke", "--reason", "lost", id)
	cmd.Stdin, cmd.Stderr, cmd.Stdout = seat.Program, seat.Program, nil
	seat.Type(t, "revoke\r\x04")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seat.Await(t, "revoke:")
	seat.Type(t, "no\r")
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != statusApproval {
		t.Errorf("exit status %d:\n%s", got, seat.Hang(t))
	}
}

// TestPruneTypedBefore: what was typed before the question removes no snapshot.
func TestPruneTypedBefore(t *testing.T) {
	t.Parallel()
	state := t.TempDir() + "/state"
	for range 2 {
		root := t.TempDir()
		for n := range 2 {
			if err := os.WriteFile(filepath.Join(root, "a"), []byte{byte(n)}, 0o600); err != nil {
				t.Fatal(err)
			}
			must(t, "--state-dir", state, "snapshot", "take", root)
		}
	}
	seat := terminal.Sit(t, 60, 24)
	cmd := command(t, "--state-dir", state, "snapshot", "prune", "--keep-last", "1")
	cmd.Stdin, cmd.Stderr, cmd.Stdout = seat.Program, seat.Program, nil
	seat.Type(t, "y\r\x04")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seat.Await(t, "remove 2 snapshots of 2 restore roots? [y/N]")
	seat.Type(t, "\r")
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != statusApproval {
		t.Errorf("exit status %d:\n%s", got, seat.Hang(t))
	}
}
