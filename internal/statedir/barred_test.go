package statedir_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/statedir"
	"golang.org/x/sys/unix"
)

const barID = "11111111-2222-4333-8444-555555555555"

// TestMarkHaltsRoot: a root is halted from Bar on until Unbar, also by another process, keeps its first mark,
// and halts no other root.
func TestMarkHaltsRoot(t *testing.T) {
	path := within(t, 0o700)
	d := open(t, path)
	must(t, d.Unbar("/srv/a")) // of what was never halted
	for range 2 {
		if is, err := d.Barred("/srv/a"); is || err != nil {
			t.Errorf("halted before: %v", err)
		}
		must(t, d.Bar("/srv/a", barID, "session", "no room\xff"))
		must(t, d.Bar("/srv/a", barID, "emergency", "another"))
		other := open(t, path)
		if is, err := other.Barred("/srv/a"); !is || err != nil {
			t.Errorf("not halted, %v", err)
		}
		if is, err := other.Barred("/srv"); is || err != nil {
			t.Errorf("another root is halted, %v", err)
		}
		mark, is := other.BarOf("/srv/a")
		if !is || mark.Err != nil || mark.ID != barID || mark.Kind != "session" || mark.Reason != "no room\uFFFD" || mark.Root != "/srv/a" || mark.Time.IsZero() {
			t.Errorf("%+v", mark)
		}
		if all, err := d.Bars(); err != nil || len(all) != 1 || all[0] != mark {
			t.Errorf("%+v, %v", all, err)
		}
		must(t, d.Unbar("/srv/a"))
		must(t, d.Unbar("/srv/a"))
	}
	if all, err := d.Bars(); err != nil || len(all) > 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestBarDamaged: an empty or malformed mark halts its root, and can be removed; so does one that
// cannot be looked up.
func TestBarDamaged(t *testing.T) {
	path := within(t, 0o700)
	d := open(t, path)
	must(t, d.Bar("/srv/a", barID, "session", strings.Repeat("long ", 10_000)))
	names, err := filepath.Glob(filepath.Join(path, "barred", "*"))
	if err != nil || len(names) != 1 {
		t.Fatalf("%q, %v", names, err)
	}
	raw, err := os.ReadFile(names[0])
	must(t, err)
	if len(raw) > 8<<10 {
		t.Errorf("a mark of %d bytes", len(raw))
	}
	for name, content := range map[string]string{
		"empty": "", "cut": string(raw[:len(raw)/2]), "no id": `{"root":"/srv/a"}`,
		"of another root": strings.Replace(string(raw), "/srv/a", "/srv/b", 1), "endless": strings.Repeat("[", 1<<20),
	} {
		must(t, os.WriteFile(names[0], []byte(content), 0o600))
		if is, err := d.Barred("/srv/a"); !is || err != nil {
			t.Errorf("%s: not halted, %v", name, err)
		}
		if mark, is := d.BarOf("/srv/a"); !is || mark.Err == nil {
			t.Errorf("%s: %+v", name, mark)
		}
		if all, err := d.Bars(); err != nil || len(all) != 1 || all[0].Err == nil {
			t.Errorf("%s: %+v, %v", name, all, err)
		}
	}
	must(t, d.Bar("/srv/a", barID, "session", "again"))
	must(t, d.Unbar("/srv/a"))
	if is, err := d.Barred("/srv/a"); is || err != nil {
		t.Errorf("halted, %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(path, "barred")))
	must(t, os.WriteFile(filepath.Join(path, "barred"), nil, 0o600))
	if is, err := d.Barred("/srv/a"); !is || err == nil {
		t.Errorf("what cannot be looked up does not halt, %v", err)
	}
	if d.Bar("/srv/a", barID, "session", "") == nil || d.Unbar("/srv/a") == nil {
		t.Error("a file was taken for the directory")
	}
	if _, err := d.Bars(); err == nil {
		t.Error("a file was listed")
	}
}

// TestRootOfKey: a root that was entered is found by the name of its directories.
func TestRootOfKey(t *testing.T) {
	d := open(t, within(t, 0o700))
	if _, err := d.EnterRoot("/srv/a", "1:2:3", false, statedir.Evidence{Leads: func(string) bool { return false }}); err != nil {
		t.Fatal(err)
	}
	must(t, d.Bar("/srv/a", barID, "session", ""))
	names, err := filepath.Glob(filepath.Join(d.Path(), "barred", "*"))
	must(t, err)
	if got := d.RootOfKey(filepath.Base(names[0])); got != "/srv/a" {
		t.Errorf("%q", got)
	}
	if got := d.RootOfKey(strings.Repeat("0", 64)); got != "" {
		t.Errorf("%q", got)
	}
}

// TestBarInTheWay: what is in the place of a mark, or of all, halts the root, and is named.
func TestBarInTheWay(t *testing.T) {
	d := open(t, within(t, 0o700))
	must(t, d.Unbarrable("/srv/a")) // of what was never halted
	must(t, d.Bar("/srv/a", barID, "session", ""))
	must(t, d.Unbarrable("/srv/a"))
	names, err := filepath.Glob(filepath.Join(d.Path(), "barred", "*"))
	must(t, err)
	mark, all := names[0], filepath.Join(d.Path(), "barred")
	for _, at := range []string{mark, all} {
		must(t, os.RemoveAll(at))
		for name, put := range map[string]func() error{
			"a directory": func() error { return os.Mkdir(at, 0o700) },
			"a link":      func() error { return os.Symlink("elsewhere", at) },
			"a FIFO":      func() error { return unix.Mkfifo(at, 0o600) },
		} {
			if at == all && name == "a directory" {
				continue
			}
			must(t, put())
			if is, _ := d.Barred("/srv/a"); !is {
				t.Errorf("%s at %q halts nothing", name, at)
			}
			bar, is := d.BarOf("/srv/a")
			for what, err := range map[string]error{"the mark": bar.Err, "its end": d.Unbarrable("/srv/a")} {
				if stays, isOne := errors.AsType[*statedir.BarError](err); !is || !isOne || stays.Path != at {
					t.Errorf("%s at %q: %s: %v, %v", name, at, what, is, err)
				}
			}
			must(t, os.Remove(at))
		}
	}
}
