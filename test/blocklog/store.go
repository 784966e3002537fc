package blocklog

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A Store is a running server of a disk.
type Store struct {
	Disk string // the file that backs a loop device

	dir, log string
	cmd      *exec.Cmd
	stdin    io.Closer
	stderr   bytes.Buffer
	stopped  bool
}

// Serve starts a store of an image. It is stopped when the test ends, if not
// before.
func Serve(t testing.TB, base string) *Store {
	t.Helper()
	dir := t.TempDir()
	s := &Store{dir: filepath.Join(dir, "store"), log: filepath.Join(dir, "log")}
	s.Disk = filepath.Join(s.dir, diskName)
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command(self)
	s.cmd.Env = append(os.Environ(), serverEnv+"="+base+"\n"+s.log+"\n"+s.dir)
	s.cmd.Stderr = &s.stderr
	stdin, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	s.stdin = stdin
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop() }) //nolint:errcheck // a test that needs the log stops it itself
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Fatalf("the server of %q did not start (%q): %v %s", base, line, err, &s.stderr)
	}
	return s
}

// Mark puts a name into the log.
func (s *Store) Mark(t testing.TB, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, markName), []byte(name), 0); err != nil {
		t.Fatal(err)
	}
}

// Stop ends the server and returns the log. The disk must be unmounted.
func (s *Store) Stop(t testing.TB) []Record {
	t.Helper()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	records, err := ReadLog(s.log)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

func (s *Store) stop() error {
	if s.stopped {
		return nil
	}
	s.stopped = true
	s.stdin.Close() //nolint:errcheck // a pipe
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("the server of a disk: %w %s", err, &s.stderr)
	}
	return nil
}
