package fusemount

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// TestMountControl: found by its name only.
func TestMountControl(t *testing.T) {
	s := serveVolumeSet(t)
	s.reads(fusefs.ControlName+"/deep/status", "up")
	if got := client(t, "ls", "-a", s.mount); got != ".\n..\nnow\ntop\n" {
		t.Errorf("ls: %q", got)
	}
	if got := client(t, "find", s.mount, "-printf", `%P %y %n\n`); got != " d 3\nnow f 1\ntop d 2\ntop/file f 1\n" {
		t.Errorf("find: %q", got)
	}
	if got := client(t, "ls", "-a", s.at(fusefs.ControlName)); got != ".\n..\ndeep\nlive\n" {
		t.Errorf("ls: %q", got)
	}
	if s.inode(fusefs.ControlName+"/..") != s.inode("") || s.inode(fusefs.ControlName+"/deep/..") != s.inode(fusefs.ControlName) {
		t.Error("its parent is another directory")
	}
	var st unix.Statfs_t
	if err := unix.Statfs(s.mount, &st); err != nil || st.Files != 4 || st.Blocks != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	copied := filepath.Join(t.TempDir(), "copy")
	client(t, "cp", "-r", s.mount+"/top", copied)
	client(t, "diff", "-r", s.at("top"), copied)
	s.end()
}

// TestMountVolumeSet: what appears is found at once, what vanishes within a moment,
// and entering makes the tree once.
func TestMountVolumeSet(t *testing.T) {
	s := serveVolumeSet(t, "one", "two")
	if got := client(t, "ls", "-a", s.mount); got != ".\n..\nlatest\nnow\none\ntop\ntwo\n" {
		t.Errorf("ls: %q", got)
	}
	for i := range 20 {
		name := fmt.Sprint("new-", i)
		if _, err := os.Stat(s.at(name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
		s.put(name)
		s.reads(name+"/f", name)
	}
	if err := os.RemoveAll(filepath.Join(s.src, "runs/new-0")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the volume vanishes", func() bool {
		_, err := os.Stat(s.at("new-0"))
		return errors.Is(err, fs.ErrNotExist)
	})
	if got := client(t, "ls", s.mount); strings.Contains(got, "new-0\n") || !strings.Contains(got, "new-1\n") {
		t.Errorf("ls: %q", got)
	}
	s.reads("one/.spectrum/which", "one")
	client(t, "diff", "-r", filepath.Join(s.src, "runs/one"), s.at("one"))
	seen := map[uint64]string{}
	for _, path := range []string{"", "top", "top/file", "now", "latest", ".spectrum", ".spectrum/live", "one", "one/f", "one/d", "one/d/big", "one/.spectrum", "two", "two/f", "two/d", "two/d/big", "two/.spectrum"} {
		if other, taken := seen[s.inode(path)]; taken {
			t.Errorf("%q and %q have one inode number", path, other)
		}
		seen[s.inode(path)] = path
	}
	if s.inode("one/..") != s.inode("") || s.inode("one/d/..") != s.inode("one") || s.inode("two/.spectrum/..") != s.inode("two") {
		t.Error("a volume's parent is another directory")
	}
	for _, dir := range []string{"", "one", "two/d", ".spectrum"} {
		s.checkInodes(dir)
	}
	for _, path := range []string{"one", "one/d", "one/f", "latest"} {
		if err := os.Remove(s.at(path)); !errors.Is(err, unix.EROFS) {
			t.Errorf("remove %s: %v", path, err)
		}
	}
	s.end()
	trees := map[string]int{}
	for line := range s.lines {
		if name, ok := strings.CutPrefix(line, "tree "); ok {
			trees[name]++
		}
	}
	for name, n := range trees {
		if n != 1 {
			t.Errorf("the tree of %s was made %d times", name, n)
		}
	}
}

// TestMountManyVolumes lists thousands while others come and go.
func TestMountManyVolumes(t *testing.T) {
	s := serveVolumeSet(t)
	want := map[string]bool{}
	for i := range sample.Of(2000, 10_000, 10_000) {
		name := fmt.Sprintf("run-%05d", i)
		want[name] = true
		if err := os.Mkdir(filepath.Join(s.src, "runs", name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				path := filepath.Join(s.src, "runs", fmt.Sprintf("flicker-%d", i%7))
				if os.Mkdir(path, 0o755) != nil {
					_ = os.Remove(path)
				}
			}
		}
	})
	for range 5 {
		got := map[string]int{}
		for line := range strings.Lines(client(t, "ls", "-1f", s.mount)) {
			got[strings.TrimSuffix(line, "\n")]++
		}
		for name := range want {
			if got[name] != 1 {
				t.Fatalf("%s is listed %d times", name, got[name])
			}
		}
	}
	close(stop)
	group.Wait()
	s.end()
}

