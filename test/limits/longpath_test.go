package limits

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// TestPathTooLong: a path that no call of the system takes is a fault of the machine in
// every command that is given one, and nothing is made on the way to it.
func TestPathTooLong(t *testing.T) {
	p := harness.New(t, harness.Small())
	top := t.TempDir()
	long := top + strings.Repeat("/"+strings.Repeat("x", 200), 22)
	run := p.Runs[0].Dir
	for name, args := range map[string][]string{
		"preview": {"preview", "--restore-root", long, run}, "take": {"snapshot", "take", long}, "recover": {"recover", long},
		"project": {"verify", "--project-root", long, run}, "state": {"--state-dir", long, "audit", "show"},
		"demo": {"demo", long}, "keygen": {"keygen", "--out", filepath.Join(long, "key")},
		"seal": {"seal", "--key", filepath.Join(long, "key"), "--run-dir", filepath.Join(p.Dir, "CONTRACTS/_runs/other"), filepath.Join(p.Dir, "out")},
	} {
		r := p.Run(t, nil, args...)
		if r.Status != 74 || !strings.Contains(r.Stderr, "shorter path") {
			t.Errorf("%s: %.300v", name, r)
		}
		if made, err := os.ReadDir(top); err != nil || len(made) > 0 {
			t.Errorf("%s: it left %v, %v", name, made, err)
		}
	}
}
