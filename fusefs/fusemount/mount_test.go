package fusemount

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// sharedSource is a directory for what [source] makes. TestMain removes it.
var sharedSource string

// source is a small tree to serve, which no test may change.
func source(t *testing.T) string {
	t.Helper()
	if sharedSource == "" {
		dir, err := os.MkdirTemp("", "fusefs-source-")
		if err != nil {
			t.Fatal(err)
		}
		sharedSource = dir
		makeSource(t, dir)
	}
	return sharedSource
}

// ownSource is the same tree for a test that changes it.
func ownSource(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	makeSource(t, dir)
	return dir
}

// makeSource makes nested directories, an empty file, odd names, modes and times,
// and a file of many blocks.
func makeSource(t *testing.T, dir string) {
	t.Helper()
	random := rand.NewChaCha8([32]byte{1})
	put := func(path string, size int, mode fs.FileMode, age time.Duration) {
		data := make([]byte, size)
		_, _ = random.Read(data)
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, data, 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Date(2024, 5, 6, 7, 8, 9, 123456789, time.UTC).Add(-age)
		if err := errors.Join(os.Chmod(full, mode), os.Chtimes(full, when, when)); err != nil {
			t.Fatal(err)
		}
	}
	put("a/empty", 0, 0o644, time.Hour)
	put("a/one", 1, 0o600, 2*time.Hour)
	put("a/b/c/d/deep", 5000, 0o444, 3*time.Hour)
	put("a-b", 4096, 0o755, 4*time.Hour)
	put("bin/tool", 4097, fs.ModeSetuid|0o4755&0o777, 5*time.Hour)
	put("odd/ space, comma\\ \xff\x01\n", 10, 0o640, 6*time.Hour)
	put("odd/-"+strings.Repeat("n", 254), 10, 0o640, 6*time.Hour)
	put("big/file", 8<<20+123, 0o644, 7*time.Hour)
	for i := range 300 { // more than one page of names
		put(fmt.Sprintf("many/file-%03d", i), i, 0o644, time.Duration(i)*time.Hour)
	}
}

func TestMountShowsTheTree(t *testing.T) {
	src := source(t)
	for name, o := range map[string]orders{
		"direct":      {},
		"fusermount3": {Helper: true},
		"old kernel":  {AskOpen: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Source = src
			c := serveView(t, o)
			for range 2 { // from the server, then from the kernel's cache
				client(t, "diff", "-r", src, c.mount)
				compareTrees(t, src, c.mount)
			}
			client(t, "cat", filepath.Join(c.mount, "big/file"))
		})
	}
}

func TestMountOneProcessor(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src}, "GOMAXPROCS=1")
	client(t, "diff", "-r", src, c.mount)
	signalAndExit(t, c, unix.SIGTERM)
}

