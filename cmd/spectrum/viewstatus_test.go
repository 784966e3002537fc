package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/view"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// startView runs "spectrum mount ARGS... DIR" in the foreground.
func startView(t *testing.T, args ...string) *mounted {
	t.Helper()
	dir := t.TempDir()
	return startViewBy(t, command(t, append(append([]string{"mount"}, args...), dir)...), dir)
}

// startViewBy runs a command that mounts a view, and waits until it has.
func startViewBy(t *testing.T, cmd *exec.Cmd, dir string) *mounted {
	t.Helper()
	cmd.Cancel = func() error { return os.ErrProcessDone } // the view is ended by end
	cmd.WaitDelay = 5 * time.Minute
	v := &mounted{t: t, cmd: cmd, dir: dir, said: &bytes.Buffer{}, done: make(chan error, 1)}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.end)
	v.stderr = stderr
	lines := bufio.NewReader(io.TeeReader(stderr, v.said))
	first, _ := lines.ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		v.done <- cmd.Wait()
	}()
	if !strings.HasPrefix(first, "mounted ") {
		t.Fatalf("the program said %q", first)
	}
	return v
}

// eventually polls until something is so.
// control is the path of a file in the control directory.
func (v *mounted) control(name string) string { return filepath.Join(v.dir, ".spectrum", name) }

// status is what status.json says now.
func (v *mounted) status() view.StatusRecord {
	v.t.Helper()
	record, err := v.readStatus()
	if err != nil {
		v.t.Fatal(err)
	}
	return record
}

// readStatus reads status.json. It requires one whole line.
func (v *mounted) readStatus() (record view.StatusRecord, err error) {
	raw, err := os.ReadFile(v.control("status.json"))
	if err != nil {
		return record, err
	}
	if bytes.Count(raw, []byte("\n")) != 1 || !bytes.HasSuffix(raw, []byte("}\n")) {
		return record, fmt.Errorf("not one line: %q", raw)
	}
	return record, json.Unmarshal(raw, &record)
}

// files lists the regular files that can be found by listing, relative.
func (v *mounted) files() []string {
	v.t.Helper()
	var names []string
	err := filepath.WalkDir(v.dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(v.dir, path)
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		v.t.Fatal(err)
	}
	return names
}

// xattrs reads all extended attributes of a path.
func xattrs(t *testing.T, path string) map[string]string {
	t.Helper()
	buf := make([]byte, 1<<12)
	n, err := unix.Llistxattr(path, buf)
	if err != nil {
		t.Fatalf("listxattr %q: %v", path, err)
	}
	if size, err := unix.Llistxattr(path, nil); err != nil || size != n {
		t.Errorf("listxattr %q says %d bytes, %v, and gives %d", path, size, err, n)
	}
	attrs := map[string]string{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00") {
		if n == 0 {
			break
		}
		value := make([]byte, 1<<10)
		length, err := unix.Lgetxattr(path, name, value)
		if err != nil {
			t.Fatalf("getxattr %q %q: %v", path, name, err)
		}
		attrs[name] = string(value[:length])
		if _, err := unix.Lgetxattr(path, name, make([]byte, length-1)); !errors.Is(err, unix.ERANGE) {
			t.Errorf("getxattr %q %q into too little: %v", path, name, err)
		}
	}
	return attrs
}

