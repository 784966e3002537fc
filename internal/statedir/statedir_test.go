package statedir_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

var id = strings.Repeat("0123456789abcdef", 4)

var must = harness.Must

func open(t testing.TB, path string) *statedir.Dir {
	t.Helper()
	d, err := statedir.Open(path)
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// TestOpenMakes: the directory is made where it is missing, with its parents,
// closed to others whatever the umask.
func TestOpenMakes(t *testing.T) {
	base := t.TempDir()
	defer syscall.Umask(syscall.Umask(0))
	d := open(t, filepath.Join(base, "a", "b"))
	for _, path := range []string{"a", "a/b"} {
		info, err := os.Stat(filepath.Join(base, path))
		must(t, err)
		if info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%q has mode %v", path, info.Mode())
		}
	}
	if d.Path() != filepath.Join(base, "a/b") || d.KeyPath() != filepath.Join(base, "a/b/key.pem") {
		t.Errorf("path %q, key %q", d.Path(), d.KeyPath())
	}
	must(t, d.SavePreview(id, []byte("x")))
	must(t, d.Use(id))
	for name, want := range map[string]fs.FileMode{"previews": fs.ModeDir | 0o700, "previews/" + id + ".json": 0o600, "previews/" + id + ".used": 0o600} {
		info, err := os.Stat(filepath.Join(d.Path(), name))
		must(t, err)
		if info.Mode() != want {
			t.Errorf("%q has mode %v, want %v", name, info.Mode(), want)
		}
	}
	again := open(t, d.Path())
	if raw, err := again.LoadPreview(id); err != nil || string(raw) != "x" {
		t.Errorf("%q, %v", raw, err)
	}
}

// TestOpenRelative: a path is made absolute once.
func TestOpenRelative(t *testing.T) {
	t.Chdir(t.TempDir())
	wd, err := os.Getwd()
	must(t, err)
	if d := open(t, "./x/../state/"); d.Path() != filepath.Join(wd, "state") {
		t.Errorf("path %q", d.Path())
	}
}

// TestOpenRejects: a directory that others could have written is neither opened nor repaired.
func TestOpenRejects(t *testing.T) {
	mode := func(perm uint32) func(string) error {
		return func(path string) error { return errors.Join(os.Mkdir(path, 0o700), unix.Chmod(path, perm)) }
	}
	for _, c := range []struct {
		name string
		make func(path string) error
		word string // what the operator reads
	}{
		{"group may list", mode(0o740), "mode 0740"},
		{"others may enter", mode(0o701), "mode 0701"},
		{"all", mode(0o777), "mode 0777"},
		{"all, sticky", mode(0o1777), "mode 1777"},
		{"another user's", func(path string) error { return errors.Join(os.Mkdir(path, 0o700), os.Chown(path, 12, 34)) }, "another user"},
		{"link", func(path string) error {
			return errors.Join(os.Mkdir(path+"-real", 0o700), os.Symlink(path+"-real", path))
		}, "symbolic link"},
		{"dangling link", func(path string) error { return os.Symlink("none", path) }, ""},
		{"file", func(path string) error { return os.WriteFile(path, nil, 0o600) }, ""},
		{"FIFO", func(path string) error { return unix.Mkfifo(path, 0o600) }, ""},
		{"below a file", func(path string) error {
			return errors.Join(os.Remove(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o600))
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "up", "state")
			must(t, os.Mkdir(filepath.Dir(path), 0o755))
			must(t, c.make(path))
			before, _ := os.Lstat(path)
			d, err := statedir.Open(path)
			if err == nil || d != nil {
				t.Fatalf("%v, %v", d, err)
			}
			if !strings.Contains(err.Error(), c.word) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %q", err)
			}
			if after, _ := os.Lstat(path); before != nil && after.Mode() != before.Mode() {
				t.Errorf("mode %v became %v", before.Mode(), after.Mode())
			}
		})
	}
}

// TestOpenAllowed: modes that give other users no access, and links above.
func TestOpenAllowed(t *testing.T) {
	base := t.TempDir()
	for _, perm := range []uint32{0o700, 0o2700, 0o1700} {
		path := filepath.Join(base, "state")
		must(t, os.Mkdir(path, 0o700))
		must(t, unix.Chmod(path, perm))
		open(t, path)
		must(t, os.Remove(path))
	}
	must(t, os.Mkdir(filepath.Join(base, "real"), 0o755))
	must(t, os.Symlink("real", filepath.Join(base, "link")))
	open(t, filepath.Join(base, "link", "state"))
}

