package fusemount

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/served"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// TestMountWhileParentIsRenamed: a rival exchanges a directory above the mount point all the
// time. Every mount succeeds, on the directory that was opened, and every unmount takes it.
func TestMountWhileParentIsRenamed(t *testing.T) {
	dir := mountDir(t)
	if err := errors.Join(os.MkdirAll(dir+"/mine/view", 0o755), os.MkdirAll(dir+"/other/view", 0o755)); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, dir+"/mine", unix.AT_FDCWD, dir+"/other", unix.RENAME_EXCHANGE); err != nil {
				ended <- err
				return
			}
		}
	}()
	for i := range sample.Of(200, 1000, 1000) {
		v, err := Mount(oneFile(t), dir+"/mine/view", Options{})
		if err == nil {
			err = v.Unmount(unmountNow(), 0)
		}
		if err != nil {
			t.Errorf("mount %d: %v", i, err)
			break
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if left := spectrumMounts(dir); len(left) > 0 {
		t.Errorf("left mounted: %v", left)
	}
}

// TestMountHelperIsMisdirected: the helper mounts on another directory. The mount fails, and leaves
// nothing anywhere; a dead view that existed before stays.
func TestMountHelperIsMisdirected(t *testing.T) {
	dir := mountDir(t)
	helper := filepath.Join(t.TempDir(), "fusermount3")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = -u ] || { cd %q && mv mine aside && mv other mine && mv aside other; }\nexec %s \"$@\"\n", dir, findHelper())
	err := errors.Join(os.WriteFile(helper, []byte(script), 0o755), os.MkdirAll(dir+"/mine/view", 0o755), os.MkdirAll(dir+"/other/view", 0o755), os.MkdirAll(dir+"/dead/view", 0o755))
	if err != nil {
		t.Fatal(err)
	}
	dead := serveView(t, orders{Source: source(t), Mountpoint: dir + "/dead/view"})
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-dead.exited
	if _, err := mountWith(system{device: "/dev/fuse", helper: helper}, oneFile(t), dir+"/mine/view", Options{}); !errors.Is(err, ErrMoved) {
		t.Errorf("mounted on another directory: %v", err)
	}
	if left := spectrumMounts(dir); len(left) != 1 || !left[dead.mount] {
		t.Errorf("mounted: %v", left)
	}
}

// rivals are two directories with a view of this user in each, of one name, and a helper
// that exchanges the two before it does what it is for.
type rivals struct {
	t           *testing.T
	mine, other *child
	sys         system
}

func newRivals(t *testing.T) *rivals {
	t.Helper()
	dir := mountDir(t)
	helper := filepath.Join(t.TempDir(), "fusermount3")
	script := fmt.Sprintf("#!/bin/sh\ncd %q && mv mine aside && mv other mine && mv aside other\nexec %s \"$@\"\n", dir, findHelper())
	err := errors.Join(os.WriteFile(helper, []byte(script), 0o755), os.MkdirAll(dir+"/mine/view", 0o755), os.MkdirAll(dir+"/other/view", 0o755))
	if err != nil {
		t.Fatal(err)
	}
	return &rivals{
		t: t, sys: system{device: "/dev/fuse", helper: helper},
		mine:  serveView(t, orders{Source: source(t), Mountpoint: dir + "/mine/view"}),
		other: serveView(t, orders{Source: source(t), Mountpoint: dir + "/other/view"}),
	}
}

// TestUmountHelperIsMisdirected: the helper takes a path. Led to another view of this user,
// it leaves that one alone.
func TestUmountHelperIsMisdirected(t *testing.T) {
	r := newRivals(t)
	other := mountOf(t, r.other.mount)
	mine := mountOf(t, r.mine.mount)
	err := unmountWith(r.sys, r.mine.mount, served.OpenDir)
	if m, tableErr := inTable(mine); tableErr != nil || (m == nil) != (err == nil) {
		t.Errorf("the view is still there: %v; %v", m != nil, err)
	}
	if m, tableErr := inTable(other); m == nil || tableErr != nil {
		t.Errorf("another view was unmounted: %v, %v", tableErr, err)
	}
}

// TestUmountAbortsWhatItChecked: the forced unmount of a view aborts the connection of this view,
// by number, and no other one, wherever the helper is redirected.
func TestUmountAbortsWhatItChecked(t *testing.T) {
	mountOther(t, "fusectl", controlDir)
	r := newRivals(t)
	other := mountOf(t, r.other.mount)
	p, err := openHeld(r.mine.mount)
	if err != nil {
		t.Fatal(err)
	}
	holder := hold(t, r.mine.mount)
	defer func() { _ = holder.Process.Kill(); _ = holder.Wait() }()
	err = r.sys.clear(p)
	r.mine.line("ended")
	if m, tableErr := inTable(other); m == nil || tableErr != nil {
		t.Errorf("another view was unmounted (%v), %v", tableErr, err)
	}
}