// compareTrees compares what find and stat see.
func compareTrees(t *testing.T, src, view string) {
	t.Helper()
	list := func(root, format string, more ...string) string {
		args := append([]string{root, "-mindepth", "1"}, more...)
		out := strings.Split(client(t, "find", append(args, "-printf", format)...), "\x00")
		slices.Sort(out)
		return strings.Join(out, "\x00")
	}
	for _, what := range []struct{ format, kind string }{
		{`%P\0`, "d"},
		{`%P %y %s %T@ %n\0`, "f"},
	} {
		if want, got := list(src, what.format, "-type", what.kind), list(view, what.format, "-type", what.kind); got != want {
			t.Errorf("the view has\n%q\nwant\n%q", got, want)
		}
	}
	err := filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(src, path)
		var want, got unix.Stat_t
		if err := errors.Join(unix.Lstat(path, &want), unix.Lstat(filepath.Join(view, rel), &got)); err != nil {
			return err
		}
		mode := want.Mode &^ 0o7222
		if d.IsDir() {
			mode = unix.S_IFDIR | 0o555
		}
		if got.Mode != mode || got.Nlink != want.Nlink || got.Uid != uint32(os.Geteuid()) || got.Gid != uint32(os.Getegid()) {
			t.Errorf("%q: mode %o links %d owner %d:%d, want %o %d", rel, got.Mode, got.Nlink, got.Uid, got.Gid, mode, want.Nlink)
		}
		if !d.IsDir() && got.Blocks != (want.Size+511)/512 {
			t.Errorf("%q: %d blocks of %d bytes", rel, got.Blocks, want.Size)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestMountTable(t *testing.T) {
	src := source(t)
	for name, o := range map[string]orders{
		"direct":                 {},
		"fusermount3":            {Helper: true},
		"direct, all users":      {AllowOther: true, Exec: true},
		"fusermount3, all users": {Helper: true, AllowOther: true, Exec: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.Source = src
			c := serveView(t, o)
			found, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(c.mount))
			if err != nil || len(found) != 1 {
				t.Fatalf("%v, %v", found, err)
			}
			m := found[0]
			for option, want := range map[string]bool{"ro": true, "nosuid": true, "nodev": true, "noexec": !o.Exec} {
				if slices.Contains(strings.Split(m.Options, ","), option) != want {
					t.Errorf("mounted %s, want %s: %v", m.Options, option, want)
				}
			}
			data := strings.Split(m.VFSOptions, ",")
			if !slices.Contains(data, "ro") || !slices.Contains(data, "default_permissions") ||
				slices.Contains(data, "allow_other") != o.AllowOther {
				t.Errorf("file system options %s", m.VFSOptions)
			}
			if m.FSType != "fuse.spectrum" || m.Source != `test, source \ with? odd characters` {
				t.Errorf("type %q source %q", m.FSType, m.Source)
			}
			err = runClient(filepath.Join(c.mount, "bin/tool")) // random bytes: never runs, but why?
			if errors.Is(err, fs.ErrPermission) == o.Exec {
				t.Errorf("running a program with exec=%v: %v", o.Exec, err)
			}
		})
	}
}

func TestMountIsReadOnly(t *testing.T) {
	src := source(t)
	before := client(t, "find", src, "-printf", `%P %y %m %s %T@\0`)
	c := serveView(t, orders{Source: src})
	at := func(name string) string { return filepath.Join(c.mount, name) }
	open := func(name string, flags int) error {
		fd, err := unix.Open(name, flags, 0o644)
		if err == nil {
			err = unix.Close(fd)
		}
		return err
	}
	file, dir := at("a/one"), at("a")
	for what, err := range map[string]error{
		"open to write":      open(file, unix.O_WRONLY),
		"open to read+write": open(file, unix.O_RDWR),
		"open to append":     open(file, unix.O_WRONLY|unix.O_APPEND),
		"open and truncate":  open(file, unix.O_RDONLY|unix.O_TRUNC),
		"create":             open(at("new"), unix.O_CREAT|unix.O_WRONLY),
		"create to read":     open(at("new"), unix.O_CREAT|unix.O_RDONLY),
		"create unnamed":     open(dir, unix.O_TMPFILE|unix.O_RDWR),
		"mkdir":              unix.Mkdir(at("new"), 0o755),
		"mknod":              unix.Mknod(at("new"), unix.S_IFREG|0o644, 0),
		"mkfifo":             unix.Mkfifo(at("new"), 0o644),
		"symlink":            unix.Symlink("x", at("new")),
		"link":               unix.Link(file, at("new")),
		"rename":             unix.Rename(file, at("new")),
		"exchange":           unix.Renameat2(unix.AT_FDCWD, file, unix.AT_FDCWD, at("a-b"), unix.RENAME_EXCHANGE),
		"unlink":             unix.Unlink(file),
		"rmdir":              unix.Rmdir(at("a/b/c/d")),
		"truncate":           unix.Truncate(file, 0),
		"chmod":              unix.Chmod(file, 0o777),
		"chmod dir":          unix.Chmod(dir, 0o777),
		"chown":              unix.Chown(file, 1, 1),
		"utimes":             unix.Utimes(file, make([]unix.Timeval, 2)),
		"setxattr":           unix.Setxattr(file, "user.x", []byte("y"), 0),
		"removexattr":        unix.Removexattr(file, "user.x"),
		"remount":            unix.Access(file, unix.W_OK),
	} {
		if !errors.Is(err, unix.EROFS) {
			t.Errorf("%s: %v, want EROFS", what, err)
		}
	}
	if after := client(t, "find", src, "-printf", `%P %y %m %s %T@\0`); after != before {
		t.Error("the source has changed")
	}
	client(t, "diff", "-r", src, c.mount)
}

