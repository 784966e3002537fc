package verify_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// source makes something of dist/a. Its content, wherever it really lies, is "aaa", as it was
// signed: the hash must not be what saves us. It returns the files that must not be opened.
type source struct {
	name string
	make func(r *bundletest.Run) []string
}

// outside is a file outside the project root.
func outside(r *bundletest.Run) string {
	path := filepath.Join(r.T.(*testing.T).TempDir(), "outside")
	must(r.T, writeFile(path, "aaa"))
	return path
}

// as replaces dist/a.
func as(make func(string) error) func(r *bundletest.Run) []string {
	return func(r *bundletest.Run) []string {
		replaceBy(r.T, at(r, "dist/a"), make)
		return nil
	}
}

// asSpecial replaces dist/a by what must never be opened.
func asSpecial(make func(string) error) func(r *bundletest.Run) []string {
	return func(r *bundletest.Run) []string {
		replaceBy(r.T, at(r, "dist/a"), make)
		return []string{at(r, "dist/a")}
	}
}

var goodSources = []source{
	{"file", func(*bundletest.Run) []string { return nil }},
	{"link beside", func(r *bundletest.Run) []string { r.Write("dist/real", "aaa"); return as(harness.LinkTo("real"))(r) }},
	{"link up and down", func(r *bundletest.Run) []string {
		r.Write("other/real", "aaa")
		return as(harness.LinkTo("../other/../other/./real"))(r)
	}},
	{"link to a link", func(r *bundletest.Run) []string {
		r.Write("real", "aaa")
		must(r.T, os.Symlink("real", at(r, "alias")))
		return as(harness.LinkTo("../alias"))(r)
	}},
	{"absolute link in", func(r *bundletest.Run) []string { r.Write("real", "aaa"); return as(harness.LinkTo(at(r, "real")))(r) }},
	{"absolute link in, with dots", func(r *bundletest.Run) []string {
		r.Write("real", "aaa")
		return as(harness.LinkTo("/." + r.Root + "//./dist/../real"))(r)
	}},
	{"absolute link to an absolute link", func(r *bundletest.Run) []string {
		r.Write("real", "aaa")
		must(r.T, os.Symlink(at(r, "real"), at(r, "alias")))
		return as(harness.LinkTo(at(r, "alias")))(r)
	}},
	{"parent is an absolute link", func(r *bundletest.Run) []string {
		must(r.T, os.Rename(at(r, "dist"), at(r, "real")))
		must(r.T, os.Symlink(at(r, "real"), at(r, "dist")))
		return nil
	}},
	{"parent is a link", func(r *bundletest.Run) []string {
		must(r.T, os.Rename(at(r, "dist"), at(r, "real")))
		must(r.T, os.Symlink("real", at(r, "dist")))
		return nil
	}},
	{"hard link to a file outside", func(r *bundletest.Run) []string {
		path := outside(r)
		return as(func(name string) error { return os.Link(path, name) })(r)
	}},
	{"file that only its owner may read", func(r *bundletest.Run) []string { must(r.T, os.Chmod(at(r, "dist/a"), 0o400)); return nil }},
}

