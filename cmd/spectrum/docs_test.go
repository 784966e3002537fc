package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/transcript"
)

const repository = "../.."

// TestDocumentedCommands runs every command that README.md and the pages under
// docs/ show, page by page, as it is shown but for the place of /tmp. Where a
// "text" block follows a block of commands it is compared with what they print.
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

// TestContributing: the page for contributors names every lane of the Makefile, its
// commands have targets, and it has no blank to be filled in.
func TestContributing(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		raw, err := os.ReadFile(filepath.Join(repository, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	page := read("CONTRIBUTING.md")
	if blank := regexp.MustCompile(`\b[A-Z]+_(MINUTES|TIME|TABLE)\b`).FindString(page); blank != "" {
		t.Errorf("%s is not filled in", blank)
	}
	lanes := regexp.MustCompile(`scripts/lanes\.sh "make \w+" (.*)`).FindAllStringSubmatch(read("Makefile"), -1)
	if len(lanes) != 2 {
		t.Fatalf("%d lists of lanes in the Makefile", len(lanes))
	}
	for _, lane := range strings.Fields(lanes[0][1] + " " + lanes[1][1]) {
		if lane != "--" && !strings.Contains(page, "\n| `"+lane+"` |") {
			t.Errorf("the lane %s is not described", lane)
		}
	}
	commands := regexp.MustCompile("`(make [^`]*)`").FindAllStringSubmatch(page, -1)
	if len(commands) < 8 {
		t.Errorf("only %d commands: this test no longer finds them", len(commands))
	}
	for _, command := range commands {
		if err := hasTarget(command[1]); err != nil {
			t.Errorf("%s: %v", command[1], err)
		}
	}
}

// TestLanesFindTheirTests: each alternative of a pattern by which the Makefile chooses tests
// matches one. A test that is renamed must not leave its lane unnoticed.
func TestLanesFindTheirTests(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	patterns := regexp.MustCompile(`(?m)^(VIEWS|RACE|NORACE|PAGE) +:= (.*)$`).FindAllStringSubmatch(string(raw), -1)
	if len(patterns) < 6 {
		t.Fatalf("only %d patterns: this test no longer finds them", len(patterns))
	}
	for _, pattern := range patterns {
		for _, one := range strings.Split(strings.ReplaceAll(pattern[2], "$$", "$"), "|") {
			wanted := regexp.MustCompile(one)
			if !slices.ContainsFunc(slices.Collect(maps.Keys(tests)), wanted.MatchString) {
				t.Errorf("%s: no test matches %s", pattern[1], one)
			}
		}
	}
}