// TestMountEnterTogether: 200 processes' worth of first entries, one tree.
func TestMountEnterTogether(t *testing.T) {
	s := serveVolumeSet(t, "v")
	s.bend("v.slow", "")
	var group sync.WaitGroup
	for i := range 200 {
		group.Go(func() {
			switch i % 3 {
			case 0:
				s.reads("v/f", "v")
			case 1:
				if names, err := os.ReadDir(s.at("v")); err != nil || len(names) != 2 {
					t.Errorf("%d names, %v", len(names), err)
				}
			case 2:
				if _, err := os.Stat(s.at("v/nothing")); !errors.Is(err, fs.ErrNotExist) {
					t.Error(err)
				}
			}
		})
	}
	s.line("tree v")
	s.straighten("v.slow")
	group.Wait()
	s.end()
	for line := range s.lines {
		if line == "tree v" {
			t.Error("its tree was made twice")
		}
	}
}

// begin starts a program and discards its output.
func begin(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd
}

// TestMountInterruptedEntry: the first reader that enters is interrupted, or killed, while the tree
// is being made. The others are not affected.
func TestMountInterruptedEntry(t *testing.T) {
	for _, sig := range []unix.Signal{unix.SIGINT, unix.SIGKILL} {
		s := serveVolumeSet(t, "v")
		s.bend("v.slow", "")
		first := begin(t, "ls", s.at("v"))
		s.line("tree v")
		var group sync.WaitGroup
		for range 10 {
			group.Go(func() { s.reads("v/f", "v") })
		}
		if err := first.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if err := first.Wait(); err == nil {
			t.Error("it was not interrupted")
		}
		s.straighten("v.slow")
		group.Wait()
		s.end()
		for line := range s.lines {
			if line == "tree v" {
				t.Error("its tree was made twice")
			}
		}
	}
}

// TestMountFailedEntry: an error is EIO for the reader that enters, and the next one tries again; a
// panic does not end the server.
func TestMountFailedEntry(t *testing.T) {
	for _, how := range []string{"v.error", "v.panic"} {
		s := serveVolumeSet(t, "v", "w")
		s.bend(how, "")
		for range 3 {
			if _, err := os.ReadFile(s.at("v/f")); !errors.Is(err, unix.EIO) {
				t.Errorf("%s: %v", how, err)
			}
			if _, err := os.ReadDir(s.at("v")); !errors.Is(err, unix.EIO) {
				t.Errorf("%s: %v", how, err)
			}
			s.reads("w/f", "w")
		}
		s.straighten(how)
		s.reads("v/f", "v")
		s.end()
	}
}

// TestMountLatest: where the link leads to, in time, never and late.
func TestMountLatest(t *testing.T) {
	s := serveVolumeSet(t, "one", "two")
	if _, err := os.Readlink(s.at("latest")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing is the latest: %v", err)
	}
	if info, err := os.Lstat(s.at("latest")); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("%v, %v", info, err)
	}
	for range 3 {
		for _, name := range []string{"one", "two"} {
			s.bend("latest", name)
			s.reads("latest/f", name)
			if target, err := os.Readlink(s.at("latest")); target != name || err != nil {
				t.Errorf("%q, %v", target, err)
			}
		}
	}
	s.bend("latest.slow", "")
	for range len(s.lines) {
		<-s.lines
	}
	first := begin(t, "cat", s.at("latest/f"))
	s.line("latest")
	s.reads("one/f", "one") // no other reader waits
	if err := first.Process.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Error("it was not interrupted")
	}
	var group sync.WaitGroup
	group.Go(func() { s.reads("latest/f", "two") }) // it waits: one search at a time
	s.straighten("latest.slow")
	group.Wait()
	s.end()
}

