package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/preview"
	tier "github.com/spectrumfs/spectrum/test/sample"
)

// TestLongGoToolchain takes a whole Go toolchain as one run: sealed, mounted,
// compared, used to build a program from the view itself, and committed.
func TestLongGoToolchain(t *testing.T) {
	tier.Need(t, tier.Long)
	goroot := strings.TrimSpace(runIn(t, "", "go", "env", "GOROOT"))
	project, restored := t.TempDir(), t.TempDir()
	runIn(t, "", "cp", "-a", goroot, filepath.Join(project, "go"))
	run := filepath.Join(project, "CONTRACTS", "_runs", "toolchain")
	key := filepath.Join(t.TempDir(), "key.pem")
	must(t, "keygen", "--out", key)
	must(t, "seal", "--key", key, "--run-dir", run, filepath.Join(project, "go"))
	must(t, "verify", run)

	mountpoint := t.TempDir()
	must(t, "mount", "--daemon", "--exec", run, mountpoint)
	t.Cleanup(func() { _ = command(t, "umount", mountpoint).Run() })
	runIn(t, "", "diff", "-r", filepath.Join(goroot, "src"), filepath.Join(mountpoint, "go", "src"))
	buildFromView(t, filepath.Join(mountpoint, "go"))

	id := strings.TrimSpace(must(t, "preview", "--quiet", "--restore-root", restored, run))
	must(t, "commit", "--preview", id, "--approve", preview.Exactly)
	runIn(t, "", "diff", "-r", mountpoint, restored)
	must(t, "umount", mountpoint)
}

// buildFromView builds and runs a program with a toolchain in the view.
func buildFromView(t *testing.T, goroot string) {
	t.Helper()
	dir := t.TempDir()
	source := "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"built from the view\") }\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	cache := "GOCACHE=" + t.TempDir()
	runIn(t, dir, "env", "GOROOT="+goroot, cache, "GOFLAGS=-buildvcs=false", "GO111MODULE=off",
		filepath.Join(goroot, "bin", "go"), "build", "-o", "program", "main.go")
	if out := runIn(t, dir, "./program"); out != "built from the view\n" {
		t.Errorf("the program said %q", out)
	}
}

// must runs the program and requires success.
func must(t *testing.T, args ...string) string {
	t.Helper()
	stdout, stderr, status := spectrum(t, args...)
	if status != 0 {
		t.Fatalf("spectrum %q: exit status %d\n%s", args, status, stderr)
	}
	return stdout
}

// runIn runs a command in a directory and requires success.
func runIn(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%.2000s", name, args, err, out)
	}
	return string(out)
}
