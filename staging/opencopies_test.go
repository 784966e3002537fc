package staging

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestOpenCopies: while files are checked at their names, no program is open for writing, and a
// copy that stayed open is not opened again. At the end, and before an undo, all are closed.
func TestOpenCopies(t *testing.T) {
	for name, fails := range map[string]bool{"commit": false, "undo": true} {
		t.Run(name, func(t *testing.T) {
			sc := newCommitFixture(t, t.TempDir(), []string{"existing/"}, []string{"existing/data", "existing/program", "new/data", "new/program"}, nil)
			for i := range sc.spec.files {
				sc.spec.files[i].Perm = 0o644
				if strings.HasSuffix(sc.spec.files[i].Path.String(), "program") {
					sc.spec.files[i].Perm = 0o755
				}
			}
			checked := 0
			sc.hook = func(path string, n int, f io.ReaderAt) error {
				if n != 2 {
					return nil
				}
				checked++
				for _, kind := range []string{"existing/", "new/"} {
					if isOpenToWrite(t, sc.at(kind+"program")) || !isOpenToWrite(t, sc.at(kind+"data")) {
						t.Errorf("%sdata is closed, or %sprogram is open for writing", kind, kind)
					}
				}
				if fails && path == "new/program" {
					return errWrong
				}
				return nil
			}
			before := take(t, sc.root)
			undone := false
			err := sc.run(func(op, path string, f func() error) error {
				if op == "rename" && path == committedName+newSuffix || op == "unlink" { // after the check, or in an undo
					undone = undone || op == "unlink"
					wantNoneOpen(t, sc)
				}
				return f()
			})
			if checked != 4 || fails != (err != nil) || fails && !undone {
				t.Errorf("%d files were checked: %v", checked, err)
			}
			wantNoneOpen(t, sc)
			if fails {
				sameTree(t, before, sc.root)
			}
		})
	}
}

// isOpenToWrite reports whether a process has a file open for writing: then the kernel grants no
// lease for reading.
func isOpenToWrite(t *testing.T, path string) bool {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	_, err = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	if err != nil && !errors.Is(err, unix.EAGAIN) {
		t.Fatal(err)
	}
	return err != nil
}

// wantNoneOpen requires that no copy is open, in staging or at its name.
func wantNoneOpen(t *testing.T, sc *commitFixture) {
	t.Helper()
	for _, open := range harness.OpenFiles(t, os.Getpid()) {
		if base := filepath.Base(open); strings.HasPrefix(open, sc.root) && (strings.HasPrefix(base, "data") || strings.HasPrefix(base, "program")) {
			t.Errorf("%s is open", open)
		}
	}
}

// TestCopiesBeyondTheLimit: without descriptors to spare every copy is closed, and opened again.
func TestCopiesBeyondTheLimit(t *testing.T) {
	sc := newCommitFixture(t, t.TempDir(), nil, []string{"a", "b"}, nil)
	var spare []*pathsafe.File
	defer func() { must(t, pathsafe.CloseAll(spare)) }()
	d := openRoot(t, t.TempDir())
	f, err := d.CreateFile("f", 0o600)
	must(t, err)
	defer f.Close()
	for lent := f.Lend(nil); lent.Keep(); lent = f.Lend(nil) {
		spare = append(spare, lent)
	}
	sc.hook = func(path string, n int, _ io.ReaderAt) error {
		if n == 2 && isOpenToWrite(t, sc.at(path)) {
			t.Errorf("%s is open", path)
		}
		return nil
	}
	before := take(t, sc.root)
	must(t, sc.commit())
	sc.done(before)
}
