package statedir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
)

// TestRolledBack: a mark is of one root or one bundle, it stays, and a process that opens the
// directory later finds it.
func TestRolledBack(t *testing.T) {
	other := strings.Repeat("fe", 32)
	path := filepath.Join(t.TempDir(), "state")
	d := open(t, path)
	must(t, d.MarkRolledBack("/r/./a/", []string{id, id}))
	must(t, d.MarkRolledBack("/r/a", []string{id}))
	must(t, d.MarkRolledBack("/only/root", nil))
	for _, test := range []struct {
		root    string
		bundles []string
		want    bool
	}{
		{"", nil, false},
		{"", []string{other}, false},
		{"", []string{id}, true},
		{"", []string{other, id}, true},
		{"/r/a", nil, true},
		{"/r/a/", []string{other}, true},
		{"/only/root", nil, true},
		{"/r", nil, false},
		{"/r/b", []string{other}, false},
		{"/r/b", []string{id}, true},
	} {
		for name, ask := range map[string]func(string, []string) (bool, error){
			"held": d.WasRolledBack, "by path": func(root string, bundles []string) (bool, error) {
				return statedir.WasRolledBack(path, root, bundles)
			},
		} {
			if got, err := ask(test.root, test.bundles); got != test.want || err != nil {
				t.Errorf("%s: %q %q: %v, %v", name, test.root, test.bundles, got, err)
			}
		}
	}
	info, err := os.Stat(filepath.Join(path, "rolled-back", "bundle-"+id))
	must(t, err)
	if info.Size() != 0 || info.Mode() != 0o600 {
		t.Errorf("a mark has %d bytes and mode %v", info.Size(), info.Mode())
	}
}

// TestRolledBackNames: a malformed bundle root creates no mark at all.
func TestRolledBackNames(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "state"))
	for _, bad := range []string{"", "../key.pem", id + "0", id[:63], strings.ToUpper(id), id[:63] + "/", "bundle-" + id} {
		if err := d.MarkRolledBack("/r", []string{id, bad}); err == nil {
			t.Errorf("%q is marked", bad)
		}
	}
	if was, err := d.WasRolledBack("/r", []string{id}); was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
}

// TestRolledBackAsksOnly: a lookup creates no state directory, and rejects one that others may
// write.
func TestRolledBackAsksOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if was, err := statedir.WasRolledBack(path, "/r", []string{id}); was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it was made: %v", err)
	}
	must(t, open(t, path).MarkRolledBack("/r", nil))
	must(t, os.Chmod(path, 0o777))
	if was, err := statedir.WasRolledBack(path, "/r", nil); was || err == nil {
		t.Errorf("open to all: %v, %v", was, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Chmod(path, 0o700))
	must(t, os.Symlink(path, link))
	if was, err := statedir.WasRolledBack(link, "/r", nil); was || err == nil {
		t.Errorf("a link: %v, %v", was, err)
	}
}

// TestRolledBackOdd: anything in the place of a mark counts as one, and is not waited for;
// something else in the place of the directory of marks is an error.
func TestRolledBackOdd(t *testing.T) {
	for name, put := range map[string]func(path string) error{
		"FIFO":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"link":      func(path string) error { return os.Symlink("/nowhere", path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		path := filepath.Join(t.TempDir(), "state")
		d := open(t, path)
		must(t, d.MarkRolledBack("/r", nil))
		must(t, put(filepath.Join(path, "rolled-back", "bundle-"+id)))
		if was, err := d.WasRolledBack("", []string{id}); !was || err != nil {
			t.Errorf("%s: %v, %v", name, was, err)
		}
		if err := d.MarkRolledBack("/r", []string{id}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		odd := filepath.Join(t.TempDir(), "state")
		d = open(t, odd)
		if name == "directory" {
			put = func(path string) error { return os.WriteFile(path, nil, 0o600) }
		}
		must(t, put(filepath.Join(odd, "rolled-back")))
		if was, err := d.WasRolledBack("", []string{id}); was || err == nil {
			t.Errorf("%s in place of all: %v, %v", name, was, err)
		}
		if err := d.MarkRolledBack("/r", []string{id}); err == nil {
			t.Errorf("%s in place of all: no error", name)
		}
	}
}