// TestNoIDs: what is not a preview id names no file, not even one that is there.
func TestNoIDs(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	must(t, d.SavePreview(id, []byte("x")))
	must(t, os.WriteFile(filepath.Join(d.Path(), "x.json"), []byte("secret"), 0o600))
	for _, bad := range []string{
		"", ".", "..", "../x", "x", id[:63], id + "0", strings.ToUpper(id), id[:63] + "g", "g" + id[1:], id[:32] + "/" + id[33:],
		id[:31] + ".." + id[33:], id[:63] + "\x00", id[:63] + "\n", " " + id[1:], id[:60] + "../x"[:4], strings.Repeat("é", 32),
		strings.Repeat("../", 21) + "x", id + ".json",
	} {
		if raw, err := d.LoadPreview(bad); !errors.Is(err, fs.ErrNotExist) || raw != nil {
			t.Errorf("LoadPreview(%q) = %q, %v", bad, raw, err)
		}
		if err := d.SavePreview(bad, nil); err == nil {
			t.Errorf("SavePreview(%q) went well", bad)
		}
		if err := d.Use(bad); err == nil || errors.Is(err, fs.ErrExist) {
			t.Errorf("Use(%q) = %v", bad, err)
		}
	}
	want := []string{"previews", "previews/" + id + ".json", "x.json"}
	if got := names(t, d.Path()); !reflect.DeepEqual(got, want) {
		t.Errorf("files %q", got)
	}
}

func names(t testing.TB, dir string) (list []string) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, rel)
		}
		return err
	}))
	return list
}

// TestPreviewsAreKept: whole; one that is shown again is good again.
func TestPreviewsAreKept(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	if raw, err := d.LoadPreview(id); !errors.Is(err, fs.ErrNotExist) || raw != nil {
		t.Errorf("before it was kept: %q, %v", raw, err)
	}
	data := bytes.Repeat([]byte("preview\x00"), 1<<17)
	must(t, d.SavePreview(id, data))
	must(t, d.Use(id))
	for _, again := range [][]byte{data[1:], data} {
		must(t, d.SavePreview(id, again))
		if raw, err := d.LoadPreview(id); err != nil || !bytes.Equal(raw, again) {
			t.Errorf("%d bytes, %v", len(raw), err)
		}
		must(t, d.Use(id))
		if err := d.Use(id); !errors.Is(err, fs.ErrExist) {
			t.Errorf("used twice: %v", err)
		}
	}
	if got := names(t, d.Path()); len(got) != 3 {
		t.Errorf("files %q", got)
	}
}

// TestLoadRejects: a record that is not a file is not read, and does not block.
func TestLoadRejects(t *testing.T) {
	for what, with := range map[string]func(string) error{
		"link":      func(name string) error { return os.Symlink("/etc/passwd", name) },
		"FIFO":      func(name string) error { return unix.Mkfifo(name, 0o600) },
		"directory": func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		d := open(t, filepath.Join(t.TempDir(), "state"))
		must(t, os.Mkdir(filepath.Join(d.Path(), "previews"), 0o700))
		must(t, with(filepath.Join(d.Path(), "previews", id+".json")))
		if raw, err := d.LoadPreview(id); err == nil || raw != nil {
			t.Errorf("%s: %q, %v", what, raw, err)
		}
	}
}

// TestPreviewsElsewhere: the directory of previews is one of ours, not a link
// to somewhere.
func TestPreviewsElsewhere(t *testing.T) {
	d, outside := open(t, filepath.Join(t.TempDir(), "state")), t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(d.Path(), "previews")))
	if d.SavePreview(id, nil) == nil || d.Use(id) == nil {
		t.Error("it went through the link")
	}
	if got := names(t, outside); len(got) > 0 {
		t.Errorf("files %q", got)
	}
}

// TestPreviewIsUsedOnlyOnce: once, for this handle and any other.
func TestPreviewIsUsedOnlyOnce(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	if used, err := d.Used(id); used || err != nil {
		t.Errorf("before anything was kept: used %v, %v", used, err)
	}
	must(t, d.Use(id))
	for _, again := range []*statedir.Dir{d, open(t, d.Path())} {
		if used, err := again.Used(id); !used || err != nil {
			t.Errorf("used %v, %v", used, err)
		}
		if err := again.Use(id); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v", err)
		}
	}
	must(t, d.Use(strings.Repeat("f", 64)))
}

// TestUseMarks: any mark counts, whatever it is: a preview cannot be used again by putting
// something odd there.
func TestUseMarks(t *testing.T) {
	for _, with := range []func(string) error{
		func(name string) error { return os.Symlink("none", name) },
		func(name string) error { return os.Mkdir(name, 0o700) },
		func(name string) error { return unix.Mkfifo(name, 0o600) },
	} {
		d := open(t, filepath.Join(t.TempDir(), "state"))
		must(t, os.Mkdir(filepath.Join(d.Path(), "previews"), 0o700))
		must(t, with(filepath.Join(d.Path(), "previews", id+".used")))
		if err := d.Use(id); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%v", err)
		}
	}
}

