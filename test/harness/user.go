package harness

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Nobody is a user without rights, and the group of that name; root ignores mode bits.
const Nobody = 65534

// AsNobody is for a process that Nobody runs.
func AsNobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: Nobody, Gid: Nobody}}
}

// WithoutRights runs a function without root's power over files, in all of this process.
// No test may run beside it.
func WithoutRights(t testing.TB, do func()) {
	t.Helper()
	Must(t, syscall.Setresuid(-1, Nobody, -1))
	defer func() { Must(t, syscall.Setresuid(-1, 0, -1)) }()
	do()
}

// LetOthersIn opens the way to a directory, from the temporary directory on, for every
// user.
func LetOthersIn(t testing.TB, dir string) {
	t.Helper()
	for ; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		Must(t, os.Chmod(dir, 0o755))
	}
}

// GiveToNobody makes Nobody the owner of a directory and of all beneath it.
func GiveToNobody(t testing.TB, dir string) {
	t.Helper()
	GiveAll(t, dir, Nobody)
}

// GiveTo has an ordinary user run the program from now on, with a copy of the binary in this
// directory, where he may go. He owns what is in the project and its state directory.
func (p *Project) GiveTo(t testing.TB, user int, dir string) {
	t.Helper()
	p.User, p.Program = user, CopyBinary(t, dir)
	for _, top := range []string{p.Dir, p.State} {
		GiveAll(t, top, user)
	}
	made, err := p.makes()
	Must(t, err)
	p.made = made
}

// GiveAll makes a user the owner of a directory and of all beneath it.
func GiveAll(t testing.TB, dir string, user int) {
	t.Helper()
	Must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, user, user))
	}))
}

// CopyBinary copies the binary under test into a directory, where every user may run it,
// and returns its path. One that is there already is left.
func CopyBinary(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "spectrum")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	content := []byte(ReadFile(t, binary))
	syscall.ForkLock.RLock() // a child of another test would hold it open to write to, and none could run it
	err := os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	Must(t, err)
	Must(t, os.Chmod(path, 0o755))
	return path
}

// OwnerOf returns the user whom a file belongs to.
func OwnerOf(t testing.TB, path string) int {
	t.Helper()
	st, err := os.Lstat(path)
	Must(t, err)
	return int(st.Sys().(*syscall.Stat_t).Uid) //nolint:forcetypeassert // on Linux it is one
}