func TestMountXattrAndStatfs(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src})
	file := filepath.Join(c.mount, "a/one")
	if n, err := unix.Listxattr(file, make([]byte, 100)); n != 0 || err != nil {
		t.Errorf("listxattr: %d, %v", n, err)
	}
	if _, err := unix.Getxattr(file, "user.x", make([]byte, 100)); err != unix.ENODATA {
		t.Errorf("getxattr user.x: %v", err)
	}
	if _, err := unix.Getxattr(file, "system.posix_acl_access", make([]byte, 100)); err != unix.ENOTSUP {
		t.Errorf("getxattr of an ACL: %v", err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(c.mount, &st); err != nil {
		t.Fatal(err)
	}
	files := strings.Count(client(t, "find", src, "-printf", "x"), "x")
	if st.Files != uint64(files) || st.Bfree != 0 || st.Bavail != 0 || st.Bsize != 4096 || st.Namelen != 255 {
		t.Errorf("%+v, want %d files", st, files)
	}
	if bytes := st.Blocks * 4096; bytes < 8<<20 || bytes > 10<<20 {
		t.Errorf("%d blocks", st.Blocks)
	}
}

func TestMountTamperedBlock(t *testing.T) {
	src := ownSource(t)
	c := serveView(t, orders{Source: src})
	view := filepath.Join(c.mount, "big/file")
	want, err := os.ReadFile(filepath.Join(src, "big/file"))
	if err != nil {
		t.Fatal(err)
	}
	f := openUncached(t, view)
	if !readsAs(f, want, 0) {
		t.Fatal("block 0 does not read")
	}
	const bad = 700
	harness.Flip(t, filepath.Join(src, "big/file"), 0)
	harness.Flip(t, filepath.Join(src, "big/file"), bad*testBlock+17)
	for range 3 {
		if _, err := f.ReadAt(make([]byte, testBlock), bad*testBlock); !errors.Is(err, unix.EIO) {
			t.Fatalf("tampered block: %v, want EIO", err)
		}
	}
	for _, block := range []int{bad - 1, bad + 1, 2000, 0} { // 0 was checked before it was changed
		if !readsAs(f, want, block) {
			t.Errorf("block %d does not read", block)
		}
	}
	if client(t, "cat", filepath.Join(c.mount, "a/b/c/d/deep")) == "" {
		t.Error("another file does not read")
	}
	harness.Flip(t, filepath.Join(src, "big/file"), bad*testBlock+17) // as it was
	if !readsAs(f, want, bad) {
		t.Error("the block does not read although it is right again")
	}
	if got := c.line("tamper"); got != "big/file" {
		t.Errorf("OnTamper received %q", got)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	signalAndExit(t, c, unix.SIGTERM) // the log is complete
	if got := strings.Count(c.log(), "block 700 is not what was signed"); got != 1 {
		t.Errorf("logged %d times:\n%s", got, c.log())
	}
	if !strings.Contains(c.log(), "level=ERROR") || !strings.Contains(c.log(), "path=big/file") {
		t.Errorf("log: %s", c.log())
	}
}

// TestMountSourceGone has a source truncated, removed, replaced by a directory.
func TestMountSourceGone(t *testing.T) {
	src := ownSource(t)
	c := serveView(t, orders{Source: src})
	at := func(name string) string { return filepath.Join(src, name) }
	err := errors.Join(
		os.Truncate(at("big/file"), 3*testBlock+5),
		os.Remove(at("many/file-299")),
		os.Remove(at("many/file-298")),
		os.Mkdir(at("many/file-298"), 0o755))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"big/file", "many/file-299", "many/file-298"} {
		err := runClient("cat", filepath.Join(c.mount, name))
		if err == nil || !strings.Contains(err.Error(), "Input/output error") {
			t.Errorf("%s: %v, want an I/O error", name, err)
		}
	}
	f := openUncached(t, filepath.Join(c.mount, "big/file"))
	if _, err := f.ReadAt(make([]byte, testBlock), 2*testBlock); err != nil {
		t.Errorf("a block that is left: %v", err)
	}
	client(t, "diff", at("many/file-297"), filepath.Join(c.mount, "many/file-297"))
}

func TestMountPastTheEnd(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src})
	f := openUncached(t, filepath.Join(c.mount, "bin/tool")) // 4097 bytes
	for off, want := range map[int64]int{0: 4097, 4096: 1, 4097: 0, 4098: 0, 1 << 20: 0, 1 << 40: 0, 1 << 62: 0, 1<<63 - 8192: 0} {
		n, err := unix.Pread(int(f.Fd()), make([]byte, 8000), off)
		if n != want || err != nil {
			t.Errorf("offset %d: %d bytes, %v, want %d", off, n, err, want)
		}
	}
	if log := c.log(); log != "" {
		t.Errorf("log: %s", log)
	}
}

