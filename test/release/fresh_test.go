package release

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/transcript"
)

// TestFreshMachine: in a fresh clone, in an empty environment, the commands that
// README.md begins with work, and so does every other one that it and the pages
// under docs/ show, with the outputs that are shown. Of make only "make demo" is run,
// which builds; the others must have their targets.
func TestFreshMachine(t *testing.T) {
	sample.Need(t, sample.Sweep)
	clone := cloneOf(t)
	built := false
	for _, page := range transcript.Pages(t, clone) {
		t.Run(page.Name, func(t *testing.T) {
			env := empty(t)
			call := func(line string) error {
				if line != "make demo" {
					line = strings.Replace(line, "make", "make -n", 1)
				}
				built = built || line == "make demo"
				cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
				cmd.Dir, cmd.Env = clone, env
				_, err := run(cmd)
				return err
			}
			page.Run(t, transcript.Place{Dir: clone, Tmp: t.TempDir(), Env: env, Make: call})
		})
		if !built {
			t.Fatal("the first page does not say how the program is built")
		}
	}
	if changed := output(t, "git", "-C", clone, "status", "--porcelain"); changed != "" {
		t.Errorf("the clone is other than before:\n%s", changed)
	}
}
