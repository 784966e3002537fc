package view

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// A change is what may happen to a source. aside is a path beside it.
type change struct {
	do   func(path, aside string) error
	fine bool // the bytes that were signed are still there
}

// changes are by the name of the file that they happen to, which stands in a
// directory of its own.
var changes = map[string]change{
	"truncated":        {do: func(path, _ string) error { return os.Truncate(path, 70_000) }},
	"emptied":          {do: func(path, _ string) error { return os.Truncate(path, 0) }},
	"overwritten":      {do: func(path, _ string) error { return overwrite(path, false) }},
	"grown":            {do: func(path, _ string) error { return overwrite(path, true) }, fine: true},
	"replaced":         {do: func(path, aside string) error { return replace(path, aside, other) }},
	"copied":           {do: func(path, aside string) error { return replace(path, aside, nil) }, fine: true},
	"removed":          {do: func(path, _ string) error { return os.Remove(path) }},
	"moved":            {do: os.Rename},
	"fifo":             {do: func(path, aside string) error { return replace(path, aside, special(unix.S_IFIFO, 0)) }},
	"socket":           {do: func(path, aside string) error { return replace(path, aside, special(unix.S_IFSOCK, 0)) }},
	"zero device":      {do: func(path, aside string) error { return replace(path, aside, special(unix.S_IFCHR, 0x105)) }},
	"block device":     {do: func(path, aside string) error { return replace(path, aside, special(unix.S_IFBLK, 0x7ff)) }},
	"directory":        {do: func(path, aside string) error { return errors.Join(os.Rename(path, aside), os.Mkdir(path, 0o755)) }},
	"link to the same": {do: func(path, aside string) error { return errors.Join(os.Rename(path, aside), os.Symlink("aside", path)) }},
	"loop":             {do: func(path, _ string) error { return errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path)) }},
	"dangling":         {do: func(path, _ string) error { return errors.Join(os.Remove(path), os.Symlink("nowhere", path)) }},
	"unreadable":       {do: func(path, _ string) error { return os.Chmod(path, 0) }},
	"parent is a link": {do: func(path, _ string) error { return moveParent(path, os.Symlink) }},
	"parent is a fifo": {do: func(path, _ string) error {
		return moveParent(path, func(_, dir string) error { return unix.Mkfifo(dir, 0o644) })
	}},
}

// overwrite writes over the end of a file, or after it.
func overwrite(path string, after bool) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	off := info.Size()
	if !after {
		off -= 5
	}
	_, err = f.WriteAt([]byte("other"), off)
	return err
}

// replace renames something over a file: a copy of it unless make says what.
func replace(path, aside string, make func(aside string) error) error {
	if make == nil {
		make = func(aside string) error {
			content, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(aside, content, 0o644))
		}
	}
	return errors.Join(make(aside), os.Rename(aside, path))
}

func other(aside string) error { return os.WriteFile(aside, []byte("other"), 0o644) }

func special(kind uint32, device int) func(string) error {
	return func(aside string) error { return unix.Mknod(aside, kind|0o644, device) }
}

// moveParent moves the directory of a file away and puts something in its place.
func moveParent(path string, put func(moved, dir string) error) error {
	dir := filepath.Dir(path)
	moved := dir + " moved"
	return errors.Join(os.Rename(dir, moved), put(moved, dir))
}

// TestSources makes every kind of change to the sources, while readers read. A file that was not
// open reads as EIO, a file that was being read is right or EIO, the rest is served; nothing
// hangs, and only regular files are ever opened.
func TestSources(t *testing.T) {
	for name, m := range map[string]harness.Mounting{
		// Root may read what is unreadable, unless it gives that up.
		"plain": {Under: []string{"setpriv", "--bounding-set=-dac_override,-dac_read_search"}},
		"race":  {Binary: withRace(t).Binary, Under: []string{"setpriv", "--bounding-set=-dac_override,-dac_read_search"}},
	} {
		t.Run(name, func(t *testing.T) { changeSources(t, m) })
	}
}

