package verify_test

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// keptBundle verifies a run whose sources are kept open.
func keptBundle(t *testing.T, r *bundletest.Run) (*verify.Bundle, *verify.Sources) {
	t.Helper()
	sources := new(verify.Sources)
	t.Cleanup(sources.Close)
	b, err := verify.Strict(t.Context(), openRuns(t, r)[0], verify.Watch{Sources: sources})
	must(t, err)
	return b, sources
}

// openCount returns how many descriptors of this process lead to a path.
func openCount(t *testing.T, path string) (n int) {
	t.Helper()
	for _, open := range harness.OpenFiles(t, os.Getpid()) {
		if open == path {
			n++
		}
	}
	return n
}

// TestKeptSource: a source that is still at its name is not opened again, once. The rest are
// closed at the end.
func TestKeptSource(t *testing.T) {
	r := newRun(t)
	b, sources := keptBundle(t, r)
	if n := openCount(t, at(r, "dist/a")) + openCount(t, at(r, "dist/b")); n != 2 {
		t.Fatalf("%d sources are open, want 2", n)
	}
	opened := watch(t, at(r, "dist/a"), unix.IN_OPEN)
	var near pathsafe.Opener
	defer near.Close()
	for _, opens := range []int{0, 1} {
		f, err := outputAt(t, b, "dist/a").OpenNear(&near)
		must(t, err)
		text := make([]byte, 3)
		if _, err := f.ReadAt(text, 0); err != nil || string(text) != "aaa" {
			t.Errorf("%q, %v", text, err)
		}
		must(t, f.Close())
		if n := opened.count(t); n != opens {
			t.Errorf("it was opened %d times, want %d", n, opens)
		}
	}
	sources.Close()
	sources.Close()
	if n := openCount(t, at(r, "dist/a")) + openCount(t, at(r, "dist/b")); n != 0 {
		t.Errorf("%d sources are left open", n)
	}
	f, err := outputAt(t, b, "dist/b").OpenNear(&near)
	must(t, err)
	must(t, f.Close())
}

// TestKeptSourceChanges: what is at the name of a source by now is opened, or is why it cannot be
// opened, as if the source had not been kept.
func TestKeptSourceChanges(t *testing.T) {
	for name, c := range map[string]struct {
		change func(path string) error
		want   error
		text   string
	}{
		"same content, other file": {func(p string) error { return writeAside(p, "aaa") }, nil, "aaa"},
		"other file":               {func(p string) error { return writeAside(p, "AAA") }, nil, "AAA"},
		"grown":                    {func(p string) error { return appendTo(p, "more") }, nil, "aaamore"},
		"cut":                      {func(p string) error { return os.Truncate(p, 1) }, nil, "a"},
		"overwritten":              {func(p string) error { return os.WriteFile(p, []byte("AAA"), 0o600) }, nil, "AAA"},
		"gone":                     {os.Remove, fs.ErrNotExist, ""},
		"link":                     {func(p string) error { return errors.Join(os.Remove(p), os.Symlink("b", p)) }, pathsafe.ErrSymlink, ""},
		"FIFO":                     {func(p string) error { return errors.Join(os.Remove(p), harness.FIFO(p)) }, pathsafe.ErrNotRegular, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t)
			b, sources := keptBundle(t, r)
			must(t, c.change(at(r, "dist/a")))
			var near pathsafe.Opener
			defer near.Close()
			f, err := outputAt(t, b, "dist/a").OpenNear(&near)
			if !errors.Is(err, c.want) {
				t.Fatal(err)
			}
			if err == nil {
				text := make([]byte, 100)
				n, _ := f.ReadAt(text, 0)
				if string(text[:n]) != c.text {
					t.Errorf("%q, want %q", text[:n], c.text)
				}
				must(t, f.Close())
			}
			sources.Close()
			for _, open := range harness.OpenFiles(t, os.Getpid()) {
				if strings.HasPrefix(open, at(r, "dist/a")) {
					t.Errorf("%s is left open", open)
				}
			}
		})
	}
}

// TestHolesAreNotKept: the offset of a file whose holes were looked for is not its beginning.
func TestHolesAreNotKept(t *testing.T) {
	content := strings.Repeat("x", 4096) + strings.Repeat("\x00", 1<<20) + "y"
	r := bundletest.New(t).Run("run-1", map[string]string{"dist/a": "aaa", "dist/holes": content})
	path := at(r, "dist/holes")
	must(t, os.Truncate(path, 0))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteAt([]byte(content[:4096]), 0)
	must(t, err)
	_, err = f.WriteAt([]byte("y"), int64(len(content))-1)
	must(t, err)
	must(t, f.Close())
	_, _ = keptBundle(t, r)
	if n := openCount(t, path); n != 0 {
		t.Errorf("a file with holes is kept open")
	}
	if !slices.Contains(harness.OpenFiles(t, os.Getpid()), at(r, "dist/a")) {
		t.Error("no source is kept open")
	}
}

func writeAside(path, content string) error {
	return errors.Join(os.WriteFile(path+".new", []byte(content), 0o600), os.Rename(path+".new", path))
}

func appendTo(path, content string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	return errors.Join(err, f.Close())
}
