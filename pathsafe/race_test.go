package pathsafe

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// arena makes root/d/f, a link root/x out of the root, and the f it leads to.
func arena(t *testing.T) (root, outside string) {
	base := t.TempDir()
	plant(t, base, "root/d/f", "outside/f", "root/x -> ../outside")
	return filepath.Join(base, "root"), filepath.Join(base, "outside")
}

var attempts = sample.Of(1000, 5000, 5000)

const (
	maxAttempts = 2_000_000
	enough      = 10
)

// outcome counts what the attempts of one pattern came to.
type outcome struct{ through, refused, escaped int }

// attack runs try until enough attempts got through and enough were rejected,
// at least attempts times.
func attack(t *testing.T, root string, try func() (outside bool, err error)) outcome {
	t.Helper()
	stop := harness.Exchange(t, filepath.Join(root, "d"), filepath.Join(root, "x"), nil)
	var o outcome
	for i := 0; i < maxAttempts && (i < attempts || o.through < enough || o.refused < enough); i++ {
		outside, err := try()
		switch {
		case err != nil:
			o.refused++
		case outside:
			o.escaped++
		default:
			o.through++
		}
	}
	swaps := stop()
	t.Logf("%d through, %d refused, %d escaped, %d swaps", o.through, o.refused, o.escaped, swaps)
	return o
}

func (o outcome) check(t *testing.T) {
	t.Helper()
	if o.escaped > 0 || o.through < enough || o.refused < enough {
		t.Errorf("%+v: want no escape and at least %d of the others", o, enough)
	}
}

func TestSwappedParentOpenRegular(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		for _, links := range []Links{NoLinks, LinksBeneath} {
			root, _ := arena(t)
			d, p := openDir(t, root, w), mustParse(t, "d/f")
			attack(t, root, func() (bool, error) {
				f, _, err := d.OpenRegular(p, links)
				if err != nil {
					return false, err
				}
				return readAll(t, f) != "root/d/f", nil
			}).check(t)
		}
	})
}

func TestSwappedParentOpenParent(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root, outside := arena(t)
		d, p := openDir(t, root, w), mustParse(t, "d/f")
		out, err := openDir(t, outside, w).Stat()
		must(t, err)
		attack(t, root, func() (bool, error) {
			parent, err := d.OpenParent(p, 1)
			if err != nil {
				return false, err
			}
			defer parent.Close()
			st, err := parent.Stat()
			return st.ID == out.ID, err
		}).check(t)
	})
}

// A link with ".." on the path makes openat2 return EAGAIN under renames.
func TestSwappedParentBehindDotDot(t *testing.T) {
	eachWalker(t, func(t *testing.T, w walker) {
		root, _ := arena(t)
		plant(t, root, "e/l -> ../d/../d/f")
		d, p := openDir(t, root, w), mustParse(t, "e/l")
		attack(t, root, func() (bool, error) {
			f, _, err := d.OpenRegular(p, LinksBeneath)
			if err != nil {
				return false, err
			}
			return readAll(t, f) != "root/d/f", nil
		}).check(t)
	})
}

// The control: the same attack against check-then-open does get out.
func TestSwappedParentControl(t *testing.T) {
	root, _ := arena(t)
	stop := harness.Exchange(t, filepath.Join(root, "d"), filepath.Join(root, "x"), nil)
	escaped := 0
	for range maxAttempts {
		if fi, err := os.Lstat(filepath.Join(root, "d")); err != nil || !fi.IsDir() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(root, "d/f"))
		if err == nil && string(b) == "outside/f" {
			if escaped++; escaped == enough {
				break
			}
		}
	}
	t.Logf("%d escapes, %d swaps", escaped, stop())
	if escaped < enough {
		t.Errorf("check-then-open escaped only %d times: the attack does not bite", escaped)
	}
}