// TestUmountTellsOfAnother: a helper that has unmounted another view, which only a lazy one
// does, is found out, also when the right one has gone by then.
func TestUmountTellsOfAnother(t *testing.T) {
	for _, gone := range []bool{false, true} {
		r := newRivals(t)
		other := mountOf(t, r.other.mount)
		p, err := openHeld(r.mine.mount)
		if err != nil {
			t.Fatal(err)
		}
		p.close()
		if gone {
			signalAndExit(t, r.mine, unix.SIGTERM)
		}
		err = r.sys.unmountNamed(p, true)
		if m, tableErr := inTable(other); m != nil || tableErr != nil {
			t.Fatalf("the helper unmounted nothing: %v, %v", tableErr, err)
		}
		if !errors.Is(err, errReplaced) || !strings.Contains(err.Error(), r.other.mount) {
			t.Errorf("%v does not name %q", err, r.other.mount)
		}
	}
}

func mountOf(t *testing.T, path string) mountID {
	t.Helper()
	p, err := openHeld(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	return idOf(p.mount)
}

// TestAbortWithoutControl: if the control file system of FUSE is not mounted, the error names that
// and the fix.
func TestAbortWithoutControl(t *testing.T) {
	c := serveView(t, orders{Source: source(t)})
	p, err := openHeld(c.mount)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if err := abortConnection(p.mount, p.unique); !errors.Is(err, errNoControl) {
		t.Errorf("%v, want errNoControl", err)
	}
	mountOther(t, "fusectl", controlDir)
	for range 2 { // the second time there is nothing to end
		if err := abortConnection(p.mount, p.unique); err != nil {
			t.Error(err)
		}
	}
	c.line("ended")
}

// TestAbortOfReusedNumber: the number of an ended connection may belong to another one.
func TestAbortOfReusedNumber(t *testing.T) {
	mountOther(t, "fusectl", controlDir)
	c := serveView(t, orders{Source: source(t)})
	p, err := openHeld(c.mount)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	gone := *p.mount
	gone.ID = 1 << 30 // a mount that is not in the table, of a connection that is
	if err := abortConnection(&gone, 0); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(c.mount + "/a"); err != nil {
		t.Errorf("the connection of another mount was ended: %v", err)
	}
}

// TestRevokeHidden: no path leads to a view that another mount covers. Its connection is
// ended by its number, and what covers it stays.
func TestRevokeHidden(t *testing.T) {
	mountOther(t, "fusectl", controlDir)
	for name, cover := range map[string]func(view string) string{
		"on it":      func(view string) string { return view },
		"above it":   filepath.Dir,
		"by another": func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			dir := mountDir(t)
			if err := os.Mkdir(dir+"/view", 0o755); err != nil {
				t.Fatal(err)
			}
			c := serveView(t, orders{Source: source(t), Mountpoint: dir + "/view"})
			reader, err := os.Open(c.mount + "/a")
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			if on := cover(c.mount); on != "" {
				mountOther(t, "tmpfs", on)
			} else {
				mountUnserved(t, fsType, c.mount, nobody)
			}
			var view *Other
			own, _, err := Views()
			for _, o := range own {
				if o.Path() == c.mount {
					view = o
				}
			}
			if err != nil || view == nil {
				t.Fatalf("not listed: %v", err)
			}
			if _, err := view.Read(t.Context(), "status.json", 100); !errors.Is(err, ErrHidden) {
				t.Errorf("read: %v, want ErrHidden", err)
			}
			if err := view.Revoke(t.Context()); err != nil {
				t.Errorf("revoke: %v", err)
			}
			c.line("ended")
			if _, err := reader.ReadDir(1); err == nil {
				t.Error("a reader that holds it still gets data")
			}
		})
	}
}

// TestUmountOfAnother: a view that this user may not unmount is named with its owner.
func TestUmountOfAnother(t *testing.T) {
	dir := mountDir(t)
	mountUnserved(t, fsType, dir, nobody)
	err := unmountWith(system{device: "/dev/fuse", helper: "/bin/false"}, dir, served.OpenDir)
	var owned *NotOwnError
	var at *MountpointError
	if !errors.As(err, &owned) || owned.UserID != nobody || !errors.As(err, &at) || at.Path != dir || !errors.Is(err, ErrNotOwn) {
		t.Errorf("%v", err)
	}
}

// TestDetachOfWhatEnds: a mount that another process takes away in the same moment, as the server
// of a view does whose connection was cut, is gone, and that is not an error.
func TestDetachOfWhatEnds(t *testing.T) {
	dir := t.TempDir()
	for range 200 {
		if err := unix.Mount("none", dir, "tmpfs", 0, "size=4k"); err != nil {
			t.Fatal(err)
		}
		p, err := openHeld(dir)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error)
		go func() { ended <- unix.Unmount(dir, unix.MNT_DETACH) }()
		err = p.detach(0)
		p.close()
		if other := <-ended; err != nil || other != nil && !errors.Is(other, unix.EINVAL) {
			t.Fatalf("%v; the other: %v", err, other)
		}
	}
}
