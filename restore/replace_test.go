package restore_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// replacing plans a restore of a run with one output, "dir/out" with the content "new" and the mode
// 0644, that replaces what is in a root.
func replacing(t *testing.T, root string, own map[string][sha256.Size]byte) *restore.Restore {
	t.Helper()
	return replacingBy(t, root, own, map[string]string{"dir/out": "new"})
}

// replacingBy is replacing for other outputs, all of the mode 0644.
func replacingBy(t *testing.T, root string, own map[string][sha256.Size]byte, outputs map[string]string) *restore.Restore {
	t.Helper()
	project := t.TempDir()
	run := (&bundletest.Project{T: t, Root: project}).Run("run", outputs)
	for name := range outputs {
		must(t, os.Chmod(filepath.Join(project, name), 0o644))
	}
	c := restore.Candidate{Runs: restoretest.OpenRuns(t, project, run.Dir)}
	r, err := restore.ForRootReplacing(context.Background(), c, root, func(*pathsafe.Dir) (map[string][sha256.Size]byte, error) { return own, nil })
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

// TestReplaceTargets: what stands at a target is identical, is replaced, or is a conflict.
func TestReplaceTargets(t *testing.T) {
	type verdict struct{ blocked, stands, identical, modeOnly bool }
	put := func(content string, mode os.FileMode) func(at string) error {
		return func(at string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600), os.Chmod(at, mode))
		}
	}
	for name, c := range map[string]struct {
		make func(at string) error
		want verdict
	}{
		"nothing":           {func(string) error { return nil }, verdict{}},
		"the same":          {put("new", 0o644), verdict{stands: true, identical: true}},
		"the same, private": {put("new", 0o600), verdict{stands: true, identical: true}},
		"executable":        {put("new", 0o755), verdict{stands: true, modeOnly: true}},
		"another content":   {put("old", 0o644), verdict{stands: true}},
		"longer":            {put("newer", 0o644), verdict{stands: true}},
		"empty":             {put("", 0o644), verdict{stands: true}},
		"set-id":            {put("old", 0o755|os.ModeSetuid), verdict{stands: true}},
		"directory":         {func(at string) error { return os.MkdirAll(at, 0o755) }, verdict{blocked: true}},
		"link": {func(at string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at+"2", []byte("new"), 0o644), os.Symlink("out2", at))
		}, verdict{blocked: true}},
		"fifo": {func(at string) error {
			return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), syscall.Mkfifo(at, 0o644))
		}, verdict{blocked: true}},
		"a parent is a file": {func(at string) error { return os.WriteFile(filepath.Dir(at), nil, 0o644) }, verdict{blocked: true}},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must(t, c.make(filepath.Join(root, "dir/out")))
			r := replacing(t, root, nil)
			got := verdict{blocked: r.Blocked() != nil}
			if there := r.Target("dir/out"); there != nil {
				got.stands, got.identical, got.modeOnly = true, there.Identical, there.ModeOnly
			}
			if got != c.want {
				t.Errorf("%+v, want %+v: %v", got, c.want, r.Conflicts())
			}
		})
	}
}

// TestReplaceFixed: a file that the kernel does not let be renamed, or whose directory is such, is not
// replaced. It may stay if it is the same.
func TestReplaceFixed(t *testing.T) {
	for _, flag := range []string{"i", "a"} {
		for _, at := range []string{"dir/out", "dir"} {
			for _, content := range []string{"old", "new"} {
				t.Run(fmt.Sprintf("+%s %s, %s", flag, at, content), func(t *testing.T) {
					root := t.TempDir()
					out, fixed := filepath.Join(root, "dir/out"), filepath.Join(root, at)
					must(t, errors.Join(os.Mkdir(filepath.Dir(out), 0o755), os.WriteFile(out, []byte(content), 0o644)))
					chattr := func(how string) {
						if said, err := exec.CommandContext(context.Background(), "chattr", how+flag, fixed).CombinedOutput(); err != nil {
							t.Fatalf("chattr: %v: %s", err, said)
						}
					}
					chattr("+")
					t.Cleanup(func() { chattr("-") })
					r := replacing(t, root, nil)
					switch there := r.Target("dir/out"); {
					case content == "new" && (there == nil || !there.Identical):
						t.Errorf("%v", r.Conflicts())
					case content == "old" && (there != nil || !strings.Contains(r.Conflicts()[0].State, "(chattr +"+flag+")")):
						t.Errorf("%v, %v", there, r.Conflicts())
					}
				})
			}
		}
	}
}

