package fusemount

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// write makes a file of the test's own, with exactly this mode.
func write(t *testing.T, name, text string, mode uint32) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), unix.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestMeansOfThisMachine: where tests mount, nothing is missing.
func TestMeansOfThisMachine(t *testing.T) {
	m := FindMeans(context.Background())
	if m.DeviceErr != nil || m.Denied != nil || m.Device != "/dev/fuse" || m.Config != "/etc/fuse.conf" || m.Direct != (os.Geteuid() == 0) {
		t.Errorf("%+v", m)
	}
}

// TestMeansMissing: each missing tool or permission is reported, and nothing else.
func TestMeansMissing(t *testing.T) {
	helper := write(t, helperName, "#!/bin/sh\necho fusermount3 version: 3.2.1\n", unix.S_ISUID|0o755)
	plain := write(t, helperName, "#!/bin/sh\nexit 1\n", 0o755)
	config := write(t, "fuse.conf", "user_allow_other\n", 0o644)
	all := system{device: "/dev/null", helper: helper}
	ctx := context.Background()

	if m := all.means(ctx, config); m.DeviceErr != nil || m.HelperErr != nil || m.Denied != nil || m.Shared != nil || m.Version != "3.2.1" {
		t.Errorf("%+v", m)
	}
	without := all
	without.device = filepath.Join(t.TempDir(), "fuse")
	if m := without.means(ctx, config); !errors.Is(m.DeviceErr, ErrUnavailable) || !errors.Is(m.DeviceErr, fs.ErrNotExist) || m.HelperErr != nil {
		t.Errorf("%+v", m)
	}
	without = all
	without.helper = ""
	if m := without.means(ctx, config); !errors.Is(m.HelperErr, ErrNoHelper) || m.Version != "" || m.DeviceErr != nil {
		t.Errorf("%+v", m)
	}
	without.helper = plain
	if m := without.means(ctx, config); !errors.Is(m.HelperErr, ErrNotSetuid) || m.Version != "" {
		t.Errorf("%+v", m)
	}
	without.helper = plain + "-gone"
	if m := without.means(ctx, config); !errors.Is(m.HelperErr, fs.ErrNotExist) {
		t.Errorf("%+v", m)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(helper, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		if err := unix.Chmod(helper, unix.S_ISUID|0o755); err != nil {
			t.Fatal(err)
		}
		if m := all.means(ctx, config); !errors.Is(m.HelperErr, ErrNotSetuid) {
			t.Errorf("setuid of another user: %+v", m)
		}
	}
}

// TestSetuidVoid: a helper whose bit the kernel does not honour.
func TestSetuidVoid(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	helper := filepath.Join(dir, helperName)
	if err := errors.Join(os.WriteFile(helper, nil, 0o755), unix.Chmod(helper, unix.S_ISUID|0o755)); err != nil {
		t.Fatal(err)
	}
	if err := (system{helper: helper}).checkHelper(); !errors.Is(err, ErrSetuidVoid) {
		t.Error(err)
	}
}

// TestBarred: a thread without the capability, or that may get no privileges, is
// notified. It ends with the test.
func TestBarred(t *testing.T) {
	done := make(chan [4]error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends
		var output [4]error
		output[0] = system{}.denied()
		output[1] = system{direct: true}.denied()
		_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		output[2] = system{}.denied()
		head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		_ = unix.Capset(&head, &none[0])
		output[3] = system{direct: true}.denied()
		done <- output
	}()
	output := <-done
	if output[0] != nil || output[1] != nil && os.Geteuid() == 0 || output[2] == nil || output[3] == nil {
		t.Error(output)
	}
}

// TestShared reads the configuration as the helper does.
func TestShared(t *testing.T) {
	for text, want := range map[string]error{
		"":                                       ErrNotShared,
		"user_allow_other\n":                     nil,
		"# user_allow_other\n":                   ErrNotShared,
		"#user_allow_other\nmount_max = 10\n":    ErrNotShared,
		" \tuser_allow_other \t# for backups\n":  nil,
		"user_allow_other = yes\n":               ErrNotShared,
		"xuser_allow_other\n":                    ErrNotShared,
		"User_Allow_Other\n":                     ErrNotShared,
		"user_allow_other":                       ErrCutLine,
		"mount_max = 10\nuser_allow_other":       ErrCutLine,
		"user_allow_other\nuser_allow_other":     nil,
		"mount_max = 10\r\nuser_allow_other\r\n": nil,
		"user_allow\n_other\n":                   ErrNotShared,
	} {
		if err := checkShared(write(t, "fuse.conf", text, 0o644)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%q: %v, not %v", text, err, want)
		}
	}
	if err := checkShared(filepath.Join(t.TempDir(), "fuse.conf")); !errors.Is(err, ErrNotShared) {
		t.Error(err)
	}
	if err := checkShared(t.TempDir()); err == nil || errors.Is(err, ErrNotShared) {
		t.Errorf("a directory: %v", err)
	}
}
