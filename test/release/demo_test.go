package release

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestDemo: what "make demo" runs goes from the verification to the savepoint, shows that
// the changed copy is rejected, and leaves nothing, nor touches the user's own state.
func TestDemo(t *testing.T) {
	out, err := demo(t, harness.Binary())
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	from := 0
	for _, want := range []string{
		"\nOK ", `HASH_MISMATCH: output "data/stations.csv"`, "# Nightly measurements", "preview_id ", "restored 3 files",
		" 3 files\n", "demo: done",
	} {
		at := strings.Index(out[from:], want)
		if at < 0 {
			t.Fatalf("no %q after\n%s", want, out[:from])
		}
		from += at
	}
}

// TestDemoWithoutMounts: where no file system can be mounted, the rest is shown all the
// same.
func TestDemoWithoutMounts(t *testing.T) {
	out, err := demo(t, wrapped(t, `if [ "$1" = mount ]; then echo "no mounts here" >&2; exit 69; fi; exec -a "$0" %s "$@"`))
	if err != nil || !strings.Contains(out, "left out, no view: cat ") || !strings.Contains(out, "restored 3 files") {
		t.Errorf("%v: %.3000s", err, out)
	}
}

// TestDemoNotices: a program that does not do what the demo shows makes it fail.
func TestDemoNotices(t *testing.T) {
	for name, script := range map[string]string{
		"accepts everything": `if [ "$1" = verify ]; then echo OK; exit 0; fi; exec -a "$0" %s "$@"`,
		"does not commit":    `if [ "$1" = commit ]; then exit 70; fi; exec -a "$0" %s "$@"`,
		"restores less":      `(exec -a "$0" %s "$@") || exit; if [ "$1" = commit ]; then rm -r "$(dirname "$0")"/tmp/*/demo/restore/data; fi`,
		"prints no steps":    `exit 0`,
		"has no sample":      `if [ "$1" = demo ]; then exit 1; fi; exec -a "$0" %s "$@"`,
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := demo(t, wrapped(t, script)); err == nil {
				t.Errorf("the demo passes: %.300s", out)
			}
		})
	}
}

// demo runs the script beside a program, and checks that nothing is left behind.
func demo(t *testing.T, program string) (string, error) {
	t.Helper()
	dir := filepath.Dir(program)
	if program == harness.Binary() {
		dir = t.TempDir()
	}
	tmp, home := filepath.Join(dir, "tmp"), filepath.Join(dir, "home")
	harness.Must(t, os.Mkdir(tmp, 0o755))
	harness.Must(t, os.Mkdir(home, 0o755))
	cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "scripts/demo.sh"), program)
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
