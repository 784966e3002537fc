package statedir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/internal/statedir"
	"golang.org/x/sys/unix"
)

// within makes a directory of the test's own that no other user can reach.
func within(t *testing.T, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spectrum")
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFind: nothing is made, and what Open rejects is rejected for the same reason.
func TestFind(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "a", "b")
	if d, err := statedir.Find(missing); !errors.Is(err, fs.ErrNotExist) || d != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Dir(missing)); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it was made")
	}
	var open *statedir.ModeError
	if _, err := statedir.Find(within(t, 0o750)); !errors.As(err, &open) || open.Perm != 0o750 {
		t.Error(err)
	}
	good := within(t, 0o700)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(good, link); err != nil {
		t.Fatal(err)
	}
	if _, err := statedir.Find(link); !errors.Is(err, statedir.ErrLink) {
		t.Error(err)
	}
	if os.Geteuid() == 0 {
		foreign := within(t, 0o700)
		if err := os.Chown(foreign, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if _, err := statedir.Find(foreign); !errors.Is(err, statedir.ErrForeign) {
			t.Error(err)
		}
	}
	d, err := statedir.Find(good)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if entries, err := os.ReadDir(good); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
}

// TestHaltsListed: it lists what Halt has marked, and makes nothing.
func TestHaltsListed(t *testing.T) {
	d, err := statedir.Find(within(t, 0o700))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if halts, err := d.Halts(); err != nil || len(halts) > 0 {
		t.Errorf("%q, %v", halts, err)
	}
	if _, err := d.ReadAuditLog(); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if entries, err := os.ReadDir(d.Path()); err != nil || len(entries) > 0 {
		t.Errorf("%v, %v", entries, err)
	}
	want := []string{uuid.NewString(), uuid.NewString()}
	slices.Sort(want)
	for _, id := range want {
		if err := d.Halt(id); err != nil {
			t.Fatal(err)
		}
	}
	if halts, err := d.Halts(); err != nil || !slices.Equal(halts, want) {
		t.Errorf("%q, %v", halts, err)
	}
	log, err := d.AuditLog()
	if err != nil {
		t.Fatal(err)
	}
	log.Close()
	if log, err = d.ReadAuditLog(); err != nil {
		t.Fatal(err)
	}
	log.Close()
	if err := errors.Join(os.RemoveAll(filepath.Join(d.Path(), "halts")), os.WriteFile(filepath.Join(d.Path(), "halts"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if halts, err := d.Halts(); err == nil || halts != nil {
		t.Errorf("a file: %q", halts)
	}
}

// TestExposedFilesAreFound: files that others may come at are found.
func TestExposedFilesAreFound(t *testing.T) {
	path := within(t, 0o700)
	d, err := statedir.Find(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for name, mode := range map[string]fs.FileMode{"host.pem": 0o600, "audit.log": 0o644, "journal.key": 0o620, "notes": 0o666} {
		file := filepath.Join(path, name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(file, mode)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, unix.Mkfifo(filepath.Join(path, "view.log"), 0o600))
	me := uint32(os.Geteuid())
	want := []statedir.Exposed{{filepath.Join(path, "audit.log"), me, 0o644, false}, {filepath.Join(path, "journal.key"), me, 0o620, false}, {filepath.Join(path, "view.log"), me, 0o600, true}}
	if got, err := d.Exposed(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if me == 0 {
		if err := os.Chown(filepath.Join(path, "host.pem"), 65534, 0); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Exposed(); err != nil || len(got) != 4 || got[1].UID != 65534 {
			t.Errorf("%v, %v", got, err)
		}
	}
	d.Close()
	if got, err := d.Exposed(); err == nil || got != nil {
		t.Errorf("a closed one: %v", got)
	}
}

// TestParents: a state directory that another user can move away, by any directory above
// it, is neither made nor opened, and is as it was.
func TestParents(t *testing.T) {
	for name, open := range map[string]func(string) (*statedir.Dir, error){"Open": statedir.Open, "Find": statedir.Find} {
		for _, missing := range []bool{false, true} {
			top := within(t, 0o755)
			parent := filepath.Join(top, "a", "b")
			path := filepath.Join(parent, "c", "state")
			if err := os.MkdirAll(parent, 0o755); err != nil {
				t.Fatal(err)
			}
			if !missing {
				d, err := statedir.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				d.Close()
			}
			changes := map[string]func() error{
				"writable by all":   func() error { return os.Chmod(filepath.Join(top, "a"), 0o777) },
				"sticky":            func() error { return os.Chmod(filepath.Join(top, "a"), 0o777|fs.ModeSticky) },
				"as it was":         func() error { return os.Chmod(filepath.Join(top, "a"), 0o755) },
				"parent of another": func() error { return os.Chown(parent, 65534, 65534) },
				"top of another":    func() error { return errors.Join(os.Chown(parent, 0, 0), os.Chown(top, 65534, 65534)) },
			}
			for _, change := range []string{"writable by all", "sticky", "as it was", "parent of another", "top of another"} {
				if strings.Contains(change, "another") && os.Geteuid() != 0 {
					continue
				}
				if err := changes[change](); err != nil {
					t.Fatal(err)
				}
				wanted := change == "sticky" || change == "as it was"
				if wanted && missing && name == "Open" {
					continue // it would be made
				}
				d, err := open(path)
				var parents *statedir.ParentsError
				isRefused := errors.As(err, &parents)
				switch {
				case missing && name == "Find":
					if !errors.Is(err, fs.ErrNotExist) || d != nil {
						t.Errorf("%s, missing, %s: %v", name, change, err)
					}
				case isRefused == wanted || wanted != (d != nil):
					t.Errorf("%s, missing: %v, %s: %v, %v", name, missing, change, d, err)
				}
				if d != nil {
					d.Close()
				}
				if _, err := os.Lstat(filepath.Join(parent, "c")); missing && err == nil {
					t.Errorf("%s, %s: a directory was made", name, change)
				}
				loose, err := statedir.Parents(path)
				if err != nil || (len(loose) == 0) != wanted {
					t.Errorf("%s: %v, %v", change, loose, err)
				}
			}
		}
	}
}

// TestNearestExistingParent: what is there, of a path that is not.
func TestNearestExistingParent(t *testing.T) {
	top := within(t, 0o700)
	for _, path := range []string{top, filepath.Join(top, "a"), filepath.Join(top, "a/b/c")} {
		if got, err := statedir.Nearest(path); err != nil || got != top {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
	file := filepath.Join(top, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := statedir.Nearest(filepath.Join(file, "a")); err == nil {
		t.Errorf("beneath a file: %q", got)
	}
}