// TestUsedByMany: of many at once, through handles of their own, one wins.
func TestUsedByMany(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	for round := range 10 {
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() {
				d, err := statedir.Open(path)
				if err != nil {
					errs[i] = err
					return
				}
				defer d.Close()
				errs[i] = d.Use(id[round:] + id[:round])
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, fs.ErrExist) {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Fatalf("round %d: %d won", round, won)
		}
	}
}

// TestSavedWhole: a reader of a record gets all of it, and of many that are saved under one id
// the first stays.
func TestSavedWhole(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	for round := range 10 {
		id := id[round:] + id[:round]
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				err := d.SavePreview(id, bytes.Repeat([]byte{'a' + byte(i)}, 1<<20))
				if err != nil && !errors.Is(err, fs.ErrExist) {
					t.Error(err)
				}
			})
			wg.Go(func() {
				raw, err := d.LoadPreview(id)
				if err == nil && (len(raw) != 1<<20 || bytes.Count(raw, raw[:1]) != len(raw)) {
					t.Errorf("a part of a record: %d bytes", len(raw))
				}
			})
		}
		wg.Wait()
	}
}

// TestFullDisk: nothing appears, and no temporary file is left.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	must(t, os.Mkdir(path, 0o700))
	must(t, unix.Mount("tmpfs", path, "tmpfs", 0, "size=64k,mode=0700"))
	t.Cleanup(func() { must(t, unix.Unmount(path, unix.MNT_DETACH)) })
	d := open(t, path)
	if err := d.SavePreview(id, make([]byte, 1<<20)); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
	if got := names(t, path); !reflect.DeepEqual(got, []string{"previews"}) {
		t.Errorf("files %q", got)
	}
	must(t, d.SavePreview(id, []byte("x")))
}

// TestClosedDirectoryKeepsNothing: a closed directory keeps nothing.
func TestClosedDirectoryKeepsNothing(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	must(t, d.Close())
	if raw, err := d.LoadPreview(id); err == nil || raw != nil {
		t.Errorf("%q, %v", raw, err)
	}
	if d.SavePreview(id, nil) == nil || d.Use(id) == nil {
		t.Error("it was written to")
	}
}

