package pathsafe

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpenerNeverEscapes: a parent that is exchanged with a link out of the root all the time.
func TestOpenerNeverEscapes(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		for _, links := range []Links{NoLinks, LinksBeneath} {
			root, _ := arena(t)
			d, p := openDir(t, root, w), mustParse(t, "d/f")
			var near Opener
			defer near.Close()
			n := 0
			attack(t, root, func() (bool, error) {
				if n++; n%2 == 0 { // every second time with a directory that is held
					near.Close()
				}
				f, _, err := near.OpenRegular(d, p, links)
				if err != nil {
					near.Close()
					return false, err
				}
				return readAll(t, f.OS()) != "root/d/f", nil
			}).check(t)
		}
	})
}

// TestOpenerStill: a directory that is moved away while it is held is noticed, also if the opener
// looks it up again in between.
func TestOpenerStill(t *testing.T) {
	for name, c := range map[string]struct {
		change func(root string) error
		want   error
	}{
		"nothing":   {func(string) error { return nil }, nil},
		"moved":     {func(root string) error { return os.Rename(root+"/d", root+"/e") }, fs.ErrNotExist},
		"exchanged": {func(root string) error { return exchange(root+"/d", root+"/x") }, ErrMoved},
		"link": {func(root string) error {
			return errors.Join(os.Rename(root+"/d", root+"/e"), os.Symlink("x", root+"/d"))
		}, ErrMoved},
	} {
		for again, files := range map[string]int{"": 1, ", looked up again": openerFiles + 10} {
			t.Run(name+again, func(t *testing.T) {
				root := t.TempDir()
				plant(t, root, "x/f", "d/f")
				d := openDir(t, root, chooseWalker())
				var near Opener
				defer near.Close()
				p := mustParse(t, "d/f")
				_, err := near.StatPath(d, p, LinksBeneath)
				must(t, err)
				must(t, near.Still())
				must(t, c.change(root))
				for range files {
					_, _ = near.StatPath(d, p, LinksBeneath)
				}
				if err := near.Still(); !errors.Is(err, c.want) && !(again != "" && errors.Is(c.want, fs.ErrNotExist)) {
					t.Errorf("%v, want %v", err, c.want)
				}
			})
		}
	}
}

func exchange(a, b string) error {
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}

// TestOpenerLeavesNothingOpen: of many files in many directories, some of which cannot be opened.
func TestOpenerLeavesNothingOpen(t *testing.T) {
	root := t.TempDir()
	plant(t, root, "a/f", "a/fifo|", "a/l -> f", "b/f", "b/out -> /etc/passwd", "top")
	d := openDir(t, root, chooseWalker())
	before := openDescriptors(t)
	var near Opener
	for range 3 * openerFiles {
		for _, name := range []string{"a/f", "a/fifo", "a/l", "a/none", "b/f", "b/out", "none/f", "top"} {
			f, _, err := near.OpenRegular(d, mustParse(t, name), LinksBeneath)
			if err == nil {
				must(t, f.Close())
			}
			_, _ = near.StatPath(d, mustParse(t, name), LinksBeneath)
		}
	}
	if held := openDescriptors(t) - before; held > 2 {
		t.Errorf("%d descriptors are held, want at most 2", held)
	}
	near.Close()
	if left := openDescriptors(t) - before; left != 0 {
		t.Errorf("%d descriptors are left", left)
	}
}

func openDescriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(entries)
}

// TestFileReads: a File reads as an os.File does, at every offset and after it has changed.
func TestFileReads(t *testing.T) {
	root := t.TempDir()
	const text = "0123456789"
	for _, size := range []int{0, 1, len(text)} {
		for _, change := range []int{-1, 0, 1} { // made shorter, or longer, after it was opened
			name := "f" + strconv.Itoa(size) + strconv.Itoa(change)
			must(t, os.WriteFile(filepath.Join(root, name), []byte(text[:size]), 0o600))
			d := openDir(t, root, chooseWalker())
			var near Opener
			f, _, err := near.OpenRegular(d, mustParse(t, name), NoLinks)
			must(t, err)
			near.Close()
			now := max(0, size+change)
			must(t, os.Truncate(filepath.Join(root, name), int64(now)))
			plain, err := os.Open(filepath.Join(root, name))
			must(t, err)
			for off := range now + 2 {
				for n := range now + 3 {
					got, want := make([]byte, n), make([]byte, n)
					gotN, gotErr := f.ReadAt(got, int64(off))
					wantN, wantErr := plain.ReadAt(want, int64(off))
					if gotN != wantN || gotErr != wantErr || string(got) != string(want) {
						t.Errorf("size %d, then %d: ReadAt(%d bytes, %d): %d, %v, want %d, %v", size, now, n, off, gotN, gotErr, wantN, wantErr)
					}
				}
			}
			must(t, plain.Close())
			must(t, f.Close())
			if err := f.Close(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("closed twice: %v", err)
			}
		}
	}
}

// TestFileCopies: in the kernel and without it, at most so many bytes, and in parts.
func TestFileCopies(t *testing.T) {
	root := t.TempDir()
	content := strings.Repeat("0123456789abcdef", 3*copyBuffer/16) + "end"
	must(t, os.WriteFile(filepath.Join(root, "from"), []byte(content), 0o600))
	d := openDir(t, root, chooseWalker())
	for name, copies := range map[string]func(to *File, from Opened, n int64) (int64, error){
		"in the kernel":      (*File).CopyFrom,
		"read and write":     func(to *File, from Opened, n int64) (int64, error) { return to.copyThrough(int(from.Fd()), n) },
		"what is not copied": func(to *File, _ Opened, n int64) (int64, error) { return copyVirtual(t, to, n) },
	} {
		want := content
		if name == "what is not copied" {
			raw, err := os.ReadFile("/proc/version")
			must(t, err)
			want = string(raw)
		}
		to, err := d.CreateFile(strings.ReplaceAll(name, " ", "-"), 0o600)
		must(t, err)
		var near Opener
		from, _, err := near.OpenRegular(d, mustParse(t, "from"), NoLinks)
		must(t, err)
		near.Close()
		first, err := copies(to, from, 7)
		must(t, err)
		rest, err := copies(to, from, 1<<40)
		must(t, err)
		must(t, from.Close())
		got := make([]byte, len(want)+1)
		n, err := to.ReadAt(got, 0)
		if err != io.EOF || string(got[:n]) != want || first != 7 || first+rest != int64(len(want)) {
			t.Errorf("%s: %d and %d bytes, %d are there (%v), want %d", name, first, rest, n, err, len(want))
		}
		must(t, to.Sync())
		must(t, to.Close())
	}
}

// copyVirtual copies a file that copy_file_range does not copy, from where the last call has
// ended.
func copyVirtual(t *testing.T, to *File, n int64) (int64, error) {
	t.Helper()
	from, err := os.Open("/proc/version")
	must(t, err)
	defer from.Close()
	st, err := StatFile(to)
	must(t, err)
	_, err = from.Seek(st.Size, io.SeekStart)
	must(t, err)
	return to.CopyFrom(from, n)
}