func sumOf(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// TestXAttrsSayWhatIsRead: on every file, artifacts too, in both modes; on
// nothing else.
func TestXAttrsSayWhatIsRead(t *testing.T) {
	project := bundletest.New(t)
	outputs := map[string]string{"out/empty": "", "out/\xc3\xa9": "e", "a": strings.Repeat("long", 100_000)}
	runs := []*bundletest.Run{project.Run("run 1", outputs), project.Run("r2", map[string]string{"a": outputs["a"]})}
	for _, v := range []*mounted{startView(t, runs[0].Dir), startView(t, "--chain", runs[0].Dir, runs[1].Dir)} {
		for _, name := range v.files() {
			run := runs[0]
			if strings.HasPrefix(name, "r2/") {
				run = runs[1]
			}
			want := map[string]string{
				"user.spectrum.bundle_root": run.BundleRoot(),
				"user.spectrum.run_id":      filepath.Base(run.Dir),
				"user.spectrum.task_id":     filepath.Base(run.Dir),
				"user.spectrum.sha256":      sumOf(t, filepath.Join(v.dir, name)),
			}
			if got := xattrs(t, filepath.Join(v.dir, name)); !maps.Equal(got, want) {
				t.Errorf("%q: %q, want %q", name, got, want)
			}
		}
		for _, path := range []string{v.dir, filepath.Dir(v.control("x")), v.control("status.json"), v.control("candidate.json")} {
			if got := xattrs(t, path); len(got) != 0 {
				t.Errorf("%q: %q", path, got)
			}
		}
		if _, err := unix.Lgetxattr(filepath.Join(v.dir, v.files()[0]), "user.spectrum.none", nil); !errors.Is(err, unix.ENODATA) {
			t.Errorf("an attribute that is not there: %v", err)
		}
		if err := unix.Lsetxattr(filepath.Join(v.dir, v.files()[0]), "user.spectrum.sha256", []byte("x"), 0); !errors.Is(err, unix.EROFS) {
			t.Errorf("setxattr: %v", err)
		}
	}
}

// dirent is an entry as getdents gives it.
type dirent struct {
	name  string
	inode uint64
}

// list reads a directory without sorting, and without the dots.
func list(t *testing.T, dir string) (entries []dirent) {
	t.Helper()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	buf := make([]byte, 600) // several calls
	for {
		n, err := unix.ReadDirent(int(f.Fd()), buf)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return entries
		}
		for rest := buf[:n]; len(rest) > 0; {
			length := binary.NativeEndian.Uint16(rest[16:])
			name, _, _ := bytes.Cut(rest[19:length], []byte{0})
			if string(name) != "." && string(name) != ".." {
				entries = append(entries, dirent{string(name), binary.NativeEndian.Uint64(rest)})
			}
			rest = rest[length:]
		}
	}
}

func lstat(t *testing.T, path string) (st unix.Stat_t) {
	t.Helper()
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("lstat %q: %v", path, err)
	}
	return st
}

// counted is what a walk over a view has found.
type counted struct {
	blocks, nodes uint64
	inodes        map[uint64]string
}

// walkView checks order, inode numbers and link counts below a directory.
func walkView(t *testing.T, dir string, c *counted) {
	t.Helper()
	entries := list(t, dir)
	if !slices.IsSortedFunc(entries, func(a, b dirent) int { return strings.Compare(a.name, b.name) }) {
		t.Errorf("%q is not in byte order: %v", dir, entries)
	}
	links := 2
	for _, e := range entries {
		path := filepath.Join(dir, e.name)
		st := lstat(t, path)
		if st.Ino != e.inode {
			t.Errorf("%q: inode %d by stat and %d by readdir", path, st.Ino, e.inode)
		}
		if other, ok := c.inodes[st.Ino]; ok {
			t.Errorf("%q and %q are both inode %d", path, other, st.Ino)
		}
		c.inodes[st.Ino] = path
		c.nodes++
		if st.Mode&unix.S_IFMT == unix.S_IFDIR {
			links++
			walkView(t, path, c)
		} else {
			c.blocks += (uint64(st.Size) + 4095) / 4096
		}
	}
	if st := lstat(t, dir); int(st.Nlink) != links {
		t.Errorf("%q has %d links, want %d", dir, st.Nlink, links)
	}
}

// TestNumbersOfAView: totals, links, inode numbers and order are those of what
// is listed, and stay when the kernel forgets what it knows.
func TestNumbersOfAView(t *testing.T) {
	outputs := map[string]string{"a": "", "a-b": "1", "a.b/c": strings.Repeat("x", 4097), "d/e/f/g": "g", "d/e2/h": "h", "B": "b", "\xc3\xa9": "e"}
	for i := range 300 {
		outputs[fmt.Sprintf("many/%d", i)] = "x"
	}
	v := startView(t, bundletest.New(t).Run("run-1", outputs).Dir)
	first := counted{inodes: map[uint64]string{}}
	walkView(t, v.dir, &first)
	var st unix.Statfs_t
	if err := unix.Statfs(v.dir, &st); err != nil {
		t.Fatal(err)
	}
	if st.Files != first.nodes+1 || st.Blocks != first.blocks || st.Bfree != 0 || st.Ffree != 0 || st.Bsize != 4096 {
		t.Errorf("statfs says %+v, the walk %d nodes and %d blocks", st, first.nodes+1, first.blocks)
	}
	status := lstat(t, v.control("status.json")).Ino
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
		t.Fatal(err)
	}
	again := counted{inodes: map[uint64]string{}}
	walkView(t, v.dir, &again)
	if !maps.Equal(first.inodes, again.inodes) {
		t.Error("inode numbers changed")
	}
	hidden := counted{inodes: again.inodes}
	walkView(t, filepath.Dir(v.control("x")), &hidden)
	if now := lstat(t, v.control("status.json")).Ino; now != status {
		t.Errorf("status.json was inode %d and is %d", status, now)
	}
}

