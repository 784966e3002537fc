package view

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// childTouch maps the one file that it expects. It compares all of it, or
// touches one byte if there is a tampered one.
func childTouch(o orders) error {
	for name, size := range o.Expect.Sizes {
		f, err := os.Open(filepath.Join(o.View, name))
		if err != nil {
			return err
		}
		defer f.Close()
		how := unix.MAP_PRIVATE
		if o.Shared {
			how = unix.MAP_SHARED
		}
		m, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, how)
		if err != nil {
			return err
		}
		if bad := o.Expect.Bad[name]; len(bad) > 0 {
			fmt.Println("the tampered byte is", m[bad[0]])
			continue
		}
		if !bytes.Equal(m, content(name, 0, int(size))) {
			return errors.New("what is mapped is not what was signed")
		}
		fmt.Println("same")
	}
	return nil
}

func TestMapped(t *testing.T) {
	files := sizes{"good": 3<<20 + 5, "bad": 3<<20 + 5, "bad too": 3<<20 + 5}
	p := harness.New(t, files.files())
	v := p.Mount(t, harness.Mounting{})
	bad := map[string][]int64{"bad": {2 << 20}, "bad too": {2 << 20}}
	tamper(t, p, bad)
	touch := func(name string, shared bool) (string, error) {
		o := orders{Role: "touch", View: v.Dir, Shared: shared, Expect: expectation{Sizes: sizes{name: files[name]}, Bad: bad}}
		out, err := command(t, "/proc/self/exe", o).CombinedOutput()
		return string(out), err
	}
	for _, shared := range []bool{false, true} {
		if out, err := touch("good", shared); err != nil || out != "same\n" {
			t.Errorf("mapped, shared %v: %v: %s", shared, err, out)
		}
	}
	for name, shared := range map[string]bool{"bad": false, "bad too": true} {
		out, err := touch(name, shared)
		if err == nil || !strings.Contains(out, "SIGBUS") {
			t.Errorf("a tampered page, shared %v: %v: %s", shared, err, out)
		}
		if lines := findings(v, "path=\""+name+"\""); name == "bad too" && len(lines) != 1 {
			t.Errorf("%s: the log has %q", name, lines)
		}
	}
	readByte(t, v, "bad", 2<<20)
	sum := readAll(t, orders{View: v.Dir, Expect: expectation{Sizes: files, Bad: bad}, Threads: 20, Reads: 10})
	t.Logf("after two SIGBUS: %d reads", sum.Reads)
}

// TestMappedToWrite: there is no way to a page that can be written and is
// another's too.
func TestMappedToWrite(t *testing.T) {
	v := harness.New(t, harness.Files{"file": "signed"}).Mount(t, harness.Mounting{})
	f, err := os.Open(v.Path("file"))
	harness.Must(t, err)
	defer f.Close()
	fd := int(f.Fd())
	if _, err := unix.Mmap(fd, 0, 6, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != unix.EACCES {
		t.Errorf("shared, to write: %v", err)
	}
	shared, err := unix.Mmap(fd, 0, 6, unix.PROT_READ, unix.MAP_SHARED)
	harness.Must(t, err)
	if err := unix.Mprotect(shared, unix.PROT_READ|unix.PROT_WRITE); err != unix.EACCES {
		t.Errorf("shared, made writable: %v", err)
	}
	private, err := unix.Mmap(fd, 0, 6, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	harness.Must(t, err)
	copy(private, "forged")
	if got, err := os.ReadFile(v.Path("file")); err != nil || string(got) != "signed" || string(shared) != "signed" {
		t.Errorf("a private page was written, and others read %q and %q, %v", got, shared, err)
	}
	harness.Must(t, errors.Join(unix.Munmap(shared), unix.Munmap(private)))
}

// TestExecute runs programs from the view: this very one, a script, and one
// with a tampered page.
func TestExecute(t *testing.T) {
	p := sealed(t, func(dir string) {
		copyFile(t, "/proc/self/exe", filepath.Join(dir, "self"))
		copyFile(t, "/proc/self/exe", filepath.Join(dir, "bad"))
		copyFile(t, "/bin/true", filepath.Join(dir, "true"))
		harness.Must(t, os.WriteFile(filepath.Join(dir, "script"), []byte("#!/bin/sh\necho hello\n"), 0o755))
		harness.Must(t, os.WriteFile(filepath.Join(dir, "data"), []byte("#!/bin/sh\n"), 0o644))
	})
	v := p.Mount(t, harness.Mounting{Flags: []string{"--exec"}})
	greet := orders{Role: "greet"}
	if out, err := command(t, v.Path("tree/self"), greet).CombinedOutput(); string(out) != "hello from the view\n" {
		t.Errorf("%v: %s", err, out)
	}
	output(t, nil, v.Path("tree/true"))
	if out := output(t, nil, v.Path("tree/script")); out != "hello\n" {
		t.Errorf("the script says %q", out)
	}
	if err := exec.Command(v.Path("tree/data")).Run(); !errors.Is(err, syscall.EACCES) {
		t.Errorf("a file without the permission: %v", err)
	}
	harness.Must(t, os.WriteFile(p.Source("tree/bad"), bytes.Repeat([]byte("bad"), 100), 0o755))
	if out, err := command(t, v.Path("tree/bad"), greet).CombinedOutput(); err == nil {
		t.Errorf("a tampered program runs: %s", out)
	}
	output(t, nil, v.Path("tree/true"))
}

func TestExecuteRejected(t *testing.T) {
	p := sealed(t, func(dir string) { copyFile(t, "/bin/true", filepath.Join(dir, "true")) })
	v := p.Mount(t, harness.Mounting{})
	if err := exec.Command(v.Path("tree/true")).Run(); !errors.Is(err, syscall.EACCES) {
		t.Errorf("a program in a view that is not for running any: %v", err)
	}
	f, err := os.Open(v.Path("tree/true"))
	harness.Must(t, err)
	defer f.Close()
	if _, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE); err != unix.EPERM {
		t.Errorf("mapped to be run: %v", err)
	}
}

// copyFile makes a program of a file.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	src, err := os.Open(from)
	harness.Must(t, err)
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	harness.Must(t, err)
	_, err = io.Copy(dst, src)
	harness.Must(t, errors.Join(err, dst.Close()))
}
