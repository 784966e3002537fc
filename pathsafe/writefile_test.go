package pathsafe

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestWriteFile: a file appears whole and private, replaces nothing, and
// leaves nothing else, with unnamed files and without.
func TestWriteFile(t *testing.T) {
	for name, write := range map[string]func(*Dir, string, []byte, uint32) error{
		"unnamed": (*Dir).WriteFile,
		"named":   (*Dir).writeThenRename,
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			d := openDir(t, root, chooseWalker())
			must(t, write(d, "f", []byte("content"), 0o600))
			raw, err := os.ReadFile(filepath.Join(root, "f"))
			must(t, err)
			info, err := os.Stat(filepath.Join(root, "f"))
			must(t, err)
			if string(raw) != "content" || info.Mode() != 0o600 {
				t.Errorf("%q, %v", raw, info.Mode())
			}
			must(t, os.Symlink("nowhere", filepath.Join(root, "link")))
			for _, taken := range []string{"f", "link"} {
				if err := write(d, taken, []byte("other"), 0o600); !errors.Is(err, fs.ErrExist) {
					t.Errorf("%s: %v", taken, err)
				}
			}
			if err := write(d, "a/b", nil, 0o600); !errors.Is(err, ErrTraversal) {
				t.Errorf("a path: %v", err)
			}
			names, err := d.Names()
			must(t, err)
			if again, _ := os.ReadFile(filepath.Join(root, "f")); string(again) != "content" || !slices.Equal(names, []string{"f", "link"}) {
				t.Errorf("%q, %q", again, names)
			}
		})
	}
}

// TestImmutableIsNotWritable: not even root may write there, whatever the
// permission bits say.
func TestImmutableIsNotWritable(t *testing.T) {
	root := t.TempDir()
	d := openDir(t, root, chooseWalker())
	must(t, d.Writable())
	if out, err := exec.CommandContext(t.Context(), "chattr", "+i", root).CombinedOutput(); err != nil {
		t.Fatalf("chattr: %v: %s", err, out)
	}
	err := d.Writable()
	if out, err := exec.CommandContext(t.Context(), "chattr", "-i", root).CombinedOutput(); err != nil {
		t.Fatalf("chattr: %v: %s", err, out)
	}
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
}
