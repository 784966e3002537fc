package attack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// TestPlaceBeneathARoot checks that a preview of root names the directory, the link and the file of
// another user beneath the restore root, and that a change of one of them makes it stale.
func TestPlaceBeneathARoot(t *testing.T) {
	needRoot(t)
	for name, prepare := range map[string]func(n *neighbourhood, out string) error{
		"directory": func(_ *neighbourhood, out string) error {
			return os.MkdirAll(out, 0o755)
		},
		"link": func(n *neighbourhood, out string) error {
			if err := os.Mkdir(filepath.Join(n.meant, "real"), 0o755); err != nil {
				return err
			}
			return os.Symlink("real", out)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNeighbourhood(t, 0)
			out := filepath.Join(n.meant, "out")
			harness.Must(t, prepare(n, out))
			harness.Must(t, os.Lchown(out, alice, alice))
			args := []string{"preview", "--restore-root", n.meant, n.run}
			if r := n.must(args...); !strings.Contains(r.Stderr, fmt.Sprintf("user %d", alice)) || !strings.Contains(r.Stderr, `"out"`) {
				t.Errorf("the report does not name the %s: %v", name, r)
			}
			s := n.preview(n.meant)
			harness.Must(t, os.Lchown(out, alice+1, alice))
			r := n.spectrum("commit", "--json", "--preview", s.ID, "--approve", s.Approval.Statement)
			if r.Status != 4 || r.Answer.Code != "APPROVAL_STALE" || !strings.Contains(r.Stderr, fmt.Sprintf(`"out" belonged to user %d, and now belongs to user %d`, alice, alice+1)) {
				t.Errorf("the place has another owner: %v", r)
			}
		})
	}
}

// TestPlaceBeneathARootFlips checks that no exchange of a directory beneath the restore root for a link to
// another tree, before any call of a commit, leads the commit out of the root.
func TestPlaceBeneathARootFlips(t *testing.T) {
	needRoot(t)
	n := newNeighbourhood(t, 0)
	out, aside := filepath.Join(n.meant, "out"), filepath.Join(n.meant, "aside")
	harness.Must(t, os.Mkdir(out, 0o755))
	n.becomeTheirs(out)
	n.becomeTheirs(n.meant)
	n.attack("ln -s %s %s", filepath.Join(n.victim, "out"), aside)
	flip := func() {
		harness.Must(t, unix.Renameat2(unix.AT_FDCWD, out, unix.AT_FDCWD, aside, unix.RENAME_EXCHANGE))
	}
	acted := 0
	for s, i := sample.Thin(t, 8, 2), 0; ; i++ {
		id := n.preview(n.meant)
		at, seen, flipped := s.At(i), 0, false
		plan := sysfault.Plan{N: 1, Onward: true, Match: func(c sysfault.Call) bool {
			return strings.HasPrefix(c.Path, n.meant)
		}, Before: func(sysfault.Call) {
			if seen++; seen == at {
				flip()
				flipped = true
			}
		}}
		argv := n.Argv("commit", "--json", "--preview", id.ID, "--approve", id.Approval.Statement)
		argv[0] = n.bin
		ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
		r, err := sysfault.Run(ctx, plan, argv...)
		cancel()
		harness.Must(t, err)
		n.untouched(fmt.Sprintf("exchanged before call %d: %d, %s", at, r.Status, r.Stderr))
		if flipped {
			flip()
			acted++
		}
		if seen < at {
			break
		}
		n.must("recover", n.meant)
		if r.Status == 0 {
			n.must("rollback", n.committedNow(string(r.Stderr)))
		}
	}
	if acted == 0 {
		t.Error("nothing was exchanged")
	}
}
