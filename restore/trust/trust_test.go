package trust_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

var must = harness.Must

// id is a validator_id.
func id(c string) string { return strings.Repeat(c, 64) }

// place makes a place with these files: path below it to content.
func place(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, content := range files {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, path)), 0o755))
		must(t, os.WriteFile(filepath.Join(dir, path), []byte(content), 0o644))
	}
	return dir
}

func TestValidatorStatus(t *testing.T) {
	a, b, c := id("a"), id("b"), id("c")
	for name, test := range map[string]struct {
		places []string
		want   [3]trust.Status // of a, b, c
	}{
		"no place":     {nil, [3]trust.Status{trust.Unknown, trust.Unknown, trust.Unknown}},
		"missing":      {[]string{filepath.Join(t.TempDir(), "none")}, [3]trust.Status{trust.Unknown, trust.Unknown, trust.Unknown}},
		"empty":        {[]string{place(t, map[string]string{"trusted.d/.keep": "x", "revoked.d/.keep": "x"})}, [3]trust.Status{trust.Unknown, trust.Unknown, trust.Unknown}},
		"one pinned":   {[]string{place(t, map[string]string{"trusted.d/ci": a})}, [3]trust.Status{trust.Pinned, trust.Unpinned, trust.Unpinned}},
		"one revoked":  {[]string{place(t, map[string]string{"revoked.d/x": a + "\nstolen\n"})}, [3]trust.Status{trust.Revoked, trust.Unknown, trust.Unknown}},
		"both":         {[]string{place(t, map[string]string{"trusted.d/a": a, "revoked.d/x": a})}, [3]trust.Status{trust.Revoked, trust.Unpinned, trust.Unpinned}},
		"in two":       {[]string{place(t, map[string]string{"trusted.d/a": a + " of the CI"}), place(t, map[string]string{"trusted.d/a": b})}, [3]trust.Status{trust.Pinned, trust.Pinned, trust.Unpinned}},
		"revoked else": {[]string{place(t, map[string]string{"trusted.d/a": a}), place(t, map[string]string{"revoked.d/a": a + "\n"})}, [3]trust.Status{trust.Revoked, trust.Unpinned, trust.Unpinned}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := trust.Load(test.places...)
			must(t, err)
			if got := [3]trust.Status{p.Of(a), p.Of(b), p.Of(c)}; got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
		})
	}
}

// TestNoValidatorIsTrusted: a policy that cannot be parsed, or that another user may have
// written, is an error, and then no validator is pinned.
func TestNoValidatorIsTrusted(t *testing.T) {
	a := id("a")
	for name, make := range map[string]func(dir string) error{
		"empty file":    func(dir string) error { return os.WriteFile(dir+"/x", nil, 0o644) },
		"upper case":    func(dir string) error { return os.WriteFile(dir+"/x", []byte(strings.ToUpper(a)), 0o644) },
		"63 digits":     func(dir string) error { return os.WriteFile(dir+"/x", []byte(a[1:]), 0o644) },
		"65 digits":     func(dir string) error { return os.WriteFile(dir+"/x", []byte(a+"a"), 0o644) },
		"blank first":   func(dir string) error { return os.WriteFile(dir+"/x", []byte(" "+a), 0o644) },
		"comment first": func(dir string) error { return os.WriteFile(dir+"/x", []byte("# "+a), 0o644) },
		"large":         func(dir string) error { return os.WriteFile(dir+"/x", []byte(a+strings.Repeat(" x", 4000)), 0o644) },
		"open to others": func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/x", []byte(a), 0o644), os.Chmod(dir+"/x", 0o666))
		},
		"directory": func(dir string) error { return os.Mkdir(dir+"/x", 0o755) },
		"FIFO":      func(dir string) error { return unix.Mkfifo(dir+"/x", 0o644) },
		"link": func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/.y", []byte(a), 0o644), os.Symlink(".y", dir+"/x"))
		},
		"open directory": func(dir string) error { return os.Chmod(dir, 0o777) },
		"open place":     func(dir string) error { return os.Chmod(filepath.Dir(dir), 0o777) },
		"linked directory": func(dir string) error {
			return errors.Join(os.Rename(dir, filepath.Dir(dir)+"/else"), os.Symlink("else", dir))
		},
		"no directory": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o644)) },
		"foreign": func(dir string) error {
			return errors.Join(os.WriteFile(dir+"/x", []byte(a), 0o644), os.Chown(dir+"/x", 12345, 12345))
		},
	} {
		for _, sub := range []string{"trusted.d", "revoked.d"} {
			t.Run(name+" in "+sub, func(t *testing.T) {
				top := place(t, map[string]string{"trusted.d/good": id("b"), "revoked.d/good": id("c")})
				must(t, make(filepath.Join(top, sub)))
				p, err := trust.Load(top)
				if err == nil || !strings.Contains(err.Error(), sub) && name != "open place" {
					t.Errorf("loaded: %v", err)
				}
				if len(p.Pinned())+len(p.Revoked()) > 0 {
					t.Errorf("there is a policy with the error: %v", p)
				}
			})
		}
	}
}

// TestWeakIsNotPinned: keys for which signatures can be made without a private key.
func TestWeakIsNotPinned(t *testing.T) {
	n := 0
	for key := range bundle.SmallOrderKeys() {
		weak := bundle.ValidatorID(key)
		if trust.Pin(t.TempDir(), weak, "") == nil {
			t.Errorf("%s was pinned", weak)
		}
		if _, err := trust.Load(place(t, map[string]string{"trusted.d/x": weak})); err == nil {
			t.Errorf("%s is pinned by a file", weak)
		}
		if err := trust.Revoke(t.TempDir(), weak, ""); err != nil {
			t.Errorf("%s cannot be revoked: %v", weak, err)
		}
		n++
	}
	if n != 14 {
		t.Errorf("%d keys", n)
	}
}

