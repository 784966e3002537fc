package attack

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// ordinary is a victim whom the table of accounts knows: fusermount3 serves no other.
const ordinary = harness.Nobody

// victims runs an attack on root, and on an ordinary user; in a sample on one of the two. The
// attacker is yet another user, or the owner of a directory.
func victims(t *testing.T, attack func(t *testing.T, uid int)) {
	needRoot(t)
	names := map[int]string{0: "root", ordinary: "ordinary"}
	for _, uid := range sample.Pick(t, 1, []int{0, ordinary}) {
		t.Run(names[uid], func(t *testing.T) { attack(t, uid) })
	}
}

// give makes the victim run the program, and the owner of the project, of its state
// directory and of other directories.
func give(t *testing.T, p *harness.Project, uid int, dirs ...string) {
	t.Helper()
	if uid == 0 {
		return
	}
	top := filepath.Dir(p.Dir)
	for _, dir := range append(dirs, top, p.State) {
		own(t, uid, dir)
		for up := filepath.Dir(dir); up != "/" && up != os.TempDir() && up != "/dev/shm"; up = filepath.Dir(up) {
			harness.Must(t, os.Chmod(up, 0o755))
		}
	}
	harness.Must(t, os.Chmod(top, 0o755))
	p.User, p.Program = uid, harness.CopyBinary(t, top)
}

// own makes a user the owner of all in a directory.
func own(t *testing.T, uid int, dir string) {
	t.Helper()
	harness.Must(t, filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, uid, uid))
	}))
}
