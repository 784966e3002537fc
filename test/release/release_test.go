package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
)

// TestRelease builds a release twice, of the same sources: in a fresh clone, where
// git says what version it is; and in a plain copy elsewhere, for which the builder
// has to say it, with another umask, time zone and language, and with settings of Go
// that would make another program. Every file has to have the same bytes. Then it
// looks into what was made.
func TestRelease(t *testing.T) {
	sample.Need(t, sample.Sweep)
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("dpkg-deb is not installed")
	}
	clone := cloneOf(t)
	first := build(t, clone, "umask 022; make -s release")
	stamps := empty(t)
	for variable, what := range map[string]string{"VERSION": "version", "SOURCE_DATE_EPOCH": "epoch"} {
		stamps = append(stamps, variable+"="+strings.TrimSpace(output(t, filepath.Join(clone, "scripts/stamp.sh"), what)))
	}
	elsewhere := filepath.Join(t.TempDir(), "some where else", "with a longer name")
	if err := os.MkdirAll(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	copyOf(t, elsewhere)
	second := build(t, elsewhere, "umask 077; make -s release", append(stamps,
		"TZ=Asia/Kathmandu", "LC_ALL=C.UTF-8", "GOAMD64=v3", "GOFLAGS=-tags=other", "CGO_ENABLED=1")...)
	compare(t, first, second)
	unstamped := exec.CommandContext(t.Context(), filepath.Join(elsewhere, "scripts/stamp.sh"), "version")
	unstamped.Env = empty(t)
	if out, err := run(unstamped); err == nil || !strings.Contains(err.Error(), "set VERSION") {
		t.Errorf("without git the version is %q, %v", out, err)
	}

	r := open(t, first)
	t.Run("checksums", r.checksums)
	t.Run("package", r.debianPackage)
	t.Run("installed", r.installed)
	t.Run("archive", r.archive)
	t.Run("contents", r.contents)
	t.Run("lintian", r.lintian)
}

// build runs a command that makes a release, and returns the directory of what was
// made: for the architecture of this machine, in the long tests for all.
func build(t *testing.T, dir, command string, env ...string) string {
	t.Helper()
	if sample.Now() < sample.Long {
		command += " ARCHES=" + runtime.GOARCH
	}
	if env == nil {
		env = empty(t)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command)
	cmd.Dir, cmd.Env = dir, append(env, "TMPDIR="+t.TempDir())
	if _, err := run(cmd); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "bin", "release")
}

// compare requires two directories to have the same files.
func compare(t *testing.T, first, second string) {
	t.Helper()
	names := namesIn(t, first)
	if others := namesIn(t, second); !slices.Equal(names, others) || len(names) < 4 {
		t.Errorf("%q, and then %q", names, others)
	}
	for _, name := range names {
		a, b := content(t, filepath.Join(first, name)), content(t, filepath.Join(second, name))
		if !bytes.Equal(a, b) {
			t.Errorf("%s: %d bytes with %x, and then %d with %x", name, len(a), sha256.Sum256(a), len(b), sha256.Sum256(b))
		}
	}
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func content(t *testing.T, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// released is a release for this machine, unpacked.
type released struct {
	dir, version   string
	deb, bom       string // files
	tree, unpacked string // what is in the package, and in the archive
}

// open unpacks a release. cloneOf has made the commit on a day of its own.
func open(t *testing.T, dir string) released {
	t.Helper()
	archive := only(t, filepath.Join(dir, "spectrum_*_linux_"+runtime.GOARCH+".tar.gz"))
	r := released{
		dir:  dir,
		deb:  only(t, filepath.Join(dir, "spectrum_*_"+runtime.GOARCH+".deb")),
		bom:  only(t, filepath.Join(dir, "spectrum_*_linux_"+runtime.GOARCH+".spdx.json")),
		tree: t.TempDir(), unpacked: t.TempDir(),
	}
	r.version = strings.Split(filepath.Base(archive), "_")[1]
	if !strings.HasPrefix(r.version, "0.0.0+20260203.g") || strings.HasSuffix(r.version, ".dirty") {
		t.Errorf("the version is %q", r.version)
	}
	output(t, "dpkg-deb", "-x", r.deb, r.tree)
	output(t, "tar", "-C", r.unpacked, "-xzf", archive)
	return r
}

// only is the one file of a pattern.
func only(t *testing.T, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %q, %v", pattern, names, err)
	}
	return names[0]
}

// checksums: SHA256SUMS has every file, and is right.
func (r released) checksums(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sha256sum", "--check", "--strict", "SHA256SUMS")
	cmd.Dir = r.dir
	out, err := run(cmd)
	if err != nil || strings.Count(out, ": OK\n") != len(namesIn(t, r.dir))-1 {
		t.Errorf("%v: %s", err, out)
	}
}

// archive: it holds the program of the package, and what goes with it.
func (r released) archive(t *testing.T) {
	top := filepath.Join(r.unpacked, "spectrum-"+r.version+"-linux-"+runtime.GOARCH)
	if !bytes.Equal(content(t, filepath.Join(top, "bin/spectrum")), content(t, r.program())) {
		t.Error("the archive has another program than the package")
	}
	for _, name := range append(shared, "share/man/man1/spectrum.1", "share/man/man8/mount.spectrum.8", "share/doc/spectrum/CHANGELOG.md") {
		if info, err := os.Stat(filepath.Join(top, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// contents: what is said to be in the program is what was linked into it.
func (r released) contents(t *testing.T) {
	var doc struct {
		Name     string
		Packages []struct {
			Name      string
			Checksums []struct{ ChecksumValue string }
		}
		CreationInfo struct{ Created string }
	}
	if err := json.Unmarshal(content(t, r.bom), &doc); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range doc.Packages {
		names = append(names, p.Name)
	}
	if !slices.Contains(names, "github.com/spf13/cobra") || slices.Contains(names, "pgregory.net/rapid") {
		t.Errorf("packages: %q", names)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256(content(t, r.program()))); doc.Packages[0].Checksums[0].ChecksumValue != want {
		t.Errorf("it is of %+v, not of the program in the package, %s", doc.Packages[0], want)
	}
	if doc.CreationInfo.Created != "2026-02-03T04:05:06Z" {
		t.Errorf("created %s", doc.CreationInfo.Created)
	}
}

// lintian finds no error, where it is installed. It takes as long as all the rest.
func (r released) lintian(t *testing.T) {
	sample.Need(t, sample.Long)
	lintian, err := exec.LookPath("lintian")
	if err != nil {
		t.Skip("lintian is not installed")
	}
	out, err := exec.CommandContext(t.Context(), lintian, "--fail-on", "error", r.deb).CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