// TestReplaceOneFile: two outputs that reach one file, by hard links or through a link on the way,
// block each other unless the file stays for both.
func TestReplaceOneFile(t *testing.T) {
	ways := map[string]func(root string) error{
		"hard links": func(root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, "other"), 0o755), os.Link(filepath.Join(root, "dir/out"), filepath.Join(root, "other/out")))
		},
		"a link on the way": func(root string) error { return os.Symlink("dir", filepath.Join(root, "other")) },
	}
	for name, way := range ways {
		for content, blocks := range map[string]bool{"old": true, "new": false} {
			t.Run(name+", "+content, func(t *testing.T) {
				root := t.TempDir()
				out := filepath.Join(root, "dir/out")
				must(t, errors.Join(os.Mkdir(filepath.Dir(out), 0o755), os.WriteFile(out, []byte(content), 0o644), way(root)))
				r := replacingBy(t, root, nil, map[string]string{"dir/out": "new", "other/out": "new", "third": "new"})
				if found := r.Conflicts(); !blocks && len(found) > 0 || blocks && (len(found) != 2 || !strings.HasSuffix(found[0].State, `it is the same file as "other/out", another target`)) {
					t.Errorf("%v", found)
				}
			})
		}
	}
}

// TestReplaceArtifacts: result artifacts are displaced if they are those of the active savepoint's
// commit, byte for byte.
func TestReplaceArtifacts(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{restore.ManifestName, restore.ReportName} {
		must(t, os.WriteFile(filepath.Join(root, name), []byte(name), 0o644))
	}
	own := map[string][sha256.Size]byte{
		restore.ManifestName: sha256.Sum256([]byte(restore.ManifestName)),
		restore.ReportName:   sha256.Sum256([]byte("another one")),
	}
	r := replacing(t, root, own)
	if r.Target(restore.ManifestName) == nil || r.Target(restore.ReportName) != nil || len(r.Conflicts()) != 1 || r.Conflicts()[0].Path != restore.ReportName {
		t.Errorf("%+v, %v", r.Targets(), r.Conflicts())
	}
	for _, c := range append(r.Conflicts(), replacing(t, root, nil).Conflicts()...) {
		if !strings.HasSuffix(c.State, "which is foreign: it is not what the commit of the active savepoint made") {
			t.Error(c)
		}
	}
}

// TestReplaceVerify: an identical file that was changed after it was looked at is no longer the one.
func TestReplaceVerify(t *testing.T) {
	for name, change := range map[string]func(at string) error{
		"content": func(at string) error { return os.WriteFile(at, []byte("odd"), 0o644) },
		"mode":    func(at string) error { return os.Chmod(at, 0o755) },
		"gone":    os.Remove,
		"replaced": func(at string) error {
			return errors.Join(os.WriteFile(at+"2", []byte("new"), 0o644), os.Rename(at+"2", at))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			at := filepath.Join(root, "dir/out")
			must(t, errors.Join(os.Mkdir(filepath.Dir(at), 0o755), os.WriteFile(at, []byte("new"), 0o644)))
			r := replacing(t, root, nil)
			there := []*restore.Target{r.Target("dir/out"), r.Target("dir/out")}
			if failed, err := restore.VerifyIdentical(t.Context(), r.Root(), there); failed != nil || err != nil {
				t.Fatal(failed, err)
			}
			done, cancel := context.WithCancel(t.Context())
			cancel()
			if failed, err := restore.VerifyIdentical(done, r.Root(), there); failed != nil || !errors.Is(err, context.Canceled) {
				t.Error(failed, err)
			}
			must(t, change(at))
			if failed, err := restore.VerifyIdentical(t.Context(), r.Root(), there); err == nil || failed != there[0] {
				t.Errorf("%v, %v", failed, err)
			}
		})
	}
}
