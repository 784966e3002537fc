package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestAdopted has an ordinary user write a snapshot with a set-id file of alice elsewhere: the
// copy belongs to the user, grants no more than before, and both outputs name it.
func TestAdopted(t *testing.T) {
	needRoot(t)
	n := newNeighbourhood(t, bob)
	source := filepath.Join(n.meant, "strange")
	harness.Must(t, os.WriteFile(source, []byte("strange"), 0o644))
	harness.Must(t, os.Chown(source, alice, alice))
	harness.Must(t, unix.Chmod(source, 0o6764))
	id := n.snapshot(n.meant)
	for name, args := range map[string][]string{"to": {"snapshot", "restore", id, "--to"}, "export": {"snapshot", "export", id}} {
		for _, form := range []string{"text", "--json"} {
			dir := filepath.Join(n.top, "kept", name+form)
			full := append(append([]string(nil), args...), dir)
			if form == "--json" {
				full = append(full, form)
			}
			r := n.must(full...)
			if form == "--json" && !strings.Contains(r.Stdout, `"adopted":["strange"]`) || form == "text" && !strings.Contains(r.Stderr, "strange belongs to this user now") {
				t.Errorf("the adopted file is not named: %v", r)
			}
			var st unix.Stat_t
			harness.Must(t, unix.Stat(filepath.Join(dir, "strange"), &st))
			if st.Uid != bob || st.Gid != bob || st.Mode&0o7777&^0o744 != 0 {
				t.Errorf("%s: user %d, group %d, mode %04o", dir, st.Uid, st.Gid, st.Mode&0o7777)
			}
		}
	}
}