var badSources = []source{
	{"missing", func(r *bundletest.Run) []string { loseOutput("dist/a")(r); return nil }},
	{"parent missing", func(r *bundletest.Run) []string { must(r.T, os.RemoveAll(at(r, "dist"))); return nil }},
	{"parent is a file", func(r *bundletest.Run) []string {
		replaceBy(r.T, at(r, "dist"), func(p string) error { return writeFile(p, "aaa") })
		return nil
	}},
	{"parent is a FIFO", func(r *bundletest.Run) []string {
		replaceBy(r.T, at(r, "dist"), harness.FIFO)
		return []string{at(r, "dist")}
	}},
	{"absolute link out", func(r *bundletest.Run) []string {
		path := outside(r)
		as(harness.LinkTo(path))(r)
		return []string{path}
	}},
	{"absolute link in, by another way", func(r *bundletest.Run) []string {
		r.Write("real", "aaa")
		way := filepath.Join(r.T.(*testing.T).TempDir(), "way")
		must(r.T, os.Symlink(r.Root, way))
		as(harness.LinkTo(way + "/real"))(r)
		return []string{at(r, "real")}
	}},
	{"absolute link in, out and in again", func(r *bundletest.Run) []string {
		r.Write("real", "aaa")
		as(harness.LinkTo(r.Root + "/../" + filepath.Base(r.Root) + "/real"))(r)
		return []string{at(r, "real")}
	}},
	{"absolute link in by /proc", func(r *bundletest.Run) []string {
		r.Write("real", "aaa")
		as(harness.LinkTo("/proc/self/root" + at(r, "real")))(r)
		return []string{at(r, "real")}
	}},
	{"absolute link to a neighbour of the root", func(r *bundletest.Run) []string {
		path := r.Root + "-too"
		must(r.T, os.Mkdir(path, 0o755))
		r.T.Cleanup(func() { must(r.T, os.RemoveAll(path)) })
		must(r.T, writeFile(path+"/real", "aaa"))
		as(harness.LinkTo(path + "/real"))(r)
		return []string{path + "/real"}
	}},
	{"absolute link to the root", func(r *bundletest.Run) []string { as(harness.LinkTo(r.Root))(r); return nil }},
	{"absolute link to a FIFO inside", func(r *bundletest.Run) []string {
		must(r.T, harness.FIFO(at(r, "fifo")))
		as(harness.LinkTo(at(r, "fifo")))(r)
		return []string{at(r, "fifo")}
	}},
	{"absolute link in, dangling", func(r *bundletest.Run) []string { as(harness.LinkTo(at(r, "none")))(r); return nil }},
	{"absolute link to itself", func(r *bundletest.Run) []string { as(harness.LinkTo(at(r, "dist/a")))(r); return nil }},
	{"link out", func(r *bundletest.Run) []string {
		path := outside(r)
		rel, err := filepath.Rel(at(r, "dist"), path)
		must(r.T, err)
		as(harness.LinkTo(rel))(r)
		return []string{path}
	}},
	{"link out and in again", func(r *bundletest.Run) []string {
		r.Write("real", "aaa")
		as(harness.LinkTo("../../" + filepath.Base(r.Root) + "/real"))(r)
		return []string{at(r, "real")}
	}},
	{"parent links out", func(r *bundletest.Run) []string {
		path := outside(r)
		must(r.T, os.Rename(path, filepath.Join(filepath.Dir(path), "a")))
		replaceBy(r.T, at(r, "dist"), harness.LinkTo(filepath.Dir(path)))
		return []string{filepath.Join(filepath.Dir(path), "a")}
	}},
	{"dangling link", as(harness.LinkTo("nowhere"))},
	{"link to itself", as(harness.LinkTo("a"))},
	{"loop", func(r *bundletest.Run) []string {
		must(r.T, os.Symlink("a", at(r, "dist/c")))
		return as(harness.LinkTo("c"))(r)
	}},
	{"link to the environment", as(harness.LinkTo("/proc/self/environ"))},
	{"link to an open file", as(harness.LinkTo("/proc/self/fd/0"))},
	{"link to a directory", as(harness.LinkTo("../dist"))},
	{"link to a FIFO", func(r *bundletest.Run) []string {
		must(r.T, harness.FIFO(at(r, "fifo")))
		as(harness.LinkTo("../fifo"))(r)
		return []string{at(r, "fifo")}
	}},
	{"link to a socket", func(r *bundletest.Run) []string {
		must(r.T, harness.Socket(at(r, "sock")))
		as(harness.LinkTo("../sock"))(r)
		return []string{at(r, "sock")}
	}},
	{"FIFO", asSpecial(harness.FIFO)},
	{"socket", asSpecial(harness.Socket)},
	{"directory", asSpecial(harness.Directory)},
}

func devices() []source {
	if os.Geteuid() != 0 {
		return nil // only root may make them
	}
	return []source{{"character device", asSpecial(charDevice)}, {"block device", asSpecial(blockDevice)}}
}