// TestMountUnmountWhileEntering: trees and a link that never come do not keep
// the view, and leave nothing behind.
func TestMountUnmountWhileEntering(t *testing.T) {
	s := serveVolumeSet(t, "v", "w")
	for _, how := range []string{"v.slow", "w.slow", "latest.slow"} {
		s.bend(how, "")
	}
	var waiting []*exec.Cmd
	for _, path := range []string{"v", "v/f", "w/d/big", "latest/f", "latest/d"} {
		waiting = append(waiting, begin(t, "ls", s.at(path)))
	}
	s.says("tree v", "tree w", "latest")
	s.end()
	for _, cmd := range waiting {
		if err := cmd.Wait(); err == nil {
			t.Errorf("%q got what was never there", cmd.Args)
		}
	}
}

// spoiledAt waits until a file of the view returns EIO.
func (s *volumeSetView) spoiledAt(path string) {
	s.t.Helper()
	eventually(s.t, "EIO of "+path, func() bool {
		_, err := os.ReadFile(s.at(path))
		return errors.Is(err, unix.EIO)
	})
}

// TestMountSpoiled: nothing of a spoiled volume is read any more, not even what
// the kernel had in its cache or what was open; others are as they were.
func TestMountSpoiled(t *testing.T) {
	s := serveVolumeSet(t, "bad", "good")
	for _, name := range []string{"bad", "good"} {
		client(t, "diff", "-r", filepath.Join(s.src, "runs", name), s.at(name))
	}
	held, err := os.Open(s.at("bad/d/big"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	s.bend("bad.spoiled", "")
	s.spoiledAt("bad/f")
	s.spoiledAt("bad/d/big")
	eventually(t, "EIO of an open file", func() bool {
		_, err := held.ReadAt(make([]byte, testBlock), 0)
		return errors.Is(err, unix.EIO)
	})
	s.straighten("bad.spoiled") // too late: it is spoiled permanently
	for range 3 {
		if _, err := os.ReadFile(s.at("bad/f")); !errors.Is(err, unix.EIO) {
			t.Errorf("read after it: %v", err)
		}
		client(t, "diff", "-r", filepath.Join(s.src, "runs/good"), s.at("good"))
		s.reads("top/file", "text")
	}
	if names, err := os.ReadDir(s.at("bad")); err != nil || len(names) != 2 {
		t.Errorf("its listing: %d names, %v", len(names), err)
	}
	s.logged("is no longer read")
	s.end()
}

// TestMountSpoiledFromInside: a process that was inside already, and looks up no name that leads
// there, also gets only what the kernel has cached.
func TestMountSpoiledFromInside(t *testing.T) {
	s := serveVolumeSet(t, "bad", "good")
	var files []*os.File
	for _, name := range []string{"bad/d/big", "good/d/big"} {
		fd, err := unix.Open(s.at(name), unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0) // each read is a request
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		files = append(files, f)
	}
	read := func(f *os.File) error {
		_, err := f.ReadAt(make([]byte, testBlock), 0)
		return err
	}
	for _, f := range files {
		if err := read(f); err != nil {
			t.Fatal(err)
		}
	}
	s.bend("bad.spoiled", "")
	eventually(t, "EIO of an open file", func() bool { return errors.Is(read(files[0]), unix.EIO) })
	if err := read(files[1]); err != nil {
		t.Error(err)
	}
}

// TestMountFindView: the path of a view, or the reason why there is none, without a request to a
// server that may not answer.
func TestMountFindView(t *testing.T) {
	dir := mountDir(t)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"plain", "tmpfs", "foreign", "other", "dead", "live"} {
		if err := os.Mkdir(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(at("file"), nil, 0o644), os.Symlink("live", at("link"))); err != nil {
		t.Fatal(err)
	}
	mountOther(t, "tmpfs", at("tmpfs"))
	mountUnserved(t, "fuse.foreign", at("foreign"), os.Geteuid())
	mountUnserved(t, fsType, at("other"), nobody)
	serveView(t, orders{Source: source(t), Mountpoint: at("live")})
	dead := serveView(t, orders{Source: source(t), Mountpoint: at("dead")})
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	dead.exit(-1)
	for name, want := range map[string]error{
		"plain": ErrNotMounted, "tmpfs": ErrNotSpectrum, "foreign": ErrNotSpectrum, "other": ErrNotOwn, "dead": ErrDeadMount,
		"file": ErrNotDirectory, "nothing": fs.ErrNotExist, "live/a": ErrNotMounted, "live/a/one": ErrNotDirectory, "dead/a": ErrDeadMount,
	} {
		path, err := FindView(at(name))
		var e *MountpointError
		if path != "" || !errors.Is(err, want) || !errors.As(err, &e) {
			t.Errorf("%s: %q, %v, want %v", name, path, err, want)
		}
	}
	for _, name := range []string{"live", "link", "live/", "live/a/.."} {
		if path, err := FindView(dir + "/" + name); path != at("live") || err != nil {
			t.Errorf("%s: %q, %v", name, path, err)
		}
	}
	if err := Unmount(at("dead")); err != nil {
		t.Error(err)
	}
}

// mountUnserved mounts a FUSE file system of a user that has no server: a request to it would
// never be answered.
func mountUnserved(t *testing.T, kind, dir string, user int) {
	t.Helper()
	dev, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=%d,group_id=%d", dev, user, user)
	if err := unix.Mount("none", dir, kind, unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Unmount(dir, unix.MNT_DETACH) // it may have been taken for one of our views
		_ = unix.Close(dev)
	})
}

// TestMountXAttrs: what getfattr would see.
func TestMountXAttrs(t *testing.T) {
	s := serveVolumeSet(t, "v")
	file := s.at("v/d/big")
	var list []string
	for _, a := range someXAttrs {
		list = append(list, a.Name)
		n, err := unix.Getxattr(file, a.Name, nil)
		if n != len(a.Value) || err != nil {
			t.Errorf("%q: %d, %v", a.Name, n, err)
		}
		buf := make([]byte, len(a.Value)+10)
		if n, err := unix.Getxattr(file, a.Name, buf); err != nil || string(buf[:n]) != a.Value {
			t.Errorf("%q: %d, %v", a.Name, n, err)
		}
		if len(a.Value) > 1 {
			if _, err := unix.Getxattr(file, a.Name, buf[:len(a.Value)-1]); err != unix.ERANGE {
				t.Errorf("%q, no room: %v", a.Name, err)
			}
		}
	}
	want := strings.Join(list, "\x00") + "\x00"
	buf := make([]byte, 1000)
	if n, err := unix.Listxattr(file, nil); n != len(want) || err != nil {
		t.Errorf("list: %d, %v", n, err)
	}
	if n, err := unix.Listxattr(file, buf); err != nil || string(buf[:n]) != want {
		t.Errorf("list: %q, %v", buf[:max(0, n)], err)
	}
	if _, err := unix.Listxattr(file, buf[:len(want)-1]); err != unix.ERANGE {
		t.Errorf("list, no room: %v", err)
	}
	for _, path := range []string{"", "v", "v/d", "now", "top/file", ".spectrum", ".spectrum/live", "v/.spectrum/which"} {
		if n, err := unix.Listxattr(s.at(path), buf); n != 0 || err != nil {
			t.Errorf("%q lists %d bytes, %v", path, n, err)
		}
		if _, err := unix.Getxattr(s.at(path), "user.empty", buf); err != unix.ENODATA {
			t.Errorf("%q: %v", path, err)
		}
	}
	if n, err := unix.Llistxattr(s.at("latest"), buf); n != 0 || err != nil {
		t.Errorf("the link lists %d bytes, %v", n, err)
	}
	if _, err := unix.Lgetxattr(s.at("latest"), "user.empty", buf); !slices.Contains([]error{unix.ENODATA, unix.EPERM}, err) {
		t.Errorf("the link: %v", err)
	}
	if _, err := unix.Getxattr(file, "security.capability", buf); err != unix.ENOTSUP && err != unix.ENODATA {
		t.Errorf("outside user: %v", err)
	}
	if n, err := unix.Getxattr(file, "user.spectrum.sha256", buf); n != 71 || err != nil {
		t.Errorf("after that: %d, %v", n, err)
	}
	s.end()
}
