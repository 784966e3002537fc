package restore_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// TestHostileSources: sources that no restore may read, all of which were signed as something
// good. Where there is something behind them, it is not opened.
func TestHostileSources(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	must(t, os.WriteFile(outside, []byte("gamma\n"), 0o644))
	opened := opens(t, outside)
	at := func(with func(string) error) func(s *scene) {
		return func(s *scene) { s.replace("gen/c.txt", with) }
	}
	above := func(with func(string) error) func(s *scene) {
		return func(s *scene) { s.replace("gen", with) }
	}
	for _, c := range []struct {
		no    string
		cause func(s *scene)
		want  restore.Code
	}{
		{"66 link inside", func(s *scene) { linked(s, "gen/c.txt") }, restore.SourceNotRegularFile},
		{"66b absolute link inside", func(s *scene) {
			s.Write("real/c.txt", "gamma\n")
			s.replace("gen/c.txt", harness.LinkTo(s.inProject("real/c.txt")))
		}, restore.SourceNotRegularFile},
		{"67 link out", at(harness.LinkTo("../../../../../../../.." + outside)), restore.VerifyStrictFailed},
		{"67b absolute link", at(harness.LinkTo(outside)), restore.VerifyStrictFailed},
		{"67c dangling link", at(harness.LinkTo("none")), restore.VerifyStrictFailed},
		{"67d loop", at(harness.LinkTo("c.txt")), restore.VerifyStrictFailed},
		{"67e /proc/self/environ", at(harness.LinkTo("/proc/self/environ")), restore.VerifyStrictFailed},
		{"67f magic link", at(harness.LinkTo("/proc/self/fd/0")), restore.VerifyStrictFailed},
		{"68 parent a link out", above(harness.LinkTo(filepath.Dir(outside))), restore.VerifyStrictFailed},
		{"68b parent a link inside", func(s *scene) {
			s.Write("real/c.txt", "gamma\n")
			s.replace("gen", harness.LinkTo("real"))
		}, restore.SourceNotRegularFile},
		{"69 FIFO", at(harness.FIFO), restore.VerifyStrictFailed},
		{"69b socket", at(harness.Socket), restore.VerifyStrictFailed},
		{"69c character device", at(harness.Device(unix.S_IFCHR, 1, 5)), restore.VerifyStrictFailed},
		{"69d block device", at(harness.Device(unix.S_IFBLK, 7, 0)), restore.VerifyStrictFailed},
		{"69e link to a FIFO", func(s *scene) {
			must(s.t, harness.FIFO(s.inProject("fifo")))
			s.replace("gen/c.txt", harness.LinkTo("../fifo"))
		}, restore.VerifyStrictFailed},
		{"70 directory", at(harness.Directory), restore.VerifyStrictFailed},
		{"70b parent a file", above(writeFile), restore.VerifyStrictFailed},
		{"72 sparse and huge", at(func(name string) error {
			return errors.Join(os.WriteFile(name, nil, 0o644), os.Truncate(name, 16<<20))
		}), restore.VerifyStrictFailed},
		{"74 longer than signed", func(s *scene) { s.Write("gen/c.txt", "gamma\n\x00") }, restore.VerifyStrictFailed},
		{"75 shorter than signed", func(s *scene) { s.Write("gen/c.txt", "gamma") }, restore.VerifyStrictFailed},
		{"75b empty", func(s *scene) { s.Write("gen/c.txt", "") }, restore.VerifyStrictFailed},
		{"78 on a dead mount", func(s *scene) { harness.DeadMount(s.t, s.inProject("gen")) }, restore.VerifyStrictFailed},
		{"78b on another mount", func(s *scene) {
			harness.Mount(s.t, "t", s.inProject("gen"), "tmpfs", 0, "")
			s.Write("gen/c.txt", "gamma\n")
		}, restore.VerifyStrictFailed},
	} {
		t.Run(c.no, func(t *testing.T) {
			s := newScene(t, false, anotherRun)
			c.cause(s)
			if got := s.refused(); got.Code != c.want || got.Path != "gen/c.txt" {
				t.Errorf("%+v, want %s", got, c.want)
			}
			if c.want == restore.VerifyStrictFailed {
				_, err := s.plan()
				wantOutputVerdict(t, err)
			}
		})
	}
	if n := opened(); n > 0 {
		t.Errorf("a file outside was opened %d times", n)
	}
}

func wantOutputVerdict(t *testing.T, err error) {
	t.Helper()
	var reject *verify.Reject
	if !errors.As(err, &reject) || reject.Code != verify.OutputMissing && reject.Code != verify.HashMismatch {
		t.Errorf("the verifier said %v", err)
	}
}

// 77: what the operator may not read is not an output.
func TestHostileUnreadable(t *testing.T) {
	for no, path := range map[string]string{"77 file": "gen/c.txt", "77b parent": "gen"} {
		t.Run(no, func(t *testing.T) {
			s := newScene(t, false, anotherRun)
			s.letOthersIn()
			must(t, os.Chmod(s.root, 0o777))
			harness.WithoutRights(t, func() { s.mustPlan() }) // the control
			must(t, os.Chmod(s.inProject(path), 0))
			harness.WithoutRights(t, func() {
				if got := s.refused(); got.Code != restore.VerifyStrictFailed || got.Path != "gen/c.txt" {
					t.Errorf("%+v", got)
				}
			})
		})
	}
}

