package main

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// slowCat is a cat whose reader has read one byte and no more yet: it has verified
// the candidate, and has most of what it writes still to read.
type slowCat struct {
	cmd  *exec.Cmd
	out  io.Reader
	said bytes.Buffer
	got  []byte
}

func startCat(t *testing.T, args ...string) *slowCat {
	t.Helper()
	c := &slowCat{cmd: command(t, append([]string{"cat"}, args...)...), got: make([]byte, 1)}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out, c.cmd.Stderr = out, &c.said
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c.out, c.got); err != nil {
		t.Fatalf("%v: %s", err, c.said.String())
	}
	return c
}

// end reads the rest, and returns the exit status.
func (c *slowCat) end(t *testing.T) int {
	t.Helper()
	rest, err := io.ReadAll(c.out)
	if err != nil {
		t.Fatal(err)
	}
	c.got = append(c.got, rest...)
	var exit *exec.ExitError
	if err := c.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}

// noise is a content in which no two blocks are the same.
func noise(size int) string {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content)
	return string(content)
}

// TestCatAfterVerification changes sources after they were verified: no byte that
// was not signed is written, and nothing hangs.
func TestCatAfterVerification(t *testing.T) {
	t.Parallel()
	const block = blockhash.TagBlockSize
	const size, bad = 4<<20 + 77, 90*block + 5 // far behind what was read ahead
	big, small := noise(size), "small\n"
	tests := []struct {
		name   string
		change func(p *bundletest.Project)
		want   string // that is written
		said   string // "" when it ends well
	}{
		{"nothing", func(*bundletest.Project) {}, big + small, ""},
		{"one byte", func(p *bundletest.Project) {
			p.Write("big", big[:bad]+string(big[bad]^1)+big[bad+1:])
		}, big[:90*block], `"big": block 90 (bytes 2949120 to 2981888) does not match the signed hash`},
		{"last byte", func(p *bundletest.Project) { p.Write("big", big[:size-1]+"?") }, big[:128*block], `"big": block 128`},
		{"cut", func(p *bundletest.Project) { p.Write("big", big[:bad]) }, big[:90*block], "the file ends at byte 2949125"},
		{"grown", func(p *bundletest.Project) { p.Write("big", big+"more") }, big + small, ""},
		{"another file", func(p *bundletest.Project) { p.Write("small", "sMall\n") }, big, `"small": block 0`},
		{"gone", func(p *bundletest.Project) { replace(t, p, func(string) error { return nil }) }, big, "no such file"},
		{"a FIFO", func(p *bundletest.Project) {
			replace(t, p, func(path string) error { return syscall.Mkfifo(path, 0o666) })
		}, big, "not a regular file"},
		{"a directory", func(p *bundletest.Project) {
			replace(t, p, func(path string) error { return os.Mkdir(path, 0o777) })
		}, big, "not a regular file"},
		{"a link to the same", func(p *bundletest.Project) {
			replace(t, p, func(path string) error {
				return errors.Join(os.WriteFile(path+".old", []byte(small), 0o666), os.Symlink("small.old", path))
			})
		}, big, "symbolic link"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := bundletest.New(t)
			run := p.Run("run-1", map[string]string{"big": big, "small": small})
			c := startCat(t, run.Dir, "--", "big", "small")
			test.change(p)
			status := c.end(t)
			if string(c.got) != test.want {
				t.Errorf("%d bytes were written, not %d; all of them were signed: %v", len(c.got), len(test.want), strings.HasPrefix(big+small, string(c.got)))
			}
			if said := c.said.String(); (test.said == "") != (status == statusOK) || !strings.Contains(said, test.said) ||
				test.said != "" && (status != statusRejected || !strings.Contains(said, "\nhint: ")) {
				t.Errorf("exit status %d: %s", status, said)
			}
		})
	}
}

// replace puts something else in the place of "small".
func replace(t *testing.T, p *bundletest.Project, put func(path string) error) {
	t.Helper()
	path := filepath.Join(p.Root, "small")
	if err := errors.Join(os.Remove(path), put(path)); err != nil {
		t.Fatal(err)
	}
}

// TestCatIntoAFullPipe: Ctrl-C ends cat even if the reader of its pipe is there and does not
// read.
func TestCatIntoAFullPipe(t *testing.T) {
	t.Parallel()
	p := bundletest.New(t)
	run := p.Run("run-1", map[string]string{"big": noise(1 << 20)})
	c := startCat(t, run.Dir, "big")
	if err := c.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); c.cmd.ProcessState.ExitCode() != statusInterrupted { // nothing more is read
		t.Errorf("%v: %s", err, c.said.String())
	}
}