// TestDefault: where it is if no option or variable sets it.
func TestDefault(t *testing.T) {
	me, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	must(t, err)
	for _, c := range []struct{ xdg, home, want string }{
		{"/xdg", "/home/u", "/xdg/spectrum"},
		{"/xdg/../y/", "/home/u", "/y/spectrum"},
		{"", "/home/u", "/home/u/.local/state/spectrum"},
		{"relative", "/home/u", "/home/u/.local/state/spectrum"}, // as the XDG specification has it
		{"", "", me.HomeDir + "/.local/state/spectrum"},          // as at boot
	} {
		t.Setenv("XDG_STATE_HOME", c.xdg)
		t.Setenv("HOME", c.home)
		got, err := statedir.Default()
		if got != c.want || err != nil {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

// TestJournalKey: it is made once, also by many processes at a time, and no other user can read
// or shorten it.
func TestJournalKey(t *testing.T) {
	path := t.TempDir()
	must(t, os.Chmod(path, 0o700))
	keys := make(chan string, 20)
	for range 20 {
		go func() {
			d, err := statedir.Open(path)
			if err != nil {
				keys <- err.Error()
				return
			}
			defer d.Close()
			key, err := d.JournalKey()
			keys <- fmt.Sprintf("%x %v", key, err)
		}()
	}
	first := <-keys
	for range 19 {
		if again := <-keys; again != first {
			t.Errorf("%s, and %s", first, again)
		}
	}
	info, err := os.Stat(filepath.Join(path, "journal.key"))
	must(t, err)
	if len(first) != 64+len(" <nil>") || info.Mode() != 0o600 {
		t.Errorf("%s, mode %v", first, info.Mode())
	}
	must(t, os.Truncate(filepath.Join(path, "journal.key"), 31))
	d, err := statedir.Open(path)
	must(t, err)
	defer d.Close()
	if key, err := d.JournalKey(); err == nil || key != nil {
		t.Errorf("a short key: %x", key)
	}
}

func TestHalts(t *testing.T) {
	path := t.TempDir()
	must(t, os.Chmod(path, 0o700))
	d, err := statedir.Open(path)
	must(t, err)
	defer d.Close()
	const attempt = "11111111-2222-4333-8444-555555555555"
	must(t, d.Release(attempt)) // of what was never halted
	for range 2 {
		if isHalted(d, attempt) {
			t.Error("halted before")
		}
		must(t, d.Halt(attempt))
		must(t, d.Halt(attempt))
		if !isHalted(d, attempt) {
			t.Error("not halted")
		}
		must(t, d.Release(attempt))
	}
	for _, name := range []string{"", ".", "../x", "a/b"} {
		if d.Halt(name) == nil || isHalted(d, name) {
			t.Errorf("%q was taken", name)
		}
	}
}

func isHalted(d *statedir.Dir, attempt string) bool {
	halted, _ := d.Halted(attempt)
	return halted
}

// TestHaltedUnknown: what cannot be looked at counts as halted.
func TestHaltedUnknown(t *testing.T) {
	path := t.TempDir()
	must(t, os.Chmod(path, 0o700))
	d := open(t, path)
	const attempt = "11111111-2222-4333-8444-555555555555"
	if isHalted(d, attempt) {
		t.Error("an attempt is halted of which nothing is known")
	}
	must(t, os.WriteFile(filepath.Join(path, "halts"), nil, 0o600))
	if !isHalted(d, attempt) {
		t.Error("what could not be looked at was read as not halted")
	}
	if _, err := d.Halted(attempt); err == nil {
		t.Error("it is not said why")
	}
	if err := d.Release(attempt); err == nil {
		t.Error("it was released")
	}
}

// TestPlaces: each is made closed to others, found again, and never through a link.
func TestPlaces(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	defer syscall.Umask(syscall.Umask(0))
	d := open(t, path)
	quarantine := func() (string, error) {
		dir, err := d.Quarantine()
		if err != nil {
			return "", err
		}
		return dir.Name(), dir.Close()
	}
	for name, place := range map[string]func() (string, error){"trust": d.TrustPlace, "quarantine": quarantine} {
		want := filepath.Join(d.Path(), name)
		for range 2 {
			if path, err := place(); err != nil || path != want {
				t.Errorf("%q, %v", path, err)
			}
		}
		info, err := os.Stat(want)
		must(t, err)
		if info.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%q has mode %v", name, info.Mode())
		}
		must(t, os.Remove(want))
		must(t, os.Symlink(t.TempDir(), want))
		if path, err := place(); err == nil || path != "" {
			t.Errorf("%q through a link", path)
		}
	}
}

// TestLogs: they are appended to, no other user can write them, and something else in their place
// is rejected and not waited for.
func TestLogs(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	t.Run("view", func(t *testing.T) { testLog(t, filepath.Join(d.Path(), "view.log"), d.ViewLog) })
	t.Run("audit", func(t *testing.T) { testLog(t, filepath.Join(d.Path(), "audit.log"), d.AuditLog) })
}

func testLog(t *testing.T, path string, open func() (*os.File, error)) {
	for _, line := range []string{"one\n", "two\n"} {
		f, err := open()
		must(t, err)
		_, err = f.WriteString(line)
		must(t, errors.Join(err, f.Close()))
	}
	raw, err := os.ReadFile(path)
	must(t, err)
	info, err := os.Stat(path)
	must(t, err)
	if string(raw) != "one\ntwo\n" || info.Mode() != 0o600 {
		t.Errorf("%q, mode %v", raw, info.Mode())
	}
	stolen := filepath.Join(t.TempDir(), "stolen")
	for what, with := range map[string]func() error{
		"link":          func() error { return os.Symlink(stolen, path) },
		"directory":     func() error { return os.Mkdir(path, 0o700) },
		"FIFO":          func() error { return unix.Mkfifo(path, 0o600) },
		"FIFO, read by": func() error { return errors.Join(unix.Mkfifo(path, 0o600), readFIFO(t, path)) },
		"device":        func() error { return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) },
	} {
		must(t, os.Remove(path))
		must(t, with())
		if f, err := open(); err == nil || f != nil || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("%s: %v, %v", what, f, err)
		}
	}
	if _, err := os.Lstat(stolen); err == nil {
		t.Error("it was made through the link")
	}
}

// readFIFO has the FIFO read until the test ends, so that it can be opened.
func readFIFO(t *testing.T, path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK, 0)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return err
}

// TestViewLogMoved: it is in the directory that was opened, wherever that is now.
func TestViewLogMoved(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	moved := d.Path() + "-moved"
	must(t, errors.Join(os.Rename(d.Path(), moved), os.Mkdir(d.Path(), 0o700)))
	f, err := d.ViewLog()
	must(t, err)
	f.Close()
	if got := names(t, moved); !reflect.DeepEqual(got, []string{"view.log"}) || len(names(t, d.Path())) > 0 {
		t.Errorf("files %q", got)
	}
}