// 71: a hard link is a regular file; its copy is one of its own.
func TestHostileHardLink(t *testing.T) {
	s := newScene(t, false, anotherRun)
	outside := filepath.Join(t.TempDir(), "secret")
	must(t, os.WriteFile(outside, []byte("gamma\n"), 0o640))
	must(t, os.Remove(s.inProject("gen/c.txt")))
	must(t, os.Link(outside, s.inProject("gen/c.txt")))
	s.mustRestore(anotherRun)
	var source, target unix.Stat_t
	must(t, unix.Lstat(outside, &source))
	must(t, unix.Lstat(s.inRoot("gen/c.txt"), &target))
	if target.Ino == source.Ino || target.Nlink != 1 || source.Nlink != 2 {
		t.Errorf("inode %d with %d links, of the source %d with %d", target.Ino, target.Nlink, source.Ino, source.Nlink)
	}
}

// 73: a file that says that it has no bytes, and has some. What was hashed is
// what counts.
func TestHostileSizeZero(t *testing.T) {
	const ostype = "/proc/sys/kernel/ostype"
	content := harness.ReadFile(t, ostype)
	if info, err := os.Stat(ostype); err != nil || info.Size() != 0 || content == "" {
		t.Fatal("not such a file")
	}
	s := newScene(t, false, map[string]string{"ostype": content})
	s.Root = filepath.Dir(ostype)
	s.mustRestore(map[string]string{"ostype": content})
	if got := harness.ReadFile(t, s.inRoot(restore.ManifestName)); !strings.Contains(got, `{"bytes":6,"relative_path":"ostype"`) {
		t.Errorf("manifest %s", got)
	}
}

// 79: nothing of a source but its content, permission bits and time of
// modification is carried over.
func TestHostileAttributes(t *testing.T) {
	s := newScene(t, false, anotherRun)
	source := s.inProject("gen/c.txt")
	must(t, os.Chown(source, 12, 34))
	must(t, unix.Chmod(source, 0o7755))
	must(t, unix.Setxattr(source, "user.note", []byte("x"), 0))
	must(t, unix.Setxattr(source, "trusted.note", []byte("x"), 0))
	capability := []byte{1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0} // cap_net_bind_service+ep
	must(t, unix.Setxattr(source, "security.capability", capability, 0))
	s.mustRestore(anotherRun)
	target := s.inRoot("gen/c.txt")
	var st unix.Stat_t
	must(t, unix.Lstat(target, &st))
	if st.Mode&0o7777 != 0o755 || st.Uid != 0 || st.Gid != 0 {
		t.Errorf("mode %o, owner %d:%d", st.Mode&0o7777, st.Uid, st.Gid)
	}
	if n, err := unix.Llistxattr(target, make([]byte, 1000)); n != 0 || err != nil {
		t.Errorf("%d bytes of extended attributes, %v", n, err)
	}
}

// 87: only regular files are made, so no output can plant what another one
// follows.
func TestHostilePlantedLink(t *testing.T) {
	s := newScene(t, false, map[string]string{"plain": "x"})
	must(t, os.Symlink("/tmp", s.inProject("a")))
	s.Write("a.real/b", "x")
	s.last().EditHashes(func(h map[string]any) { h["a"], h["a/b"] = bundletest.Hash("/tmp"), bundletest.Hash("x") })
	if got := s.refused(); got.Code != restore.VerifyStrictFailed || got.Path != "a" {
		t.Errorf("%+v", got)
	}
	chain := newScene(t, true, anotherRun, oneRun)
	linked(chain, "gen/c.txt")
	if got := chain.refused(); got.Code != restore.SourceNotRegularFile || got.RunID != "run-1" {
		t.Errorf("%+v", got)
	}
}

// opens counts how often the inode behind path is opened from now on.
func opens(t *testing.T, path string) func() int {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	_, err = unix.InotifyAddWatch(fd, path, unix.IN_OPEN)
	must(t, err)
	return func() int {
		buf := make([]byte, 64<<10)
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EAGAIN) {
			return 0
		}
		must(t, err)
		return n / unix.SizeofInotifyEvent
	}
}

// A source that is opened is seen: the control of opens.
func TestOpensSees(t *testing.T) {
	s := newScene(t, false, anotherRun)
	opened := opens(t, s.inProject("gen/c.txt"))
	s.mustPlan()
	if opened() == 0 {
		t.Error("the output was read unseen")
	}
	artifact := opens(t, s.last().Path(bundle.Status))
	s.mustPlan()
	if n := artifact(); n != 1 {
		t.Errorf("49: STATUS.json was opened %d times", n)
	}
}

// A source that another mount covers after verification is neither missing nor of another kind,
// as far as can be known.
func TestSourceBehindMountAfterwards(t *testing.T) {
	s := newScene(t, true, anotherRun, oneRun)
	s.afterHashing(func() { harness.Mount(t, "t", s.inProject("out"), "tmpfs", 0, "") })
	want := restore.Failure{Code: restore.InternalError, Phase: restore.Planning}
	if got := s.refused(); got != want {
		t.Errorf("%+v", got)
	}
}