func changeSources(t *testing.T, m harness.Mounting) {
	files, loose := sizes{"fine/a": 3 << 20, "fine/b": 100}, map[string]bool{}
	for name := range changes {
		files["hot/"+name+"/"+name], files["cold/"+name+"/"+name] = 300_000, 200_001
		loose["hot/"+name+"/"+name] = true
	}
	p := harness.New(t, files.files())
	v := p.Mount(t, m)
	hot := sizes{"fine/a": files["fine/a"]}
	for name := range loose {
		hot[name] = files[name]
	}
	before := startReaders(t, orders{View: v.Dir, Expect: expectation{Sizes: hot, Loose: loose}, Threads: 20})
	before.begin()
	watch := watchOpens(t)
	for name, c := range changes {
		for _, side := range []string{"hot", "cold"} {
			path := p.Source(side + "/" + name + "/" + name)
			harness.Must(t, c.do(path, filepath.Join(filepath.Dir(path), "aside")))
			watch.add(path)
		}
	}
	wantCold(t, v)
	watch.none()
	after := readAll(t, orders{View: v.Dir, Expect: expectation{Sizes: hot, Loose: loose}, Threads: 20, Reads: 20})
	before.tell()
	sum := before.finish()
	before.gone()
	if len(sum.Ends) > 0 {
		t.Errorf("readers ended with %v", sum.Ends)
	}
	watch.none()
	t.Logf("%d changes; %d reads during them (%d EIO), %d after them (%d EIO)",
		2*len(changes), sum.Reads, sum.EIO, after.Reads, after.EIO)
	checkLog(t, v)
	v.End(t)
}

// wantCold reads a file that was not open, twice, to the end.
func wantCold(t *testing.T, v *harness.View) {
	t.Helper()
	wrong := make(chan string, 2*len(changes))
	go func() {
		defer close(wrong)
		for name := range changes {
			for range 2 {
				wrong <- cold(v, name)
			}
		}
	}()
	for range 2 * len(changes) {
		select {
		case w := <-wrong:
			if w != "" {
				t.Error(w)
			}
		case <-time.After(harness.Patience):
			t.Fatal("a read hangs")
		}
	}
}

// cold returns what is wrong with a read of the file that was not open.
func cold(v *harness.View, name string) string {
	path := "cold/" + name + "/" + name
	want := content(path, 0, 200_001)
	got, err := os.ReadFile(v.Path(path))
	switch {
	case changes[name].fine && (err != nil || string(got) != string(want)):
		return fmt.Sprintf("%s: %d bytes, %v", name, len(got), err)
	case !changes[name].fine && !errors.Is(err, errIO):
		return fmt.Sprintf("%s: %d bytes, %v; want EIO", name, len(got), err)
	}
	return ""
}

// checkLog requires each change to be reported, and no report twice.
func checkLog(t *testing.T, v *harness.View) {
	t.Helper()
	for name, c := range changes {
		if lines := findings(v, "cold/"+name+"/"+name); (len(lines) == 0) != c.fine {
			t.Errorf("%s: reported as %q", name, lines)
		}
	}
	seen := map[string]bool{}
	for _, line := range findings(v, "") {
		if seen[line] {
			t.Errorf("reported twice: %s", line)
		}
		seen[line] = true
	}
}

// opens reports whether a FIFO, a device or a socket is opened.
type opens struct {
	t  *testing.T
	fd int
}

func watchOpens(t *testing.T) opens {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	harness.Must(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	o, fifo := opens{t, fd}, filepath.Join(t.TempDir(), "fifo")
	harness.Must(t, unix.Mkfifo(fifo, 0o600))
	o.add(fifo)
	f, err := os.OpenFile(fifo, os.O_RDONLY|unix.O_NONBLOCK, 0)
	harness.Must(t, err)
	defer f.Close()
	if n, err := unix.Read(fd, make([]byte, 4096)); n <= 0 {
		t.Fatalf("an open is not noticed: %v", err)
	}
	return o
}

// add watches what stands at a path, and what its directory has become.
func (o opens) add(path string) {
	o.t.Helper()
	for _, path := range []string{path, filepath.Dir(path)} {
		info, err := os.Lstat(path)
		if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeDevice|os.ModeSocket) == 0 {
			continue
		}
		_, err = unix.InotifyAddWatch(o.fd, path, unix.IN_OPEN)
		harness.Must(o.t, err)
	}
}

func (o opens) none() {
	o.t.Helper()
	if n, err := unix.Read(o.fd, make([]byte, 4096)); err != unix.EAGAIN {
		o.t.Errorf("a source that is not a file was opened: %d bytes of events, %v", n, err)
	}
}
