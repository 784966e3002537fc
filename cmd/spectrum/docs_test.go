package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/transcript"
)

const repository = "../.."

// TestDocumentedCommands runs every command that README.md and the pages under
// docs/ show, page by page, as it is shown but for the place of /tmp. Where a
// "text" block follows a block of commands it is held against what they print.
func TestDocumentedCommands(t *testing.T) {
	for _, page := range transcript.Pages(t, repository) {
		t.Run(page.Name, func(t *testing.T) {
			work := workPlace(t)
			env := append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(work, "state"))
			page.Run(t, transcript.Place{Dir: work, Tmp: work, Env: env, Make: hasTarget})
		})
	}
}

// workPlace is a directory with a link to the program in bin.
func workPlace(t *testing.T) string {
	t.Helper()
	work := t.TempDir()
	if err := os.Mkdir(filepath.Join(work, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(work, "bin", "spectrum")); err != nil {
		t.Fatal(err)
	}
	return work
}

// hasTarget makes sure that a shown make command has a target; running it here
// would run this test.
func hasTarget(line string) error {
	cmd := exec.Command("bash", "-c", strings.Replace(line, "make", "make -n", 1))
	cmd.Dir = repository
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// TestReadmeShowsTheDemo holds the README to what the demo prints.
func TestReadmeShowsTheDemo(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := strings.Join(demoSteps("bin/spectrum", "/tmp/demo"), "\n")
	if !strings.Contains(string(raw), "```sh\n"+steps+"\n```") {
		t.Errorf("README.md does not show these commands:\n%s", steps)
	}
}
