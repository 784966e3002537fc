package release

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// installed is what make install puts below PREFIX beside the program and its manual.
var installed = []string{
	"lib/systemd/system/spectrum-view@.service",
	"lib/systemd/system/spectrum-snapshot@.service",
	"lib/systemd/system/spectrum-snapshot@.timer",
	"share/bash-completion/completions/spectrum",
	"share/zsh/site-functions/_spectrum",
	"share/fish/vendor_completions.d/spectrum.fish",
}

// shared is what the package has below /usr, and the archive too.
var shared = append(slices.Clone(installed),
	"share/doc/spectrum/README.md",
	"share/doc/spectrum/docs/guide.md",
	"share/doc/spectrum/copyright",
	"share/doc/spectrum/third-party.txt",
)

func (r released) program() string { return filepath.Join(r.tree, "usr/bin/spectrum") }

// debianPackage: what dpkg will be told, and nothing that it would run or ask about.
func (r released) debianPackage(t *testing.T) {
	control := t.TempDir()
	output(t, "dpkg-deb", "-e", r.deb, control)
	if names := namesIn(t, control); !slices.Equal(names, []string{"control", "md5sums"}) {
		t.Errorf("it has %q", names)
	}
	for field, want := range map[string]string{
		"Package": "spectrum", "Version": r.version + "-1", "Architecture": strings.TrimSpace(output(t, "dpkg", "--print-architecture")),
		"Recommends": "fuse3", "Depends": "", "Section": "admin",
	} {
		if got := strings.TrimSpace(output(t, "dpkg-deb", "-f", r.deb, field)); got != want {
			t.Errorf("%s: %q, not %q", field, got, want)
		}
	}
	cmd := exec.CommandContext(t.Context(), "md5sum", "--check", "--quiet", "--strict", filepath.Join(control, "md5sums"))
	cmd.Dir = r.tree
	if _, err := run(cmd); err != nil {
		t.Error(err)
	}
	listed := strings.Split(strings.TrimSpace(output(t, "env", "TZ=UTC", "dpkg-deb", "-c", r.deb)), "\n")
	for _, line := range listed {
		if !entry.MatchString(line) {
			t.Errorf("in the package: %s", line)
		}
	}
	if len(listed) < 60 {
		t.Errorf("only %q", listed)
	}
}

// entry is what a line of the contents of the package may be: everything belongs to root, no
// other user can write it, only the program can be run, and all of it is as old as the commit.
var entry = regexp.MustCompile(`^(drwxr-xr-x root/root +0 2026-02-03 04:05 \./(usr/.*/|usr/)?` +
	`|-rw-r--r-- root/root +\d+ 2026-02-03 04:05 \./usr/(share|lib)/\S+` +
	`|-rwxr-xr-x root/root +\d+ 2026-02-03 04:05 \./usr/bin/spectrum` +
	`|lrwxrwxrwx root/root +0 2026-02-03 04:05 \./usr/sbin/mount\.(fuse\.)?spectrum -> \.\./bin/spectrum)$`)

// installed: what the package puts on a machine works.
func (r released) installed(t *testing.T) {
	for _, name := range shared {
		if info, err := os.Stat(filepath.Join(r.tree, "usr", name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	unit := content(t, filepath.Join(r.tree, "usr", installed[0]))
	if !bytes.Contains(unit, []byte("\nExecStart=/usr/bin/spectrum mount ")) {
		t.Errorf("the unit runs something else:\n%s", unit)
	}
	r.pages(t)
	r.runs(t)
}

// pages: the manual is of the day and the version of the release.
func (r released) pages(t *testing.T) {
	t.Helper()
	for _, name := range []string{"man1/spectrum.1", "man1/spectrum-verify.1", "man8/mount.spectrum.8", "man8/mount.fuse.spectrum.8"} {
		raw, err := gzip.NewReader(bytes.NewReader(content(t, filepath.Join(r.tree, "usr/share/man", name+".gz"))))
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(raw)
		if err != nil || !bytes.Contains(page, []byte(` 2026-02-03 "spectrum `+r.version+`" `)) || !raw.ModTime.IsZero() {
			t.Errorf("%s: %v, %v:\n%s", name, err, raw.ModTime, page)
		}
	}
}

// runs: the program says what it is, needs no library, knows nothing of where it was
// built, and does its work, also as the helper of mount(8).
func (r released) runs(t *testing.T) {
	t.Helper()
	if out := output(t, r.program(), "version"); out != "spectrum "+r.version+"\n" {
		t.Errorf("it says %q", out)
	}
	binary, err := elf.Open(r.program())
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("it is not linked statically")
		}
	}
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	raw := content(t, r.program())
	for _, place := range []string{filepath.Dir(filepath.Dir(r.dir)), filepath.Join(home, "go"), strings.TrimSpace(output(t, "go", "env", "GOROOT")) + "/src"} {
		if bytes.Contains(raw, []byte(place)) {
			t.Errorf("it knows %s", place)
		}
	}
	project, state := filepath.Join(t.TempDir(), "demo"), "--state-dir="+t.TempDir()
	output(t, r.program(), state, "demo", project)
	run := filepath.Join(project, "project/CONTRACTS/_runs/run-001")
	output(t, r.program(), state, "verify", run)
	output(t, filepath.Join(r.tree, "usr/sbin/mount.spectrum"), "-f", run, filepath.Join(project, "view"))
}
