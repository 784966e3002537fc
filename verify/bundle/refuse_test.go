package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// refusal is something that must not be sealed. Its setup may change the
// project and the options; the outputs are "bad" unless it sets them.
type refusal struct {
	name  string
	want  error // nil when any error will do
	setup func(s *sealing)
}

// outputs is the setup for what is wrong with the arguments alone.
func outputs(args ...string) func(*sealing) {
	return func(s *sealing) { s.opts.Outputs = args }
}

var refusals = []refusal{
	{"no output", nil, outputs()},
	{"missing", fs.ErrNotExist, outputs("missing")},
	{"missing below a file", fs.ErrNotExist, outputs("good.txt/x")},
	{"missing beside a good one", fs.ErrNotExist, outputs("good.txt", "missing")},
	{"empty path", pathsafe.ErrTraversal, outputs("")},
	{"dot and slash", pathsafe.ErrTraversal, outputs("./")},
	{"dot dot", pathsafe.ErrTraversal, outputs("..")},
	{"leads out", pathsafe.ErrTraversal, outputs("../good.txt")},
	{"stays in", pathsafe.ErrTraversal, outputs("dir/../good.txt")},
	{"absolute", pathsafe.ErrTraversal, func(s *sealing) { s.opts.Outputs = []string{s.path("good.txt")} }},
	{"leading dot", pathsafe.ErrTraversal, outputs("./good.txt")},
	{"double slash", pathsafe.ErrTraversal, outputs("dir//f")},
	{"trailing slash", pathsafe.ErrTraversal, outputs("dir/")},
	{"backslash", pathsafe.ErrTraversal, outputs(`dir\f`)},
	{"NUL", pathsafe.ErrNullByte, outputs("good.txt\x00")},
	{"name of 256 bytes", pathsafe.ErrTooLong, outputs(strings.Repeat("n", 256))},
	{"path of 4,096 bytes", pathsafe.ErrTooLong, outputs(strings.Repeat("n/", 2047) + "nn")},

	{"link", pathsafe.ErrSymlink, func(s *sealing) { s.symlink("good.txt", "bad") }},
	{"link to a directory", pathsafe.ErrSymlink, func(s *sealing) { s.symlink("dir", "bad") }},
	{"dangling link", pathsafe.ErrSymlink, func(s *sealing) { s.symlink("nowhere", "bad") }},
	{"link out", pathsafe.ErrSymlink, func(s *sealing) { s.symlink("/etc/passwd", "bad") }},
	{"link in a directory", nil, func(s *sealing) { s.symlink("../good.txt", "bad/x") }},
	{"link to a directory in a directory", nil, func(s *sealing) { s.symlink("../dir", "bad/x") }},
	{"dangling link in a directory", nil, func(s *sealing) { s.symlink("nowhere", "bad/x") }},
	{"link on the way", pathsafe.ErrSymlink, func(s *sealing) { s.symlink("dir", "bad"); s.opts.Outputs = []string{"bad/f"} }},
	{"FIFO", nil, func(s *sealing) { s.node("bad", unix.S_IFIFO) }},
	{"FIFO in a directory", nil, func(s *sealing) { s.node("bad/d/x", unix.S_IFIFO) }},
	{"socket", nil, func(s *sealing) { s.node("bad", unix.S_IFSOCK) }},
	{"socket in a directory", nil, func(s *sealing) { s.node("bad/x", unix.S_IFSOCK) }},
	{"device", nil, func(s *sealing) { device(s, "bad") }},
	{"device in a directory", nil, func(s *sealing) { device(s, "bad/x") }},
	{"empty directory", nil, func(s *sealing) { s.mkdir("bad"); s.opts.Outputs = []string{"bad"} }},
	{"directory of empty directories", nil, func(s *sealing) { s.mkdir("bad/a/b"); s.mkdir("bad/c"); s.opts.Outputs = []string{"bad", "bad/c"} }},

	{"name that is not UTF-8", nil, func(s *sealing) { s.Write("ba\xffd", "x"); s.opts.Outputs = []string{"ba\xffd"} }},
	{"name that is not UTF-8 in a directory", nil, func(s *sealing) { s.Write("bad/\xc3", "x") }},
	{"directory whose name is not UTF-8", nil, func(s *sealing) { s.Write("bad/\xc3/x", "x") }},
	{"backslash in a directory", pathsafe.ErrTraversal, func(s *sealing) { s.Write(`bad/a\b`, "x") }},
	{"manifest", nil, func(s *sealing) {
		s.Write("RESTORE_MANIFEST.json", "x")
		s.opts.Outputs = []string{"RESTORE_MANIFEST.json"}
	}},
	{"report", nil, func(s *sealing) {
		s.Write("RESTORE_REPORT.json", "x")
		s.opts.Outputs = []string{"RESTORE_REPORT.json"}
	}},
	{"below the report", nil, func(s *sealing) {
		s.Write("RESTORE_REPORT.json/x", "x")
		s.opts.Outputs = []string{"RESTORE_REPORT.json"}
	}},
	{"staging", nil, func(s *sealing) { s.Write(".spectrum06_x/a", "x"); s.opts.Outputs = []string{".spectrum06_x/a"} }},

	{"run directory that is not empty", fs.ErrExist, func(s *sealing) { good(s); s.Write("CONTRACTS/_runs/run-1/x", "x") }},
	{"run directory that is a file", fs.ErrExist, func(s *sealing) { good(s); s.Write("CONTRACTS/_runs/run-1", "x") }},
	{"run directory that is a link", fs.ErrExist, func(s *sealing) { good(s); s.mkdir("dir2"); s.symlink("../../dir2", "CONTRACTS/_runs/run-1") }},
	{"run directory that is a dangling link", fs.ErrExist, func(s *sealing) { good(s); s.symlink("x", "CONTRACTS/_runs/run-1") }},
	{"run directory that is a FIFO", fs.ErrExist, func(s *sealing) { good(s); s.node("CONTRACTS/_runs/run-1", unix.S_IFIFO) }},
	{"run directory below a file", nil, func(s *sealing) { good(s); s.Write("CONTRACTS/_runs", "x") }},
	{"run directory below a dangling link", nil, func(s *sealing) { good(s); s.symlink("x", "CONTRACTS/_runs") }},
	{"run directory far below a dangling link", nil, func(s *sealing) { good(s); s.symlink("x", "CONTRACTS") }},
	{"run directory at the top", nil, func(s *sealing) { good(s); s.opts.RunDir = "/" }},
	{"run id that is not UTF-8", nil, func(s *sealing) { good(s); s.opts.RunDir = s.path("CONTRACTS/_runs/\xff") }},
	{"run id that is too long", pathsafe.ErrTooLong, func(s *sealing) {
		good(s)
		s.mkdir("CONTRACTS/_runs")
		s.opts.RunDir = s.path("CONTRACTS/_runs/" + strings.Repeat("n", 256))
	}},
	{"no run directory", nil, func(s *sealing) { good(s); s.opts.RunDir = "" }},
	{"no key", nil, func(s *sealing) { good(s); s.opts.Key = bundle.Key{} }},
	{"no build id", nil, func(s *sealing) { good(s); s.opts.BuildID = "" }},
	{"build id that is not UTF-8", nil, func(s *sealing) { good(s); s.opts.BuildID = "git:\xff" }},
	{"no project", nil, func(s *sealing) { good(s); s.opts.Project = nil }},
	{"input that is not UTF-8", nil, func(s *sealing) { good(s); s.opts.Inputs = []string{"\xff"} }},
}

