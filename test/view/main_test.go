package view

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// raceBinary returns the program with the race detector: that of SPECTRUM_RACE_BIN, or one
// that is built once.
var raceBinary func() (string, error)

func TestMain(m *testing.M) {
	if path, ok := os.LookupEnv(childEnv); ok {
		os.Exit(childMain(path))
	}
	dir, err := os.MkdirTemp("", "view")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	raceBinary = sync.OnceValues(func() (string, error) {
		if binary := os.Getenv("SPECTRUM_RACE_BIN"); binary != "" {
			return binary, nil
		}
		binary := filepath.Join(dir, "spectrum-race")
		out, err := exec.Command("go", "build", "-race", "-o", binary, "github.com/spectrumfs/spectrum/cmd/spectrum").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return binary, err
	})
	code := harness.Main(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// withRace is a mount by the program built with the race detector.
func withRace(t *testing.T) harness.Mounting {
	t.Helper()
	binary, err := raceBinary()
	harness.Must(t, err)
	return harness.Mounting{Binary: binary}
}

// output runs a program that uses a view and returns what it prints.
func output(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v: %s", name, args, err, out)
	}
	return string(out)
}

// sealed is a project with one signed run over a directory, which make fills
// as it likes.
func sealed(t *testing.T, make func(dir string)) *harness.Project {
	t.Helper()
	p := harness.New(t, harness.Files{"seed": "seed\n"})
	tree := p.Source("tree")
	harness.Must(t, os.Mkdir(tree, 0o755))
	make(tree)
	key := filepath.Join(filepath.Dir(p.State), "key.pem")
	dir := filepath.Join(filepath.Dir(p.Runs[0].Dir), "run-tree")
	argv := p.Argv("seal", "-q", "--key", key, "--run-dir", dir, tree)
	git := filepath.Join(tree, ".git")
	if _, err := os.Lstat(git); err == nil { // it is sealed when it is named
		argv = append(argv, git)
	}
	output(t, nil, argv[0], argv[1:]...) // it may take long
	p.Runs = []harness.Run{{ID: filepath.Base(dir), Dir: dir}}
	return p
}

// findings are the lines of the log in which a finding in this file is
// reported, without their times.
func findings(v *harness.View, name string) []string {
	var lines []string
	for line := range strings.Lines(v.Log()) {
		if !strings.Contains(line, "level=ERROR") || !strings.Contains(line, name) {
			continue
		}
		if _, rest, ok := strings.Cut(line, " "); ok && strings.HasPrefix(line, "time=") {
			line = rest
		}
		lines = append(lines, line)
	}
	return lines
}

// unmount runs spectrum umount until the view is unmounted. Another spectrum on this
// machine keeps a view busy while it looks at it, as a rollback looks at all views; any
// other refusal is an error.
func unmount(t *testing.T, p *harness.Project, dir string) {
	t.Helper()
	harness.Eventually(t, "the view can be unmounted", func() bool {
		r := p.Run(t, nil, "umount", dir)
		if r.Status != 0 && !strings.Contains(r.Stderr, ` "spectrum" (fd `) {
			t.Fatal(r)
		}
		return r.Status == 0
	})
}