// TestSources checks sources that are links, in every law that reads outputs.
func TestSources(t *testing.T) {
	for _, s := range goodSources {
		t.Run(s.name, func(t *testing.T) {
			r := newRun(t)
			s.make(r)
			b, err := strict(t, r)
			must(t, err)
			if o := outputAt(t, b, "dist/a"); o.Size() != 3 || o.Hash() != bundletest.Hash("aaa") {
				t.Errorf("%d bytes, %s", o.Size(), o.Hash())
			}
			must(t, resume(t, r))
			_, err = gate(t, r)
			must(t, err)
		})
	}
	for _, s := range append(badSources, devices()...) {
		t.Run(s.name, func(t *testing.T) {
			r := newRun(t)
			var watched []opens
			for _, path := range s.make(r) {
				watched = append(watched, watchOpens(t, path))
			}
			_, err := strict(t, r)
			checkReject(t, err, missingWant("dist/a"))
			checkReject(t, resume(t, r), missingWant("dist/a"))
			_, err = gate(t, r)
			checkReject(t, err, missingWant("dist/a"))
			for _, w := range watched {
				w.none(t)
			}
		})
	}
}

// TestFIFOIsNeverOpened: a writer that waits for a reader waits on.
func TestFIFOIsNeverOpened(t *testing.T) {
	r := newRun(t)
	path := at(r, "dist/a")
	replaceBy(t, path, harness.FIFO)
	var opened atomic.Bool
	thread, done := make(chan int), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		thread <- unix.Gettid()
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		opened.Store(true)
		if err == nil {
			f.Close()
		}
	}()
	opening, syscall := fmt.Sprint(unix.SYS_OPENAT, " "), fmt.Sprintf("/proc/self/task/%d/syscall", <-thread)
	for range 10_000 { // if it does not wait then, the test is only weaker
		if raw, err := os.ReadFile(syscall); err != nil || strings.HasPrefix(string(raw), opening) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	_, err := strict(t, r)
	checkReject(t, err, missingWant("dist/a"))
	if opened.Load() {
		t.Error("the FIFO was opened for reading")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	must(t, err)
	<-done
	f.Close()
}

// TestOtherMount: a file of another mount is not beneath the root.
func TestOtherMount(t *testing.T) {
	r := newRun(t)
	harness.Mount(t, "spectrum-test", at(r, "dist"), "tmpfs", 0, "size=64k")
	r.Write("dist/a", "aaa")
	r.Write("dist/b", "bbb")
	_, err := strict(t, r)
	checkReject(t, err, missingWant("dist/a"))
}

// TestPathLengths: a long path is legal in form, and is read where it exists.
func TestPathLengths(t *testing.T) {
	long := strings.Repeat("n/", 2045) + "x" // 4,091 bytes
	r := newRun(t)
	makeDeep(t, r.Root, long, "deep")
	spoil(r, fault{content: edit(bundle.OutputHashes, set("hashes", map[string]any{long: bundletest.Hash("deep")}))})
	b, err := strict(t, r)
	must(t, err)
	if got := readAll(t, outputAt(t, b, long)); got != "deep" {
		t.Errorf("read %q", got)
	}
	for _, path := range []string{strings.Repeat("n", 256), "d/" + strings.Repeat("n", 256), strings.Repeat("n/", 2048) + "x", strings.Repeat("n/", 2500)[:4999]} {
		r := newRun(t)
		r.EditHashes(func(h map[string]any) { h[path] = bundletest.Hash("deep") })
		_, err := strict(t, r)
		checkReject(t, err, missingWant(path))
	}
}

// makeDeep makes a file at a path that is too long for one call.
func makeDeep(t *testing.T, root, path, content string) {
	t.Helper()
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY, 0)
	must(t, err)
	names := strings.Split(path, "/")
	for _, name := range names[:len(names)-1] {
		must(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		must(t, err)
		unix.Close(fd)
		fd = next
	}
	f, err := unix.Openat(fd, names[len(names)-1], unix.O_WRONLY|unix.O_CREAT, 0o644)
	must(t, err)
	_, err = unix.Write(f, []byte(content))
	must(t, err)
	unix.Close(f)
	unix.Close(fd)
}

// TestLegalNames: these are names like any other.
func TestLegalNames(t *testing.T) {
	outputs := map[string]string{}
	for _, name := range []string{
		"...", "..a", "a..", "%2e%2e/x", "\uff0e\uff0e/x", "..%00", "--json", "-rf", "proc/self/fd/3", " ", "a b", "\x1b[2J", "n\nl", "t\tb", "\u202e",
		"p|p", "`x`", "<script>", "A", "a", "\u00fc", "u\u0308", "RESTORE_REPORT.json", ".spectrum06_x", "*", "?", "\"", "'", "~", "\U0001f4a1", "\x7f", "\x01",
	} {
		outputs["odd/"+name] = "content of " + name
		outputs["top "+name] = name
	}
	r := bundletest.New(t).Run("run-1", outputs)
	b, err := strict(t, r)
	must(t, err)
	if got := pathsOf(b); len(got) != len(outputs) || !ascending(got) {
		t.Errorf("%d outputs of %d, ascending %v", len(got), len(outputs), ascending(got))
	}
	for path, content := range outputs {
		if got := readAll(t, outputAt(t, b, path)); got != content {
			t.Errorf("%q: read %q", path, got)
		}
	}
}

func ascending(paths []string) bool {
	for i := 1; i < len(paths); i++ {
		if paths[i-1] >= paths[i] {
			return false
		}
	}
	return true
}

// TestFileAndDirectory: of "a" and "a/b" only one can exist.
func TestFileAndDirectory(t *testing.T) {
	r := newRun(t)
	r.EditHashes(func(h map[string]any) { h["dist"], h["dist/a/b"] = bundletest.Hash(""), bundletest.Hash("") })
	_, err := strict(t, r)
	checkReject(t, err, missingWant("dist"))
	r.EditHashes(func(h map[string]any) { delete(h, "dist") })
	_, err = strict(t, r)
	checkReject(t, err, missingWant("dist/a/b"))
}

// TestFileWithoutSize: some file systems say 0 for files that have content.
// The size is that of what was hashed.
func TestFileWithoutSize(t *testing.T) {
	r := newRun(t)
	spoil(r, fault{content: edit(bundle.OutputHashes, set("hashes", map[string]any{"ostype": bundletest.Hash("Linux\n")}))})
	project, err := pathsafe.OpenRoot("/proc/sys/kernel")
	must(t, err)
	defer project.Close()
	run, err := verify.OpenRun(project, r.Dir)
	must(t, err)
	defer run.Close()
	b, err := verify.Strict(t.Context(), run, verify.Watch{})
	must(t, err)
	if o := outputAt(t, b, "ostype"); o.Size() != 6 || readAll(t, o) != "Linux\n" {
		t.Errorf("%d bytes", o.Size())
	}
}

// TestGrowingFile: one that grows without end is read to the size that it had.
func TestGrowingFile(t *testing.T) {
	r := newRun(t)
	must(t, os.Truncate(at(r, "dist/a"), 4<<20))
	f, err := os.OpenFile(at(r, "dist/a"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer f.Close()
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for chunk := make([]byte, 1<<10); ; {
			select {
			case <-stop:
				return
			default:
				_, _ = f.Write(chunk)
			}
		}
	}()
	_, err = strict(t, r)
	close(stop)
	<-done
	if reject := rejected(t, err); reject.Code != verify.HashMismatch || reject.Details["path"] != "dist/a" {
		t.Errorf("%v", err)
	}
}

// TestFileThatBecomesHuge grows to a terabyte once it has been opened. Only
// what it had then is read, so there is an answer.
func TestFileThatBecomesHuge(t *testing.T) {
	r := newRun(t)
	path := at(r, "dist/a")
	must(t, os.Truncate(path, 64<<20))
	opened := watchOpens(t, path)
	done := make(chan error)
	go func() {
		for opened.count(t) == 0 {
			time.Sleep(50 * time.Microsecond)
		}
		done <- os.Truncate(path, 1<<40)
	}()
	_, err := strict(t, r)
	must(t, <-done)
	if reject := rejected(t, err); reject.Code != verify.HashMismatch || reject.Details["path"] != "dist/a" {
		t.Errorf("%v", err)
	}
}