func good(s *sealing) { s.opts.Outputs = []string{"good.txt"} }

func device(s *sealing, rel string) {
	if os.Geteuid() != 0 {
		s.T.Skip("only root may make devices")
	}
	s.node(rel, unix.S_IFCHR)
}

func TestSealRejects(t *testing.T) {
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) {
			s := newSealing(t)
			s.Write("good.txt", "good")
			s.Write("dir/f", "f")
			s.opts.Outputs = []string{"good.txt", "bad"}
			t.Chdir(s.Root) // so that a relative run directory would show
			c.setup(s)
			var read atomic.Int64
			s.opts.Hashed = func(bytes int64) { read.Add(bytes) }
			failsUnchanged(t, s, c.want)
			if late := strings.Contains(c.name, "id that is not UTF-8") || strings.HasPrefix(c.name, "input"); read.Load() > 0 && !late && !strings.HasPrefix(c.name, "run directory") {
				t.Errorf("%d bytes were hashed first", read.Load())
			}
		})
	}
}

// TestSealOfOtherMount: what is mounted in an output directory would be left
// out without a word, so it is rejected.
func TestSealOfOtherMount(t *testing.T) {
	s := newSealing(t)
	s.Write("bad/a", "a")
	s.mkdir("bad/m")
	harness.Mount(t, "spectrum-test", s.path("bad/m"), "tmpfs", 0, "size=64k")
	s.Write("bad/m/f", "f")
	s.opts.Outputs = []string{"bad"}
	failsUnchanged(t, s, pathsafe.ErrCrossesMount)
	s.opts.Outputs = []string{"bad/m/f"}
	failsUnchanged(t, s, pathsafe.ErrCrossesMount)
}

