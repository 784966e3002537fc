package release

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// TestInstall: make install, which also makes the trees of the packages, installs the
// program, its manual, its units and its completion scripts, and nothing else; and make
// uninstall removes all of it.
func TestInstall(t *testing.T) {
	dest := t.TempDir()
	script := func(task string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), filepath.Join(repository, "scripts/install.sh"), task, harness.Binary())
		cmd.Env = append(os.Environ(), "DESTDIR="+dest, "PREFIX=/usr", "SBINDIR=/usr/sbin")
		if _, err := run(cmd); err != nil {
			t.Fatal(err)
		}
	}
	script("install")
	usr := filepath.Join(dest, "usr")
	files, pages := filesBelow(t, usr), 0
	for name, mode := range files {
		want := fs.FileMode(0o644)
		switch {
		case strings.HasPrefix(name, "sbin/"):
			if target, err := os.Readlink(filepath.Join(usr, name)); err != nil || target != "/usr/bin/spectrum" {
				t.Errorf("%s leads to %q, %v", name, target, err)
			}
			continue
		case name == "bin/spectrum":
			want = 0o755
		case strings.HasPrefix(name, "share/man/man"):
			pages++
		case !slices.Contains(installed, name):
			t.Errorf("%s is installed", name)
		}
		if mode != want {
			t.Errorf("%s has mode %v", name, mode)
		}
	}
	for _, name := range append([]string{
		"bin/spectrum", "sbin/mount.spectrum", "sbin/mount.fuse.spectrum",
		"share/man/man1/spectrum.1", "share/man/man1/spectrum-verify.1", "share/man/man8/mount.spectrum.8",
	}, installed...) {
		if _, ok := files[name]; !ok {
			t.Errorf("%s is not installed", name)
		}
	}
	if pages < 20 {
		t.Errorf("%d manual pages", pages)
	}
	if !bytes.Equal(content(t, filepath.Join(usr, "bin/spectrum")), content(t, harness.Binary())) {
		t.Error("another program is installed")
	}
	if unit := content(t, filepath.Join(usr, installed[0])); !bytes.Contains(unit, []byte("\nExecStart=/usr/bin/spectrum mount ")) {
		t.Errorf("the unit runs something else:\n%s", unit)
	}
	script("uninstall")
	if left := filesBelow(t, usr); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// filesBelow are the files below a directory that are not empty, and the links, with
// their modes.
func filesBelow(t *testing.T, dir string) map[string]fs.FileMode {
	t.Helper()
	files := map[string]fs.FileMode{}
	harness.Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil && info.Size() > 0 {
			files[name] = info.Mode()
		}
		return err
	}))
	return files
}
