package machine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

func openDir(t *testing.T, path string) *pathsafe.Dir {
	t.Helper()
	d, err := pathsafe.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// wantNames fails unless a directory has exactly these names.
func wantNames(t *testing.T, path string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if !slices.Equal(names, want) {
		t.Errorf("%q holds %q, not %q", path, names, want)
	}
}

// TestProbe: each feature is tried once, in order, and nothing is left.
func TestProbe(t *testing.T) {
	path := t.TempDir()
	name := NewName()
	if !strings.HasPrefix(name, Prefix) || strings.HasPrefix(name, ".spectrum06_") {
		t.Errorf("name %q", name)
	}
	findings, err := Probe(context.Background(), openDir(t, path), name)
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != len(trials) {
		t.Errorf("%d findings of %d trials", len(findings), len(trials))
	}
	needed := []Feature{Lock, MountID, Mode, NoReplace, FileSync, DirSync, SyncFS}
	for i, f := range findings {
		if f.Feature != trials[i].feature {
			t.Errorf("finding %d is of %q", i, f.Feature)
		}
		if f.Err != nil && (slices.Contains(needed, f.Feature) || !IsLacking(f.Err)) {
			t.Errorf("%s: %v", f.Feature, f.Err)
		}
	}
	wantNames(t, path)
}

// TestProbeEveryCallFails: whatever fails is reported, as a finding where it is one,
// and nothing is left but what cannot be removed, which is named.
func TestProbeEveryCallFails(t *testing.T) {
	ops := []string{"make directory", "open directory", "clear", "remove directory"}
	for _, trial := range trials {
		ops = append(ops, string(trial.feature))
	}
	for _, op := range ops {
		for _, errno := range []error{unix.EIO, unix.EOPNOTSUPP} {
			t.Run(op+" "+errno.Error(), func(t *testing.T) {
				path := t.TempDir()
				s := &sys.Hook{Call: func(at, _ string, f func() error) error {
					if at != op {
						return f()
					}
					if at != "make directory" && at != "open directory" {
						_ = f() // it was done, and said otherwise
					}
					return errno
				}}
				findings, err := probe(context.Background(), s, openDir(t, path), NewName())
				if slices.Contains(ops[:4], op) {
					if !errors.Is(err, errno) || findings != nil {
						t.Errorf("%v, and %d findings", err, len(findings))
					}
				} else if i := slices.IndexFunc(findings, func(f Finding) bool { return errors.Is(f.Err, errno) }); err != nil || i < 0 || string(findings[i].Feature) != op {
					t.Errorf("%v: %v", err, findings)
				}
				wantNames(t, path)
			})
		}
	}
}

// TestProbeInterrupted: it ends at every point with the error of its context, and
// nothing is left.
func TestProbeInterrupted(t *testing.T) {
	for _, trial := range trials {
		path := t.TempDir()
		ctx, cancel := context.WithCancel(context.Background())
		s := &sys.Hook{Call: func(op, _ string, f func() error) error {
			if op == string(trial.feature) {
				cancel()
			}
			return f()
		}}
		findings, err := probe(ctx, s, openDir(t, path), NewName())
		last := trial.feature == trials[len(trials)-1].feature
		if last != (err == nil) || !last && (!errors.Is(err, context.Canceled) || findings != nil) {
			t.Errorf("%s: %v, %d findings", trial.feature, err, len(findings))
		}
		wantNames(t, path)
		cancel()
	}
}

// TestProbeLeaves: what cannot be removed is named.
func TestProbeLeaves(t *testing.T) {
	path := t.TempDir()
	name := NewName()
	s := &sys.Hook{Call: func(op, _ string, f func() error) error {
		if op == "clear" {
			return unix.EROFS
		}
		return f()
	}}
	_, err := probe(context.Background(), s, openDir(t, path), name)
	if !errors.Is(err, unix.EROFS) || !errors.Is(err, unix.ENOTEMPTY) || !strings.Contains(err.Error(), name) {
		t.Error(err)
	}
	wantNames(t, path, name)
}

// TestProbeTaken: a name that is taken stays.
func TestProbeTaken(t *testing.T) {
	path := t.TempDir()
	if err := os.WriteFile(filepath.Join(path, "taken"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Probe(context.Background(), openDir(t, path), "taken"); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	wantNames(t, path, "taken")
}

// TestProbeReadOnly: nothing can be made.
func TestProbeReadOnly(t *testing.T) {
	path := mounted(t, "-t", "tmpfs", "-o", "ro", "tmpfs")
	if _, err := Probe(context.Background(), openDir(t, path), NewName()); !errors.Is(err, unix.EROFS) {
		t.Error(err)
	}
}

// TestProbeUnlike: a lock, a name or a rename that does not do what was requested is a finding, not
// a success.
func TestProbeUnlike(t *testing.T) {
	if err := unlike("%d locks", 2); !IsLacking(err) || err.Error() != "2 locks: unsupported operation" {
		t.Error(err)
	}
	for _, err := range []error{unix.EIO, unix.ENOSPC, unix.EROFS, unix.ESTALE, unix.EDQUOT, context.Canceled} {
		if IsLacking(err) {
			t.Errorf("%v counts as something that cannot be done here", err)
		}
	}
	for _, err := range []error{unix.EOPNOTSUPP, unix.ENOSYS, unix.EINVAL, unix.ENOTTY, unix.EXDEV, unix.EPERM} {
		if !IsLacking(err) {
			t.Errorf("%v does not", err)
		}
	}
}
