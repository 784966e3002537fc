package fusemount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/fusefs"
	"golang.org/x/sys/unix"
)

const nobody = 65534

// TestMountUnprivileged mounts as an ordinary user. The FUSE device may be closed to users on this
// machine, so the test uses a private mount namespace with its own device.
func TestMountUnprivileged(t *testing.T) {
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Mkdir(dir+"/src", 0o755), os.WriteFile(dir+"/src/f", []byte("hello"), 0o644),
		os.Mkdir(dir+"/mnt", 0o755), os.Chown(dir+"/mnt", nobody, nobody), copyFile("/proc/self/exe", dir+"/exe")); err != nil {
		t.Fatal(err)
	}
	c := start(t, orders{Scenario: "namespace", Source: dir + "/src", Mountpoint: dir + "/mnt"})
	c.exit(0)
	if got := c.line("unprivileged"); got != "done" {
		t.Error(got)
	}
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// childNamespace makes a device that all users may open, and continues as the user nobody.
func childNamespace(o orders) error {
	device := filepath.Join(filepath.Dir(o.Mountpoint), "fuse")
	if err := errors.Join(
		unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
		unix.Mknod(device, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 229))),
		os.Chmod(device, 0o666),
		unix.Mount(device, "/dev/fuse", "", unix.MS_BIND, "")); err != nil {
		return err
	}
	o.Scenario = "unprivileged"
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	cmd := exec.Command(filepath.Join(filepath.Dir(o.Mountpoint), "exe"))
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd.Run()
}

// childUnprivileged is the whole life of a view as a user.
func childUnprivileged(o orders) error {
	if _, err := mountWith(hostSystem(), mustTree(o), o.Mountpoint, Options{AllowOther: true}); err == nil ||
		!strings.Contains(err.Error(), "user_allow_other") {
		return fmt.Errorf("allow_other without user_allow_other: %w", err)
	}
	if _, err := Mount(mustTree(o), o.Source, Options{}); !errors.Is(err, ErrNotEmpty) {
		return fmt.Errorf("mount on a directory with files: %w", err)
	}
	for range 2 {
		v, err := Mount(mustTree(o), o.Mountpoint, Options{})
		if err != nil {
			return err
		}
		out, err := exec.Command("cat", o.Mountpoint+"/f").Output()
		if err != nil || string(out) != "hello" {
			return fmt.Errorf("read %q, %w", out, err)
		}
		if err := unix.Access(o.Mountpoint, unix.W_OK); err != unix.EROFS {
			return fmt.Errorf("write access: %w", err)
		}
		holder := exec.Command("sleep", "1000")
		holder.Dir = o.Mountpoint
		if err := holder.Start(); err != nil {
			return err
		}
		err = v.Unmount(context.Background(), 0) // lazily, and the server ends too
		_ = holder.Process.Kill()
		_ = holder.Wait()
		if err != nil {
			return err
		}
	}
	v, err := Mount(mustTree(o), o.Mountpoint, Options{})
	if err != nil {
		return err
	}
	if err := Unmount(o.Mountpoint); err != nil {
		return err
	}
	v.Wait()
	fmt.Println("unprivileged done")
	return nil
}

func mustTree(o orders) *fusefs.Tree {
	tree, err := treeOf(o)
	if err != nil {
		panic(err)
	}
	return tree
}
