package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInstall: every file is where it belongs, below DESTDIR, and says where it
// is without it.
func TestInstall(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	dest := filepath.Join(t.TempDir(), "a destination")
	install := []string{"-s", "install", "PROGRAM=" + program, "DESTDIR=" + dest, "PREFIX=/opt/spectrum"}
	for range 2 { // the second time over the first
		runIn(t, repository, "sh", append([]string{"-c", `umask 077; exec make "$@"`, "make"}, install...)...)
	}
	for _, name := range helperNames {
		if to, err := os.Readlink(filepath.Join(dest, "sbin", name)); err != nil || to != "/opt/spectrum/bin/spectrum" {
			t.Errorf("%s leads to %q, %v", name, to, err)
		}
	}
	installed := filepath.Join(dest, "opt/spectrum/bin/spectrum")
	if out := runIn(t, "", installed, "version"); !strings.HasPrefix(out, "spectrum ") {
		t.Errorf("it says %q", out)
	}
	unit, err := os.ReadFile(filepath.Join(dest, "opt/spectrum/lib/systemd/system", filepath.Base(unitFile)))
	if err != nil || !strings.Contains(string(unit), "\nExecStart=/opt/spectrum/bin/spectrum mount ") {
		t.Errorf("%v, %s", err, unit)
	}
	if out := runIn(t, dest, "find", ".", "-mindepth", "1", "-type", "d", "!", "-perm", "755"); out != "" {
		t.Errorf("directories that some users may not enter: %s", out)
	}
	names := filesBelow(t, dest)
	for _, name := range []string{
		"man/man1/spectrum.1", "man/man1/spectrum-verify.1", "man/man8/mount.spectrum.8", "man/man8/mount.fuse.spectrum.8",
		"bash-completion/completions/spectrum", "zsh/site-functions/_spectrum", "fish/vendor_completions.d/spectrum.fish",
	} {
		if !slices.Contains(names, "opt/spectrum/share/"+name) {
			t.Errorf("%s is not installed", name)
		}
	}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(dest, name))
		if want := modeOf(name); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, not %v, %v", name, info.Mode(), want, err)
		}
	}
}

// TestUninstall: what was installed goes, and nothing else, also when the program
// that was built is gone.
func TestUninstall(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	dest := t.TempDir()
	task := func(what, program string) {
		runIn(t, repository, "make", "-s", what, "PROGRAM="+program, "DESTDIR="+dest, "PREFIX=/opt", "SBINDIR=/opt/sbin")
	}
	task("install", program)
	foreign := []string{"opt/bin/spectrumctl", "opt/lib/systemd/system/spectrum.service", "opt/sbin/mount.fuse.spectrum", "opt/share/man/man1/spectrum-analyser.1"}
	for _, name := range foreign {
		path := filepath.Join(dest, name)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) { // a link would be followed
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("theirs\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	task("uninstall", "none/spectrum")
	if diff := cmp.Diff(foreign, filesBelow(t, dest)); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
	task("uninstall", "none/spectrum")
}

// filesBelow are the files below a directory.
func filesBelow(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			names = append(names, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// modeOf is the mode that an installed file has to have, whatever the umask is.
func modeOf(name string) fs.FileMode {
	switch filepath.Base(filepath.Dir(name)) {
	case "bin":
		return 0o755
	case "sbin":
		return fs.ModeSymlink | 0o777
	default:
		return 0o644
	}
}

// TestStatusesOfManual: the manual has the exit statuses that the README has.
func TestStatusesOfManual(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, statuses, _ := strings.Cut(string(readme), "\n| exit status | meaning |\n")
	statuses, _, _ = strings.Cut(statuses, "\n\n")
	var shown, documented []int
	for _, number := range regexp.MustCompile(`(?m)^\| ((?:\d+, )*\d+) \|`).FindAllStringSubmatch(statuses, -1) {
		for status := range strings.SplitSeq(number[1], ", ") {
			n, err := strconv.Atoi(status)
			if err != nil {
				t.Fatal(err)
			}
			documented = append(documented, n)
		}
	}
	for _, row := range exitStatus.Rows {
		n, err := strconv.Atoi(row.Term)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, n)
	}
	if !slices.Equal(shown, documented) || len(shown) < 9 {
		t.Errorf("the manual has %d, the README %d", shown, documented)
	}
}