func TestMountManyReaders(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src, NoFile: 64})
	want, err := os.ReadFile(filepath.Join(src, "big/file"))
	if err != nil {
		t.Fatal(err)
	}
	f := openUncached(t, filepath.Join(c.mount, "big/file"))
	var wg sync.WaitGroup
	for i := range 2000 {
		wg.Go(func() {
			if !readsAs(f, want, i) {
				t.Errorf("block %d does not read", i)
			}
		})
	}
	wg.Wait()
	threads := client(t, "ls", fmt.Sprintf("/proc/%d/task", c.cmd.Process.Pid))
	if n := strings.Count(threads, "\n"); n > 100 {
		t.Errorf("the server has %d threads", n)
	}
}

func TestMountManyFilesFewDescriptors(t *testing.T) {
	src := source(t)
	c := serveView(t, orders{Source: src, NoFile: 64})
	var files []*os.File
	for i := range 200 {
		f, err := os.Open(filepath.Join(c.mount, fmt.Sprintf("many/file-%03d", 100+i)))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	var wg sync.WaitGroup
	for i, f := range files {
		wg.Go(func() {
			want, _ := os.ReadFile(filepath.Join(src, fmt.Sprintf("many/file-%03d", 100+i)))
			got := make([]byte, 1000)
			n, err := unix.Pread(int(f.Fd()), got, 0)
			if err != nil || !bytes.Equal(got[:n], want) {
				t.Errorf("file %d: %d bytes, %v", i, n, err)
			}
		})
	}
	wg.Wait()
	if fds := strings.Count(client(t, "ls", fmt.Sprintf("/proc/%d/fd", c.cmd.Process.Pid)), "\n"); fds > 40 {
		t.Errorf("the server has %d descriptors open", fds)
	}
	if log := c.log(); log != "" {
		t.Errorf("log: %s", log)
	}
}

// openUncached opens a file without read-ahead.
func openUncached(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM); err != nil {
		t.Fatal(err)
	}
	return f
}

// readsAs reports whether a block reads as it is in want.
func readsAs(f *os.File, want []byte, block int) bool {
	got := make([]byte, testBlock)
	n, err := f.ReadAt(got, int64(block)*testBlock)
	return err == nil && bytes.Equal(got[:n], want[block*testBlock:(block+1)*testBlock])
}
