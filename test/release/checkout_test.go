package release

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const repository = "../.."

// copyOf copies the files of the checkout to a new directory, but for what git
// ignores.
func copyOf(t *testing.T, to string) {
	t.Helper()
	output(t, "rsync", "--recursive", "--links", "--perms", "--exclude=/.git", "--exclude=/.tools", "--filter=:- .gitignore", repository+"/", to+"/")
}

// cloneOf is a fresh clone of the checkout.
func cloneOf(t *testing.T) string {
	t.Helper()
	origin, clone := filepath.Join(t.TempDir(), "origin"), filepath.Join(t.TempDir(), "clone")
	copyOf(t, origin)
	script := `cd "$0" && git init -q && git add -A && git -c user.name=Ada -c user.email=ada@example.org commit -q -m everything && git clone -q . "$1"`
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script, origin, clone)
	cmd.Env = append(empty(t), "GIT_AUTHOR_DATE=2026-02-03T04:05:06Z", "GIT_COMMITTER_DATE=2026-02-03T04:05:06Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return clone
}

// empty is the environment of a new user: a path, and a home with nothing in it. Three variables
// are not empty: what Go has downloaded and compiled is taken from where it is, because it would
// be downloaded again at every run of this test, and compiled for minutes; and modules come from
// where they may. The home has one file, so that Go keeps no records there: in a new home it
// starts a process for them that would outlive the test.
func empty(t *testing.T) []string {
	t.Helper()
	home := t.TempDir()
	records := filepath.Join(home, ".config/go/telemetry")
	if err := os.MkdirAll(records, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(records, "mode"), []byte("off"), 0o644); err != nil {
		t.Fatal(err)
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY"} {
		env = append(env, name+"="+strings.TrimSpace(output(t, "go", "env", name)))
	}
	return env
}

// output runs a command that has to succeed, and returns what it prints.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := run(exec.CommandContext(t.Context(), name, args...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// run runs a command. What it says is in the error.
func run(cmd *exec.Cmd) (string, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%q: %w\n%s%s", cmd.Args, err, &out, &said)
	}
	return out.String(), nil
}
