package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestStory: what "make demo" runs tells the story of README.md to its end, leaves nothing
// behind, and does not touch the user's own state.
func TestStory(t *testing.T) {
	out, err := story(t, harness.Binary())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	from := 0
	for _, want := range []string{
		"$ spectrum run ", "agent one: ", "+# lines that begin with # are ignored.", "READY: ", "\nmounted 3 files", "\nrestored 3 files",
		"ok   tests/comments.csv", " M total.sh", "agent two: ", "\nU\ttotal.sh", "\nOK ", "story: done",
	} {
		at := strings.Index(out[from:], want)
		if at < 0 {
			t.Fatalf("no %q after\n%s", want, out[:from])
		}
		from += at
	}
}

// TestReadmeTellsTheStory: the commands that README.md shows in "console" blocks are those of the
// story, in their order.
func TestReadmeTellsTheStory(t *testing.T) {
	readme, script := harness.ReadFile(t, filepath.Join(repository, "README.md")), harness.ReadFile(t, filepath.Join(repository, "examples/agent-review/story.sh"))
	script = strings.ReplaceAll(script, `\$`, "$")
	told := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(readme, -1) {
		for _, command := range regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(block[1], -1) {
			_, rest, found := strings.Cut(script, command[1])
			if !found {
				t.Errorf("after the ones before it the story has no command %s", command[1])
				continue
			}
			script = rest
			told++
		}
	}
	if told < 6 {
		t.Errorf("README.md tells %d commands of the story", told)
	}
}

// TestStoryWhereLittleWorks: where no command can be isolated and nothing can be mounted, the rest
// is told all the same.
func TestStoryWhereLittleWorks(t *testing.T) {
	out, err := story(t, wrapped(t, `case $1 in run | mount) echo "not here" >&2; exit 69 ;; esac; exec %s "$@"`))
	if err != nil || !strings.Contains(out, "agent one: ") || !strings.Contains(out, "restored 3 files") {
		t.Errorf("%v: %.3000s", err, out)
	}
}

// TestStoryNotices: a program that does not do what the story tells ends it.
func TestStoryNotices(t *testing.T) {
	for name, script := range map[string]string{
		"does not commit":         `if [ "$1" = commit ]; then exit 70; fi; exec %s "$@"`,
		"says OK and does less":   `if [ "$1" = commit ]; then echo OK; exit 0; fi; exec %s "$@"`,
		"restores less":           `%s "$@" || exit; if [ "$1" = commit ]; then rm tests/comments.csv; fi`,
		"leaves something behind": `%s "$@" || exit; if [ "$1" = rollback ]; then echo >left; fi`,
		"changes the repository":  `%s "$@" || exit; if [ "$1" = run ]; then echo >>total.sh; fi`,
		"sees no difference":      `if [ "$1" = diff ]; then exit 0; fi; exec %s "$@"`,
		"is none":                 `exit 1`,
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := story(t, wrapped(t, script)); err == nil {
				t.Errorf("the story goes on: %.300s", out)
			}
		})
	}
}

// story plays it with a program, and checks that nothing is left behind.
func story(t *testing.T, program string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	tmp, home := filepath.Join(dir, "tmp"), filepath.Join(dir, "home")
	harness.Must(t, os.Mkdir(tmp, 0o755))
	harness.Must(t, os.Mkdir(home, 0o755))
	cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "examples/agent-review/story.sh"), program)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "HOME="+home, "XDG_STATE_HOME=")
	out, err := cmd.CombinedOutput()
	for _, place := range []string{tmp, home} {
		if left, readErr := os.ReadDir(place); readErr != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, readErr)
		}
	}
	return string(out), err
}

// wrapped is a program that does something else at times: a shell script in which %s is
// the real one.
func wrapped(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spectrum")
	harness.Must(t, os.WriteFile(path, fmt.Appendf(nil, "#!/bin/bash\n"+script+"\n", harness.Binary()), 0o755))
	return path
}