// TestAttempts: each root has its own count, whatever its path looks like, and
// every handle sees it.
func TestAttempts(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	want := map[string]int64{"/": 1, "/a": 2, "/a/": 2, "/a b\n": 1, strings.Repeat("/long", 1000): 3, "/none": 0}
	for _, root := range []string{"/", "/a", "/a/", "/a b\n"} {
		must(t, d.Attempt(root))
	}
	for range 3 {
		must(t, open(t, d.Path()).Attempt(strings.Repeat("/long", 1000)))
	}
	for root, n := range want {
		if got, err := d.Attempts(root); err != nil || got != n {
			t.Errorf("%.20q: %d, %v; want %d", root, got, err, n)
		}
	}
}

// TestAttemptsOdd: what is not a count is an error, and never zero.
func TestAttemptsOdd(t *testing.T) {
	for what, with := range map[string]func(string) error{
		"link":      func(name string) error { return os.Symlink("/etc/passwd", name) },
		"FIFO":      func(name string) error { return unix.Mkfifo(name, 0o600) },
		"directory": func(name string) error { return os.Mkdir(name, 0o700) },
	} {
		d := open(t, filepath.Join(t.TempDir(), "state"))
		must(t, d.Attempt("/a"))
		found, err := filepath.Glob(filepath.Join(d.Path(), "attempts", "*"))
		must(t, err)
		must(t, os.Remove(found[0]))
		must(t, with(found[0]))
		if n, err := d.Attempts("/a"); err == nil || n != 0 {
			t.Errorf("%s: %d, %v", what, n, err)
		}
		if d.Attempt("/a") == nil {
			t.Errorf("%s: counted", what)
		}
	}
}

// TestDerived: a fresh directory each time.
func TestDerived(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	one, err := d.Derived(id)
	must(t, err)
	two, err := d.Derived(id)
	must(t, err)
	if one == two || len(names(t, one))+len(names(t, two)) != 0 {
		t.Errorf("%q and %q", one, two)
	}
}

// TestSavepoints: the directory is made once, private, and nothing else is taken
// for it.
func TestSavepoints(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, err := statedir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 2 {
		got, err := d.Savepoints()
		if want := filepath.Join(path, "savepoints"); err != nil || got.Name() != want {
			t.Fatalf("%v, %v", got, err)
		} else if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Lstat(path + "/savepoints"); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if got := d.HostKey(); got != filepath.Join(path, "host.pem") {
		t.Errorf("host key %q", got)
	}
	if err := errors.Join(os.Remove(path+"/savepoints"), os.Symlink(t.TempDir(), path+"/savepoints")); err != nil {
		t.Fatal(err)
	}
	if got, err := d.Savepoints(); err == nil || got != nil {
		t.Errorf("a link: %v", got)
	}
}

// TestSnapshots: the directory is made once, private, as that of savepoints is.
func TestSnapshots(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	d, err := statedir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 2 {
		got, err := d.Snapshots()
		if want := filepath.Join(path, "snapshots"); err != nil || got.Name() != want {
			t.Fatalf("%v, %v", got, err)
		} else if err := got.Close(); err != nil {
			t.Error(err)
		}
	}
	if info, err := os.Lstat(path + "/snapshots"); err != nil || !info.IsDir() || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

// TestFindPreview: one preview is found by the beginning of its id, and no other name is.
func TestFindPreview(t *testing.T) {
	path := t.TempDir()
	must(t, os.Chmod(path, 0o700))
	d := open(t, path)
	one, two := strings.Repeat("ab", 32), strings.Repeat("ab", 31)+"cd"
	for _, id := range []string{one, two, strings.Repeat("0", 64)} {
		must(t, d.SavePreview(id, nil))
	}
	must(t, d.Use(one)) // a mark next to its record
	for prefix, want := range map[string]string{one: one, two[:63]: two, "00000000": strings.Repeat("0", 64)} {
		if got, err := d.FindPreview(prefix, 8); got != want || err != nil {
			t.Errorf("%q: %q, %v", prefix, got, err)
		}
	}
	for _, prefix := range []string{"", "0000000", "00000000.", "../00000", "ABABABAB", "ffffffff", one + "a"} {
		if got, err := d.FindPreview(prefix, 8); got != "" || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%q: %q, %v", prefix, got, err)
		}
	}
	if got, err := d.FindPreview("abababab", 8); got != "" || err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("two of them: %q, %v", got, err)
	}
}