func TestEdit(t *testing.T) {
	top := t.TempDir()
	a, b := id("a"), id("b")
	standing := func(want trust.Status) {
		t.Helper()
		p, err := trust.Load(top)
		must(t, err)
		if p.Of(a) != want {
			t.Errorf("%s, want %s", p.Of(a), want)
		}
	}
	must(t, trust.Pin(top, a, "the CI\nof ours"))
	standing(trust.Pinned)
	must(t, trust.Pin(top, b, ""))
	if err := trust.Pin(top, a, "again"); !errors.Is(err, trust.ErrKnown) {
		t.Error(err)
	}
	p, err := trust.Load(top)
	must(t, err)
	if r := p.Pinned(); len(r) != 2 || r[0].ID != a || r[0].Note != "the CI of ours" || r[0].Path != filepath.Join(top, "trusted.d", a) {
		t.Errorf("%+v", r)
	}
	must(t, os.Rename(filepath.Join(top, "trusted.d", a), filepath.Join(top, "trusted.d", "ci")))
	must(t, os.WriteFile(filepath.Join(top, "trusted.d", "too"), []byte(a), 0o644))
	must(t, trust.Unpin(top, a))
	standing(trust.Unpinned)
	if err := trust.Unpin(top, a); !errors.Is(err, trust.ErrKnown) {
		t.Error(err)
	}
	must(t, trust.Revoke(top, a, "stolen"))
	standing(trust.Revoked)
	must(t, trust.Pin(top, a, ""))
	standing(trust.Revoked)
	for _, bad := range []string{"", "ci", a[1:], strings.ToUpper(a), a + "\n", "../" + a[3:]} {
		for what, err := range map[string]error{"pin": trust.Pin(top, bad, ""), "revoke": trust.Revoke(top, bad, ""), "unpin": trust.Unpin(top, bad)} {
			if err == nil {
				t.Errorf("%s %q", what, bad)
			}
		}
	}
	if err := trust.Pin(top, id("c"), strings.Repeat("x", 5000)); err == nil {
		t.Error("a note that is too long was written")
	}
	standing(trust.Revoked)
}

// TestDigest: of what is pinned and revoked, and of nothing else.
func TestDigest(t *testing.T) {
	digest := func(files map[string]string) string {
		t.Helper()
		p, err := trust.Load(place(t, files))
		must(t, err)
		return p.Digest()
	}
	a, b := id("a"), id("b")
	one := digest(map[string]string{"trusted.d/x": a, "revoked.d/y": b})
	if other := digest(map[string]string{"trusted.d/z": a + " note", "revoked.d/b": b, "revoked.d/c": b}); one != other {
		t.Error("it depends on names and notes")
	}
	seen := map[string]bool{one: true}
	for _, files := range []map[string]string{{}, {"trusted.d/x": a}, {"revoked.d/x": a}, {"trusted.d/x": b, "revoked.d/y": a}, {"trusted.d/x": a, "trusted.d/y": b}} {
		d := digest(files)
		if seen[d] || len(d) != 64 {
			t.Errorf("%v: %s", files, d)
		}
		seen[d] = true
	}
	if fmt.Sprint((trust.Policy{}).Digest()) != digest(nil) {
		t.Error("the zero policy is another than that of an empty place")
	}
}

// TestOwnKeyRequiresNoPin: the host needs no pin where it is declared to be its own, trusts no other validator by
// that, and is revoked like any other.
func TestOwnKeyRequiresNoPin(t *testing.T) {
	a, b := id("a"), id("b")
	for name, test := range map[string]struct {
		files map[string]string
		want  [2]trust.Status // of a, which is the host's, and of b
	}{
		"none pinned": {nil, [2]trust.Status{trust.Own, trust.Unknown}},
		"b pinned":    {map[string]string{"trusted.d/x": b}, [2]trust.Status{trust.Own, trust.Pinned}},
		"a pinned":    {map[string]string{"trusted.d/x": a}, [2]trust.Status{trust.Pinned, trust.Unpinned}},
		"a revoked":   {map[string]string{"revoked.d/x": a + "\nlost\n"}, [2]trust.Status{trust.Revoked, trust.Unknown}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := trust.Load(place(t, test.files))
			must(t, err)
			own := p.WithOwn(a)
			if got := [2]trust.Status{own.Of(a), own.Of(b)}; got != test.want {
				t.Errorf("%v, want %v", got, test.want)
			}
			if p.Of(a) == trust.Own || p.WithOwn("").Of("") == trust.Own || own.Digest() != p.Digest() {
				t.Error("the policy itself has changed")
			}
			if want := map[string]string{"a revoked": "lost"}[name]; p.Reason(a) != want {
				t.Errorf("reason %q, want %q", p.Reason(a), want)
			}
		})
	}
}

// TestRevokedIsNamedFirst: a revoked validator is named before an earlier one that is not pinned.
func TestRevokedIsNamedFirst(t *testing.T) {
	a, b, c := id("a"), id("b"), id("c")
	p, err := trust.Load(place(t, map[string]string{"trusted.d/a": a, "revoked.d/b": b}))
	must(t, err)
	for _, test := range []struct {
		ids  []string
		want int
	}{{nil, -1}, {[]string{a, a}, -1}, {[]string{a, c, c}, 1}, {[]string{c, a, b, b}, 2}} {
		if got := p.Untrusted(test.ids); got != test.want {
			t.Errorf("%.3q: %d, want %d", test.ids, got, test.want)
		}
	}
	if got := (trust.Policy{}).Untrusted([]string{a}); got != 0 {
		t.Errorf("with no pins: %d", got)
	}
}