func TestSealCancelled(t *testing.T) {
	s := goldenSealing(t)
	before := bundletest.Snapshot(t, s.Root)
	for n := range 3 { // cancelled before the first file, in the first, in the second; the third is empty
		oneProcessor(t)
		ctx, cancel := context.WithCancel(t.Context())
		files := 0
		s.opts.Hashed = func(bytes int64) {
			if bytes == 0 {
				return
			}
			if files++; files == n {
				cancel()
			}
		}
		if n == 0 {
			cancel()
		}
		if sealed, err := bundle.Seal(ctx, s.opts); !errors.Is(err, context.Canceled) || sealed != (bundle.Sealed{}) {
			t.Errorf("cancelled in file %d: %+v, %v", n, sealed, err)
		}
	}
	if after := bundletest.Snapshot(t, s.Root); after != before {
		t.Errorf("changed:\n%s", bundletest.Changes(before, after))
	}
}

// TestSealWhileOutputsChange changes the second output when the first has been
// hashed.
func TestSealWhileOutputsChange(t *testing.T) {
	for name, c := range map[string]struct {
		want   error
		change func(s *sealing)
	}{
		"gone":            {fs.ErrNotExist, func(s *sealing) { must(s.T, os.Remove(s.path("two/f"))) }},
		"a link":          {pathsafe.ErrSymlink, func(s *sealing) { must(s.T, os.Remove(s.path("two/f"))); s.symlink("../one", "two/f") }},
		"a FIFO":          {pathsafe.ErrNotRegular, func(s *sealing) { must(s.T, os.Remove(s.path("two/f"))); s.node("two/f", unix.S_IFIFO) }},
		"a directory":     {pathsafe.ErrNotRegular, func(s *sealing) { must(s.T, os.Remove(s.path("two/f"))); s.mkdir("two/f") }},
		"parent a link":   {pathsafe.ErrSymlink, func(s *sealing) { must(s.T, os.Rename(s.path("two"), s.path("2"))); s.symlink("2", "two") }},
		"parent gone":     {fs.ErrNotExist, func(s *sealing) { must(s.T, os.Rename(s.path("two"), s.path("2"))) }},
		"run dir foreign": {fs.ErrExist, func(s *sealing) { s.Write("CONTRACTS/_runs/run-1/theirs", "x") }},
		"run dir a file":  {nil, func(s *sealing) { s.Write("CONTRACTS/_runs/run-1", "x") }},
		"no runs dir":     {nil, func(s *sealing) { s.Write("CONTRACTS", "x") }},
	} {
		t.Run(name, func(t *testing.T) {
			oneProcessor(t)
			s := newSealing(t)
			s.Write("one", "1")
			s.Write("two/f", "2")
			s.opts.Outputs = []string{"one", "two"}
			var before string
			var first sync.Once // while the first of them is read
			s.opts.Hashed = func(int64) {
				first.Do(func() {
					c.change(s)
					before = contents(t, s.Root)
				})
			}
			sealed, err := bundle.Seal(t.Context(), s.opts)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || sealed != (bundle.Sealed{}) {
				t.Errorf("sealed %+v, error %v, want %v", sealed, err, c.want)
			}
			if after := contents(t, s.Root); after != before {
				t.Errorf("changed:\n%s", bundletest.Changes(before, after))
			}
		})
	}
}

