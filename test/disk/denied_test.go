package disk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
)

// TestDenied has the system deny what the commit requires. The code is the
// law's, and the root is as before; without the hindrance the commit succeeds.
func TestDenied(t *testing.T) {
	for _, c := range []struct {
		name   string
		code   string
		asUser bool
		hinder func(t *testing.T, root string) (free func())
	}{
		{"parent not writable", "RESTORE_FINALIZE_FAILED", true, func(t *testing.T, root string) func() {
			return chmod(t, filepath.Join(root, "out/deep"), 0o555)
		}},
		{"parent of a new directory not writable", "RESTORE_FINALIZE_FAILED", true, func(t *testing.T, root string) func() {
			return chmod(t, filepath.Join(root, "out"), 0o555)
		}},
		{"root not writable", "RESTORE_TARGET_NOT_WRITABLE", true, func(t *testing.T, root string) func() {
			return chmod(t, root, 0o555)
		}},
		{"parent of another user", "RESTORE_FINALIZE_FAILED", true, func(t *testing.T, root string) func() {
			return take(t, filepath.Join(root, "out/deep"), 0o755)
		}},
		{"parent that cannot be entered", "RESTORE_INTERNAL_ERROR", true, func(t *testing.T, root string) func() {
			return take(t, filepath.Join(root, "out/deep"), 0o700)
		}},
		{"parent immutable", "RESTORE_FINALIZE_FAILED", false, func(t *testing.T, root string) func() {
			return immutable(t, filepath.Join(root, "out/deep"))
		}},
		{"first parent immutable", "RESTORE_FINALIZE_FAILED", false, func(t *testing.T, root string) func() {
			return immutable(t, filepath.Join(root, "out"))
		}},
		{"root immutable", "RESTORE_TARGET_NOT_WRITABLE", false, immutable},
		{"root read-only", "RESTORE_TARGET_NOT_WRITABLE", false, func(t *testing.T, root string) func() {
			return readOnly(t, root)
		}},
		{"parent on another mount, read-only", "RESTORE_FINALIZE_FAILED", false, func(t *testing.T, root string) func() {
			return readOnly(t, filepath.Join(root, "out/deep"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) { deniedCase(t, c.code, c.asUser, c.hinder) })
	}
}

func deniedCase(t *testing.T, code string, asUser bool, hinder func(*testing.T, string) func()) {
	p, v := harness.NewIn(t, t.TempDir(), small()), harness.MountedVolume(t, harness.Ext4)
	site := p.Site(t, filepath.Join(v.Path, "root"))
	run := func(args ...string) harness.Reply { return p.Run(t, nil, args...) }
	if asUser {
		top := filepath.Dir(p.Dir)
		harness.GiveToNobody(t, top)
		harness.GiveToNobody(t, v.Path)
		harness.LetOthersIn(t, top)
		run = func(args ...string) harness.Reply { return p.RunAsNobody(t, args...) }
	}
	free := hinder(t, site.Root)
	settle(t, site)
	stamp, err := harness.Stamp(site.Root)
	harness.Must(t, err)
	r := commitWith(site, run)
	if r.Answer.Code != code {
		t.Errorf("want %s, got %v", code, r)
	}
	want(t, site, harness.Before)
	if code == "RESTORE_TARGET_NOT_WRITABLE" {
		if want := map[bool]int{true: 74, false: 1}[strings.HasSuffix(t.Name(), "read-only")]; r.Status != want {
			t.Errorf("want exit status %d: a file system that is read-only is a fault of the machine, and what this user may not do is none: %v", want, r)
		}
		if err := site.Refused(stamp); err != nil {
			t.Error(err)
		}
	}
	free()
	settle(t, site)
	if r := commitWith(site, run); r.Status != 0 {
		t.Errorf("without the hindrance: %v", r)
	}
	want(t, site, harness.After)
}

// commitWith makes a preview and commits it.
func commitWith(site *harness.Site, run func(args ...string) harness.Reply) harness.Reply {
	r := run("preview", "--json", "--restore-root", site.Root, site.Project.Runs[0].Dir)
	var answer struct {
		PreviewID string `json:"preview_id"`
	}
	if r.Status != 0 || json.Unmarshal([]byte(r.Stdout), &answer) != nil {
		return r
	}
	return run(harness.CommitArgs(answer.PreviewID)...)
}

// settle takes the root as it is now for that before the commit. What is new
// then belongs to whom the root belongs to.
func settle(t *testing.T, site *harness.Site) {
	t.Helper()
	now := harness.MustTake(t, site.Root)
	for name, thing := range site.After {
		if there, ok := now[name]; ok {
			site.After[name] = there
			continue
		}
		thing.UID, thing.GID = now["."].UID, now["."].GID
		site.After[name] = thing
	}
	site.Before = now
}

func chmod(t *testing.T, dir string, mode os.FileMode) func() {
	t.Helper()
	harness.Must(t, os.Chmod(dir, mode))
	return func() { harness.Must(t, os.Chmod(dir, 0o755)) }
}

// take takes a directory from the user nobody.
func take(t *testing.T, dir string, mode os.FileMode) func() {
	t.Helper()
	harness.Must(t, os.Chown(dir, 0, 0))
	free := chmod(t, dir, mode)
	return func() {
		free()
		harness.Must(t, os.Chown(dir, harness.Nobody, harness.Nobody))
	}
}

func immutable(t *testing.T, dir string) func() {
	t.Helper()
	harness.SetImmutable(t, dir, true)
	free := func() { harness.SetImmutable(t, dir, false) }
	t.Cleanup(free)
	return free
}

// readOnly mounts a directory on itself, read-only.
func readOnly(t *testing.T, dir string) func() {
	t.Helper()
	run(t, "mount", "--bind", dir, dir)
	t.Cleanup(func() { _ = blocklog.Unmount(dir) })
	run(t, "mount", "-o", "remount,bind,ro", dir)
	return func() { harness.Must(t, blocklog.Unmount(dir)) }
}
