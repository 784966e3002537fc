package rival

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// changes are what may happen to a source. Each has the file's path and a
// directory on the same file system.
var changes = map[string]func(path, spare string) error{
	"overwrite":          func(path, _ string) error { return os.WriteFile(path, []byte("TOP\n"), 0o644) },
	"truncate":           func(path, _ string) error { return os.Truncate(path, 1) },
	"grow":               func(path, _ string) error { return grow(path) },
	"replace":            func(path, spare string) error { return replace(path, spare, writeOther) },
	"replace by symlink": func(path, spare string) error { return replace(path, spare, linkAway) },
	"replace by fifo":    func(path, spare string) error { return replace(path, spare, harness.FIFO) },
	"chmod 000":          func(path, _ string) error { return os.Chmod(path, 0) },
	"unlink":             func(path, _ string) error { return os.Remove(path) },
}

func grow(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString("and more\n")
	return err
}

func replace(path, spare string, make func(string) error) error {
	if err := make(spare); err != nil {
		return err
	}
	return os.Rename(spare, path)
}

func writeOther(path string) error { return os.WriteFile(path, []byte("TOP\n"), 0o644) }
func linkAway(path string) error   { return os.Symlink("/etc/passwd", path) }

// lateCodes are those that a source may lead to that is not what was signed.
var lateCodes = []string{
	"RESTORE_STAGING_HASH_MISMATCH", "RESTORE_VERIFY_STRICT_FAILED", "RESTORE_SOURCE_MISSING",
	"RESTORE_SOURCE_NOT_REGULAR_FILE", "RESTORE_INTERNAL_ERROR", "APPROVAL_STALE",
}

// TestSourceChanges changes a source between preview and commit, and before each
// call that opens or copies it. The root gets the signed bytes or none.
func TestSourceChanges(t *testing.T) {
	for _, name := range sample.Pick(t, 2, slices.Sorted(maps.Keys(changes))) {
		change := changes[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := harness.New(t, outputs())
			source, spare := p.Source("top.txt"), filepath.Join(filepath.Dir(p.Dir), "spare")
			mend := mender(t, source)
			codes := map[string]int{}
			stride := sample.Every(t, 7)
			for n, i := 0, 0; ; n, i = stride.At(i), i+1 {
				a := newAttempt(t, p, fmt.Sprint(n))
				r, fired := a.commitChanged(t, n, func() { harness.Must(t, change(source, spare)) })
				if !fired {
					break
				}
				codes[fmt.Sprint(r.Status, " ", r.Answer.Code)]++
				if r.Status != 0 && !slices.Contains(lateCodes, r.Answer.Code) {
					t.Errorf("a source that changed ends with %v", r)
				}
				a.end(t, r, attack{})
				if a.failed(t, fmt.Sprintf("%s before call %d", name, n), r) {
					return
				}
				mend()
			}
			t.Log(codes)
			isRead := name == "chmod 000" // by root; the block table has the permission bits of the restore
			if len(codes) < sample.Of(1, 2, 2) && !isRead {
				t.Error("only one end was seen")
			}
			if isRead && (len(codes) != 1 || codes["0 "] == 0) {
				t.Errorf("bits that are not restored have an effect: %v", codes)
			}
		})
	}
}

// mender makes a file again what it is now, whatever becomes of it.
func mender(t *testing.T, path string) (mend func()) {
	t.Helper()
	content, err := os.ReadFile(path)
	harness.Must(t, err)
	info, err := os.Stat(path)
	harness.Must(t, err)
	return func() {
		t.Helper()
		harness.Must(t, os.RemoveAll(path))
		harness.Must(t, os.WriteFile(path, content, 0o600))
		harness.Must(t, os.Chmod(path, info.Mode()))
		harness.Must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
}

// commitChanged commits, and changes a source before the n-th call that has to
// do with it; n of 0 is between preview and commit.
func (a *attempt) commitChanged(t *testing.T, n int, change func()) (r harness.Reply, fired bool) {
	t.Helper()
	if n == 0 {
		id := a.Preview(t)
		change()
		return a.Project.Run(t, nil, harness.CommitArgs(id)...), true
	}
	r = a.Commit(t, &sysfault.Plan{N: n, Before: func(sysfault.Call) { change() }, Match: func(c sysfault.Call) bool {
		return strings.HasSuffix(c.Path, "/top.txt") && c.Name != "close"
	}})
	return r, r.Fault.Fired > 0
}
