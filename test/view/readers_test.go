package view

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
)

// A child is a process that reads a view.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	lines  chan string
	stderr bytes.Buffer
}

// command is this test binary with orders.
func command(t *testing.T, binary string, o orders) *exec.Cmd {
	t.Helper()
	raw, err := json.Marshal(o)
	harness.Must(t, err)
	path := filepath.Join(t.TempDir(), "orders")
	harness.Must(t, os.WriteFile(path, raw, 0o600))
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	return cmd
}

// startReaders starts a child that reads a view, and waits until it is ready.
func startReaders(t *testing.T, o orders) *child {
	t.Helper()
	o.Role = "read"
	c := &child{t: t, cmd: command(t, "/proc/self/exe", o), lines: make(chan string, 10)}
	c.cmd.Stderr = &c.stderr
	stdout, err := c.cmd.StdoutPipe()
	harness.Must(t, err)
	c.stdin, err = c.cmd.StdinPipe()
	harness.Must(t, err)
	harness.Must(t, c.cmd.Start())
	t.Cleanup(func() { _ = c.cmd.Process.Kill() })
	go func() {
		defer close(c.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			c.lines <- lines.Text()
		}
		_ = c.cmd.Wait()
	}()
	c.line("ready")
	return c
}

// line waits for the next line, and fails unless it is this one; any if "".
func (c *child) line(want string) string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok || want != "" && line != want {
			c.t.Fatalf("the readers say %q instead of %q: %s", line, want, &c.stderr)
		}
		return line
	case <-time.After(harness.Patience):
		c.t.Fatalf("the readers hang, and do not say %q", want)
	}
	return ""
}

// tell lets the readers begin, or stop.
func (c *child) tell() {
	c.t.Helper()
	_, err := io.WriteString(c.stdin, "\n")
	harness.Must(c.t, err)
}

// begin lets the readers begin, and waits until each has read something.
func (c *child) begin() {
	c.t.Helper()
	c.tell()
	c.line("reading")
}

// finish waits for the readers to end. None may have seen what is wrong.
func (c *child) finish() (sum tally) {
	c.t.Helper()
	harness.Must(c.t, json.Unmarshal([]byte(c.line("")), &sum))
	for _, wrong := range sum.Wrong {
		c.t.Error(wrong)
	}
	if sum.Reads == 0 {
		c.t.Error("nothing was read")
	}
	return sum
}

// gone waits for the process to have ended, however.
func (c *child) gone() {
	c.t.Helper()
	for deadline := time.After(harness.Patience); ; {
		select {
		case _, ok := <-c.lines:
			if !ok {
				return
			}
		case <-deadline:
			c.t.Fatal("the readers do not end")
		}
	}
}

// readAll has readers read, each so many times, and returns what they saw.
func readAll(t *testing.T, o orders) tally {
	t.Helper()
	c := startReaders(t, o)
	c.begin()
	sum := c.finish()
	c.gone()
	return sum
}
