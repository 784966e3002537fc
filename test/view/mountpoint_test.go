package view

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// TestMountpointRejected: where a view must not be it is rejected with a reason,
// and nothing is mounted. A dead view is in TestKillWhileReading.
func TestMountpointRejected(t *testing.T) {
	p := harness.New(t, harness.Small())
	v := p.Mount(t, harness.Mounting{})
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"full/x", "project/inside"} {
		harness.Must(t, os.MkdirAll(at(name), 0o755))
	}
	harness.Must(t, os.WriteFile(at("file"), nil, 0o644))
	harness.Must(t, unix.Mkfifo(at("fifo"), 0o644))
	harness.Must(t, os.Symlink("full", at("to full")))
	harness.Must(t, os.Symlink("nowhere", at("dangling")))
	inside, run, state := p.Source("inside"), filepath.Join(p.Runs[0].Dir, "inside"), filepath.Join(p.State, "inside")
	for _, d := range []string{inside, run, state} {
		harness.Must(t, os.Mkdir(d, 0o700))
	}
	harness.Must(t, os.Symlink(inside, at("to inside")))
	before := table(t)
	for place, reason := range map[string]string{
		at("full"):        "not empty",
		at("to full"):     at("full"),
		at("file"):        "not a directory",
		at("fifo"):        "not a directory",
		at("nothing"):     "no such file",
		at("dangling"):    "no such file",
		v.Dir:             "already mounted there",
		v.Path("new"):     "not empty",
		inside:            "overlaps the project root",
		at("to inside"):   "overlaps the project root",
		run:               "overlaps",
		state:             "overlaps the state directory",
		filepath.Dir(dir): "not empty",
		"/":               "already mounted there",
		"":                "no such file",
	} {
		r := p.Run(t, nil, "mount", p.Runs[0].Dir, place)
		if r.Status != 1 || !strings.Contains(r.Stderr, reason) {
			t.Errorf("%q: %v, want %q", place, r, reason)
		}
	}
	if after := table(t); after != before {
		t.Errorf("something was mounted:\n%s\nbefore:\n%s", after, before)
	}
}

// table is the part of the mount table that has views of this test.
func table(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("/proc/self/mountinfo")
	harness.Must(t, err)
	var lines []string
	for line := range strings.Lines(string(raw)) {
		if strings.Contains(line, t.Name()) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

// TestMountpointThroughLink: the real path is named, by the program and in the
// mount table, and the link may be used for it.
func TestMountpointThroughLink(t *testing.T) {
	p := harness.New(t, harness.Small())
	dir := t.TempDir()
	link, real := filepath.Join(dir, "link"), filepath.Join(dir, "real")
	harness.Must(t, os.Mkdir(real, 0o755))
	harness.Must(t, os.Symlink("real", link))
	v := p.MountOn(t, link, harness.Mounting{})
	if v.Dir != real || !strings.Contains(v.Log(), real) || !v.Mounted(t) {
		t.Errorf("mounted on %q: %s", v.Dir, v.Log())
	}
	if got, err := os.ReadFile(filepath.Join(link, "top.txt")); err != nil || string(got) != "top\n" {
		t.Errorf("through the link it reads %q, %v", got, err)
	}
	unmount(t, p, link)
	if status := v.Wait(t); status != 0 || v.Mounted(t) {
		t.Errorf("status %d, mounted %v", status, v.Mounted(t))
	}
}
