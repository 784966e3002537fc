package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLibraryPage builds the program of docs/library.md as a module of its own, to
// which internal packages are closed, and runs it on the demo.
func TestLibraryPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo := filepath.Join(dir, "demo")
	if _, stderr, status := spectrum(t, "demo", demo); status != 0 {
		t.Fatal(stderr)
	}
	run, view := filepath.Join(demo, "project/CONTRACTS/_runs/run-001"), filepath.Join(demo, "view")
	cmd := exec.CommandContext(t.Context(), buildLibraryPage(t, dir), filepath.Join(demo, "project"), run, filepath.Join(demo, "restore"), view)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for _, want := range []string{"verified: run-001 signed by ", "planned: 3 files, 578 bytes", "mounted: " + view} {
		if !lines.Scan() || !strings.HasPrefix(lines.Text(), want) {
			t.Errorf("%q, not %q", lines.Text(), want)
		}
	}
	compareTrees(t, filepath.Join(demo, "project/report"), filepath.Join(view, "report"))
	if _, err := os.Stat(filepath.Join(view, "RESTORE_MANIFEST.json")); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(view); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// buildLibraryPage builds the one Go program that the page shows.
func buildLibraryPage(t *testing.T, dir string) (program string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, "docs", "library.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "```go\n")
	source, _, ok := strings.Cut(rest, "```\n")
	if !ok || strings.Contains(rest, "```go\n") {
		t.Fatal("the page does not show one program")
	}
	root, err := filepath.Abs(repository)
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	const name = "github.com/spectrumfs/spectrum"
	mod := "module example\n\ngo 1.26.5\n\nrequire " + name + " v0.0.0\n\nreplace " + name + " => " + root + "\n"
	for file, text := range map[string]string{"main.go": source, "go.mod": mod, "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-mod=mod", "-o", "example", ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "example")
}

func compareTrees(t *testing.T, a, b string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "diff", "-r", a, b).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
