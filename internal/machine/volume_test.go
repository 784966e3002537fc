package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// mounted mounts a file system of the test's own.
func mounted(t *testing.T, args ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	path := filepath.Join(t.TempDir(), "mnt")
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, append(append([]string{"mount"}, args...), path)...)
	t.Cleanup(func() {
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return path
}

// image makes and mounts a file system in a file.
func image(t *testing.T, size int64, mkfs ...string) string {
	t.Helper()
	if _, err := exec.LookPath(mkfs[0]); err != nil {
		t.Skip(err)
	}
	file := filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	run(t, append(mkfs, file)...)
	return mounted(t, "-o", "loop", file)
}

func run(t *testing.T, argv ...string) {
	t.Helper()
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
}

// probed describes a directory, and returns the features that it lacks.
func probed(t *testing.T, path string) (Volume, map[Feature]error) {
	t.Helper()
	dir := openDir(t, path)
	v, err := Describe(dir)
	if err != nil {
		t.Fatal(err)
	}
	findings, err := Probe(context.Background(), dir, NewName())
	if err != nil {
		t.Fatal(err)
	}
	lacks := map[Feature]error{}
	for _, f := range findings {
		if f.Err != nil {
			lacks[f.Feature] = f.Err
		}
	}
	dir.Close()
	return v, lacks
}

// wantLacks fails unless these features, and no others, are missing.
func wantLacks(t *testing.T, lacks map[Feature]error, want ...Feature) {
	t.Helper()
	for _, f := range want {
		if !IsLacking(lacks[f]) {
			t.Errorf("%s: %v", f, lacks[f])
		}
		delete(lacks, f)
	}
	for f, err := range lacks {
		t.Errorf("%s: %v", f, err)
	}
}

// TestFileSystems compares the findings with the known features of these file systems.
func TestFileSystems(t *testing.T) {
	t.Run("tmpfs", func(t *testing.T) {
		path := mounted(t, "-t", "tmpfs", "-o", "size=1m,nr_inodes=100", "tmpfs")
		v, lacks := probed(t, path)
		if v.Type != "tmpfs" || v.Mountpoint != path || v.ReadOnly || v.NoJournal || v.Bytes.Total != 1<<20 || v.Inodes.Total != 100 || v.NameMax != 255 {
			t.Errorf("%+v", v)
		}
		delete(lacks, UserXattrs) // since Linux 6.6
		wantLacks(t, lacks, ShareBlocks)
	})
	t.Run("ext4", func(t *testing.T) {
		v, lacks := probed(t, image(t, 16<<20, "mkfs.ext4", "-q", "-F"))
		if v.Type != "ext4" || v.NoJournal || !v.Has("rw") {
			t.Errorf("%+v", v)
		}
		wantLacks(t, lacks, ShareBlocks)
	})
	t.Run("ext4 without a journal", func(t *testing.T) {
		if v, _ := probed(t, image(t, 16<<20, "mkfs.ext4", "-q", "-F", "-O", "^has_journal")); !v.NoJournal {
			t.Errorf("%+v", v)
		}
	})
	t.Run("ext4 with small inodes", func(t *testing.T) {
		_, lacks := probed(t, image(t, 16<<20, "mkfs.ext4", "-q", "-F", "-I", "128"))
		wantLacks(t, lacks, ShareBlocks, BirthTime, Time)
	})
	t.Run("ext2", func(t *testing.T) {
		if v, _ := probed(t, image(t, 16<<20, "mkfs.ext2", "-q", "-F")); !v.NoJournal {
			t.Errorf("%+v", v)
		}
	})
	t.Run("btrfs", func(t *testing.T) {
		v, lacks := probed(t, image(t, 128<<20, "mkfs.btrfs", "-q", "-f"))
		if v.Type != "btrfs" || v.Inodes.Total != 0 {
			t.Errorf("%+v", v)
		}
		wantLacks(t, lacks)
	})
	t.Run("overlay", func(t *testing.T) {
		base := mounted(t, "-t", "tmpfs", "tmpfs")
		for _, name := range []string{"lower", "upper", "work"} {
			if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		options := "volatile,lowerdir=" + base + "/lower,upperdir=" + base + "/upper,workdir=" + base + "/work"
		v, _ := probed(t, mounted(t, "-t", "overlay", "-o", options, "overlay"))
		if v.Type != "overlay" || !v.Has("volatile") && !v.Has("fsync=volatile") { // since Linux 6.18 the latter
			t.Errorf("%+v", v)
		}
	})
	t.Run("read-only", func(t *testing.T) {
		v, err := Describe(openDir(t, mounted(t, "-t", "tmpfs", "-o", "ro", "tmpfs")))
		if err != nil || !v.ReadOnly {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// TestCaseFolding: where names that differ in case are one, it is found.
func TestCaseFolding(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "CASE"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&bench{dir: openDir(t, path)}).caseSensitive(); !IsLacking(err) {
		t.Error(err)
	}

	if _, err := os.Stat("/sys/fs/ext4/features/casefold"); err != nil {
		t.Skip("this kernel folds no case in ext4:", err)
	}
	folding := filepath.Join(image(t, 16<<20, "mkfs.ext4", "-q", "-F", "-O", "casefold"), "folding")
	if err := os.Mkdir(folding, 0o755); err != nil {
		t.Fatal(err)
	}
	run(t, "chattr", "+F", folding)
	_, lacks := probed(t, folding)
	wantLacks(t, lacks, ShareBlocks, CaseSensitive)
}

// TestDescribeClosed: Describe returns an error for a closed directory.
func TestDescribeClosed(t *testing.T) {
	dir, err := pathsafe.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir.Close()
	if v, err := Describe(dir); err == nil || v.Type != "" {
		t.Errorf("%+v", v)
	}
	if _, err := Probe(context.Background(), dir, NewName()); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// TestNoJournal reads a sysfs.
func TestNoJournal(t *testing.T) {
	sys := t.TempDir()
	m := &mountinfo.Info{FSType: "ext4", Major: 8, Minor: 1}
	if hasNoJournal(sys, m) {
		t.Error("a sysfs that says nothing says that there is none")
	}
	for _, dir := range []string{"dev/block", "fs/ext4/sda1"} {
		if err := os.MkdirAll(filepath.Join(sys, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../../devices/x/sda1", filepath.Join(sys, "dev/block/8:1")); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"<none>\n": true, "214\n": false, "": false} {
		if err := os.WriteFile(filepath.Join(sys, "fs/ext4/sda1/journal_task"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := hasNoJournal(sys, m); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if hasNoJournal(sys, &mountinfo.Info{FSType: "xfs", Major: 8, Minor: 1}) {
		t.Error("xfs without a journal")
	}
}

// TestRelease reads what kernels call themselves.
func TestRelease(t *testing.T) {
	for name, want := range map[string][2]int{
		"6.1.0-18-amd64": {6, 1}, "5.15.153.1-microsoft-standard-WSL2": {5, 15}, "4.19": {4, 19}, "next": {0, 0}, "7": {0, 0}, "": {0, 0},
	} {
		if r := ParseRelease(name); r.Major != want[0] || r.Minor != want[1] || r.Name != name {
			t.Errorf("%q: %+v", name, r)
		}
	}
	for name, old := range map[string]bool{"5.7.19": true, "5.8.0": false, "4.19.0": true, "6.0": false, "unknown": false} {
		if ParseRelease(name).Before(5, 8) != old {
			t.Errorf("%q", name)
		}
	}
	if r, err := KernelRelease(); err != nil || r.Major < 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReserved: what is kept for another user or group is not free for this one.
func TestReserved(t *testing.T) {
	user, group := fmt.Sprint("resuid=", os.Geteuid()), fmt.Sprint("resgid=", os.Getegid())
	other := fmt.Sprint("resuid=", os.Geteuid()+1)
	for want, all := range map[bool][][]string{true: {{"rw", user}, {other, group}}, false: {{}, {"rw", other}, {"resgid=4294967294"}, {"resuid"}}} {
		for _, options := range all {
			if mayReserved(options) != want {
				t.Errorf("%q: %v", options, !want)
			}
		}
	}
}