// contents is a snapshot without the times of directories, which change when
// something is made in them and removed again.
func contents(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(bundletest.Snapshot(t, dir)) {
		if fields := strings.Split(line, "\t"); strings.HasPrefix(fields[1], "d") {
			line = fields[0] + "\t" + fields[1] + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// TestSealOfGrowingFile appends to a file while it is sealed.
func TestSealOfGrowingFile(t *testing.T) {
	s := newSealing(t)
	s.Write("log", "")
	must(t, os.Truncate(s.path("log"), 24<<20))
	s.opts.Outputs = []string{"log"}
	f, err := os.OpenFile(s.path("log"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	s.opts.Hashed = func(int64) { _, _ = f.WriteString("x") }
	_, err = bundle.Seal(t.Context(), s.opts)
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("error %v", err)
	}
	if got := namesIn(t, s.Root); !slices.Equal(got, []string{"log"}) {
		t.Errorf("left: %q", got)
	}
}

// TestSealWithoutPermission: the parent may not be written.
func TestSealWithoutPermission(t *testing.T) {
	for _, runDir := range []string{"closed/run-1", "closed/runs/run-1", "closed/a/b/run-1"} {
		s := newSealing(t)
		s.Write("good.txt", "good")
		good(s)
		s.mkdir("closed")
		must(t, os.Chmod(s.path("closed"), 0o555))
		must(t, os.Chmod(filepath.Dir(s.Root), 0o755)) // the directory can be entered
		s.opts.RunDir = s.path(runDir)
		before := bundletest.Snapshot(t, s.Root)
		asNobody(t, func() {
			if sealed, err := bundle.Seal(t.Context(), s.opts); !errors.Is(err, fs.ErrPermission) || sealed != (bundle.Sealed{}) {
				t.Errorf("%s: sealed %+v, error %v", runDir, sealed, err)
			}
		})
		if after := bundletest.Snapshot(t, s.Root); after != before {
			t.Errorf("%s: changed:\n%s", runDir, bundletest.Changes(before, after))
		}
	}
}

// TestSealOnFullDisk runs out of inodes at every step of writing a bundle: each
// time nothing is left.
func TestSealOnFullDisk(t *testing.T) {
	s := newSealing(t)
	s.Write("good.txt", "good")
	good(s)
	failed := 0
	for inodes := 2; inodes < 40; inodes++ {
		disk := s.path(fmt.Sprint("disk", inodes))
		must(t, os.Mkdir(disk, 0o755))
		harness.Mount(t, "spectrum-test", disk, "tmpfs", 0, fmt.Sprintf("size=1m,nr_inodes=%d", inodes))
		s.opts.RunDir = filepath.Join(disk, "a/b/run-1")
		if _, err := bundle.Seal(t.Context(), s.opts); err == nil {
			break
		} else if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%d inodes: %v", inodes, err)
		}
		if got := namesIn(t, disk); len(got) > 0 {
			t.Errorf("%d inodes: left %q", inodes, got)
		}
		failed++
	}
	if failed < 9 || failed > 30 {
		t.Errorf("the disk was full %d times; at least ten things have to be made", failed)
	}
	strict(t, s)
	onlyTheBundle(t, s)
}

func TestReserved(t *testing.T) {
	for path, want := range map[string]bool{
		"RESTORE_MANIFEST.json": true, "RESTORE_REPORT.json": true, "RESTORE_MANIFEST.json/x": true, "RESTORE_REPORT.json/a/b": true,
		".spectrum06_": true, ".spectrum06_staging_x/a": true, ".spectrum06_chain_x.json": true,
		"a/RESTORE_REPORT.json": false, "RESTORE_REPORT.jsonx": false, "restore_report.json": false, "RESTORE_REPORT": false,
		".spectrum06": false, ".spectrum05_x": false, "a/.spectrum06_x": false, "spectrum06_x": false,
	} {
		p, err := pathsafe.Parse(path)
		must(t, err)
		if got := bundle.Reserved(p); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}

// TestSealTooLarge: an artifact that is too large for readers is not made.
func TestSealTooLarge(t *testing.T) {
	s := newSealing(t)
	s.Write("good.txt", "good")
	s.opts.Outputs, s.opts.Inputs = []string{"good.txt"}, []string{strings.Repeat("x", 16<<20)}
	_, err := bundle.Seal(t.Context(), s.opts)
	var size *bundle.SizeError
	if !errors.As(err, &size) || size.Artifact != bundle.TaskSpec || size.Limit != 16<<20 {
		t.Fatalf("%v", err)
	}
	if text := err.Error(); !strings.Contains(text, bundle.TaskSpec) || !strings.Contains(text, "16777216") {
		t.Errorf("%q", text)
	}
	if _, err := os.Stat(s.opts.RunDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the run directory: %v", err)
	}
}