// TestStatusCountsFindings: each finding once, however often it is met; the
// first hundred are reported.
func TestStatusCountsFindings(t *testing.T) {
	const bad = 150
	outputs := map[string]string{}
	for i := range bad + 1 {
		outputs[fmt.Sprintf("f%03d", i)] = "signed"
	}
	project := bundletest.New(t)
	v := startView(t, project.Run("run-1", outputs).Dir)
	if s := v.status(); s.Tampered || s.Findings != 0 || s.Tampering == nil || len(s.Tampering) != 0 {
		t.Errorf("before: %+v", s)
	}
	for i := range bad {
		harness.Flip(t, filepath.Join(project.Root, fmt.Sprintf("f%03d", i)), 3)
	}
	if s := v.status(); s.Tampered || s.Findings != 0 {
		t.Errorf("it was not read yet: %+v", s)
	}
	for range 3 {
		for name := range outputs {
			_, err := os.ReadFile(filepath.Join(v.dir, name))
			if isBad := name < fmt.Sprintf("f%03d", bad); isBad != errors.Is(err, syscall.EIO) {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	s := v.status()
	if !s.Tampered || s.Findings != bad || len(s.Tampering) != 100 {
		t.Errorf("tampered %v, %d findings, %d told", s.Tampered, s.Findings, len(s.Tampering))
	}
	for _, f := range s.Tampering {
		if _, ok := outputs[f.Path]; !ok || f.Error == "" {
			t.Errorf("finding %+v", f)
		}
	}
	if said, err := v.stop(os.Interrupt); err != nil || strings.Count(said, "level=ERROR") != bad {
		t.Errorf("%v, %d lines", err, strings.Count(said, "level=ERROR"))
	}
}

// TestFindingIsLoggedOnce: a block that is read a hundred times at many offsets
// is one finding, two blocks of a file are two.
func TestFindingIsLoggedOnce(t *testing.T) {
	project := bundletest.New(t)
	v := startView(t, project.Run("run-1", map[string]string{"big": strings.Repeat("0123456789abcdef", 3*blockhash.TagBlockSize/16)}).Dir)
	source := filepath.Join(project.Root, "big")
	harness.Flip(t, source, 9)
	harness.Flip(t, source, 2*blockhash.TagBlockSize)
	f, err := os.Open(filepath.Join(v.dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		t.Fatal(err)
	}
	for i := range int64(100) {
		for _, block := range []int64{0, 2} {
			if _, err := f.ReadAt(make([]byte, 10), block*blockhash.TagBlockSize+i*300); !errors.Is(err, syscall.EIO) {
				t.Fatalf("block %d: %v", block, err)
			}
		}
	}
	if _, err := f.ReadAt(make([]byte, blockhash.TagBlockSize), blockhash.TagBlockSize); err != nil {
		t.Errorf("block 1: %v", err)
	}
	if s := v.status(); s.Findings != 2 || s.Tampering[0].Path != "big" || s.Tampering[1].Path != "big" {
		t.Errorf("%+v", s)
	}
	harness.Flip(t, source, 9) // as it was: served again, but what was seen was seen
	if _, err := readBlock(t, filepath.Join(v.dir, "big"), 0); err != nil {
		t.Errorf("the mended block: %v", err)
	}
	if s := v.status(); !s.Tampered || s.Findings != 2 {
		t.Errorf("mended: %+v", s)
	}
	check(t, f.Close()) // a view in use ends only after a grace
	if said, err := v.stop(os.Interrupt); err != nil || strings.Count(said, "level=ERROR") != 2 {
		t.Errorf("%v: %s", err, said)
	}
}

// TestStatusUnderLoad: a reader of status.json whose content changes meanwhile gets one whole
// content, and its numbers never decrease.
func TestStatusUnderLoad(t *testing.T) {
	outputs := map[string]string{}
	for i := range 200 {
		outputs[fmt.Sprintf("f%d", i)] = strings.Repeat("x", i)
	}
	v := startView(t, bundletest.New(t).Run("run-1", outputs).Dir)
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			var last int64
			for range 200 {
				s, err := v.readStatus()
				if err != nil || s.Reads < last {
					t.Errorf("%v, %d reads after %d", err, s.Reads, last)
				}
				last = s.Reads
			}
		})
	}
	var total int64
	for name, content := range outputs {
		got, err := os.ReadFile(filepath.Join(v.dir, name))
		if err != nil || string(got) != content {
			t.Errorf("%s: %v", name, err)
		}
		total += int64(len(got))
	}
	readers.Wait()
	harness.Eventually(t, fmt.Sprintf("%d bytes were read", total), func() bool {
		s := v.status()
		return s.Bytes == total && s.Reads == 199 && !s.Tampered
	})
}

// TestControlArtifacts: they are the originals, and one that changes is found
// out when it is read.
func TestControlArtifacts(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run-1", map[string]string{"a": "alpha"})
	v := startView(t, run.Dir)
	names := []string{bundle.TaskSpec, bundle.Status, bundle.OutputHashes, bundle.Proof, bundle.Identity, bundle.SignedPayload, bundle.Signature}
	for _, name := range names {
		if got, err := os.ReadFile(v.control("runs/run-1/" + name)); err != nil || !bytes.Equal(got, run.Read(name)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if entries := list(t, v.control("runs/run-1")); len(entries) != len(names) {
		t.Errorf("%v", entries)
	}
	if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("1"), 0); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		run.WriteRaw(name, append(run.Read(name), ' '))
		if got, err := os.ReadFile(v.control("runs/run-1/" + name)); err == nil && strings.HasSuffix(string(got), " ") {
			t.Errorf("%s shows what was never verified", name)
		}
	}
}

// TestTamperedControlArtifact: what no signature covers is held to what was
// read as well.
func TestTamperedControlArtifact(t *testing.T) {
	run := bundletest.New(t).Run("run-1", map[string]string{"a": "alpha"})
	v := startView(t, run.Dir)
	harness.Flip(t, run.Path(bundle.Proof), 5)
	if got, err := os.ReadFile(v.control("runs/run-1/" + bundle.Proof)); !errors.Is(err, syscall.EIO) {
		t.Errorf("%q, %v", got, err)
	}
	if s := v.status(); !s.Tampered || s.Findings != 1 || s.Tampering[0].Path != ".spectrum/runs/run-1/"+bundle.Proof {
		t.Errorf("%+v", s)
	}
}

// TestForgedControl: a bundle cannot say in the view's name that nothing was
// tampered with; inside its run of a chain it is a file like any other.
func TestForgedControl(t *testing.T) {
	const forged = `{"tampered":false}`
	for _, path := range []string{".spectrum/status.json", ".spectrum", ".spectrum/candidate.json"} {
		run := bundletest.New(t).Run("run-1", map[string]string{path: forged})
		dir := t.TempDir()
		stdout, stderr, status := spectrum(t, "mount", "--json", run.Dir, dir)
		if status != statusRejected || !strings.Contains(stdout, `"code":"REFUSED"`) || !strings.Contains(stderr, `.spectrum`) {
			t.Errorf("%s: %d %s %s", path, status, stdout, stderr)
		}
		if isMounted(t, dir) {
			t.Error("it is mounted")
		}
		v := startView(t, "--chain", run.Dir)
		if got, err := os.ReadFile(filepath.Join(v.dir, "run-1", path)); err != nil || string(got) != forged {
			t.Errorf("%s: %q, %v", path, got, err)
		}
		if s := v.status(); s.ViewID == "" {
			t.Errorf("%+v", s)
		}
	}
	run := bundletest.New(t).Run(".spectrum", map[string]string{"status.json": forged})
	if stdout, _, status := spectrum(t, "mount", "--json", "--chain", run.Dir, t.TempDir()); status != statusRejected || !strings.Contains(stdout, `"code":"REFUSED"`) {
		t.Errorf("a run of that name: %d %s", status, stdout)
	}
}
