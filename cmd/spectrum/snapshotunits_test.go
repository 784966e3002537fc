package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const unitDir = repository + "/contrib/systemd"

var snapshotUnits = []string{"spectrum-snapshot@.service", "spectrum-snapshot@.timer"}

// TestSnapshotUnits: systemd accepts the units, they are installed, and what the
// service runs takes a snapshot and prunes; every 30 minutes, also those that were
// missed (rollback contract, section 4.1).
func TestSnapshotUnits(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	prefix, root := filepath.Join(t.TempDir(), "prefix"), t.TempDir()
	runIn(t, repository, "make", "-s", "install", "PROGRAM="+program, "DESTDIR="+prefix, "PREFIX="+prefix)
	units := filepath.Join(prefix, prefix, "lib/systemd/system")
	if err := os.WriteFile(filepath.Join(root, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	service, err := os.ReadFile(filepath.Join(units, snapshotUnits[0]))
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for line := range strings.Lines(string(service)) {
		words, ok := strings.CutPrefix(line, "ExecStart="+prefix+"/bin/spectrum ")
		if ok {
			must(t, strings.Fields(strings.ReplaceAll(words, "%f", root))...)
			ran++
		}
	}
	if out := must(t, "snapshot", "list", root); ran != 2 || strings.Count(out, " scheduled 1 file ") != 1 {
		t.Errorf("after %d commands: %s", ran, out)
	}
	timer, err := os.ReadFile(filepath.Join(units, snapshotUnits[1]))
	if err != nil || !strings.Contains(string(timer), "\nOnCalendar=*:0/30\n") || !strings.Contains(string(timer), "\nPersistent=true\n") {
		t.Errorf("%v, %s", err, timer)
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	verifyUnits(t, program)
}

// verifyUnits has systemd look at them.
func verifyUnits(t *testing.T, program string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range snapshotUnits {
		raw, err := os.ReadFile(filepath.Join(unitDir, name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(raw), "/usr/local/bin/spectrum", program)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, unit := range []string{"spectrum-snapshot@srv-data.service", "spectrum-snapshot@srv-data.timer"} {
		if out := runIn(t, dir, "systemd-analyze", "verify", "./"+unit); out != "" {
			t.Errorf("systemd says %s", out)
		}
	}
}
