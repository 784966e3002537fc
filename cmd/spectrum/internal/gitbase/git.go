package gitbase

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spectrumfs/spectrum/internal/served"
)

// ErrNoGit reports that git is not installed.
var ErrNoGit = errors.New(`the program "git" is not in PATH`)

// ErrOldGit is a git that cannot ignore the user's settings (GIT_CONFIG_GLOBAL).
var ErrOldGit = errors.New("git is older than 2.32")

// errTooMuch is an answer that is longer than any that makes sense.
var errTooMuch = errors.New("more than this program reads")

// maxList is how many bytes of a list are read: some ten million files.
const maxList = 1 << 30

// A RunError is a git that has failed.
type RunError struct {
	Command string // such as "ls-tree"
	Said    string // the beginning of what it wrote on stderr; anything may be in it
	err     error
}

func (e *RunError) Error() string {
	if e.Said == "" {
		return fmt.Sprintf("git %s: %v", e.Command, e.err)
	}
	return fmt.Sprintf("git %s failed, and said %q", e.Command, e.Said)
}

func (e *RunError) Unwrap() error { return e.err }

// git is how git is started: in a directory, with nothing of the environment but this.
type git struct {
	program string
	dir     string
	env     []string
	config  []string // settings that count before all files
}

// safe are settings by which git starts no other program and reaches no network. Nothing that is run here
// should do so anyway.
var safe = []string{
	"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.pager=cat", "core.sshCommand=false", "core.askPass=false", "core.gitProxy=",
	"credential.helper=", "diff.external=", "protocol.allow=never", "core.commitGraph=false", "core.untrackedCache=false",
}

func newGit(dir string) (git, error) {
	program := findGit()
	if program == "" {
		return git{}, ErrNoGit
	}
	env := []string{
		"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_TERMINAL_PROMPT=0",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_PAGER=cat", "GIT_ADVICE=0",
	}
	for _, name := range []string{"PATH", "HOME", "XDG_CONFIG_HOME"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return git{program: program, dir: dir, env: env, config: safe}, nil
}

// checkVersion rejects a git that is too old.
func (g git) checkVersion(ctx context.Context) error {
	answer, err := g.line(ctx, "version")
	if err != nil {
		return err
	}
	var major, minor int
	if _, err := fmt.Sscanf(answer, "git version %d.%d", &major, &minor); err != nil || major < 2 || major == 2 && minor < 32 {
		return fmt.Errorf("%w: %q", ErrOldGit, answer)
	}
	return nil
}

// findGit looks in the absolute directories of PATH, but for those that another user serves.
func findGit() string {
	for dir := range served.PathDirs() {
		if path, err := exec.LookPath(filepath.Join(dir, "git")); err == nil {
			return path
		}
	}
	return ""
}

// with returns a git with more of the environment, which counts before what was there.
func (g git) with(dir string, env ...string) git {
	g.dir, g.env = dir, append(g.env[:len(g.env):len(g.env)], env...)
	return g
}

// run starts git, and hands read what it writes. It returns when git has ended. An error of read that is
// not the end of the answer ends git.
func (g git) run(ctx context.Context, stdin []byte, read func(*bufio.Reader) error, args ...string) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	all := []string{"--no-pager"}
	for _, setting := range g.config {
		all = append(all, "-c", setting)
	}
	cmd := exec.CommandContext(running, g.program, append(all, args...)...)
	said := &beginning{}
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stderr, cmd.WaitDelay = g.dir, g.env, bytes.NewReader(stdin), said, time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it may have started ends with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting git: %w", err)
	}
	readErr := read(bufio.NewReaderSize(out, 1<<18))
	isShort := errors.Is(readErr, io.EOF) || errors.Is(readErr, io.ErrUnexpectedEOF)
	if readErr != nil && !isShort {
		cancel()
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case readErr != nil && (!isShort || err == nil):
		return fmt.Errorf("git %s: %w", args[0], readErr)
	case err != nil:
		return &RunError{args[0], strings.TrimSpace(said.String()), err}
	}
	return nil
}

// output returns what git writes.
func (g git) output(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	var out []byte
	err := g.run(ctx, stdin, func(r *bufio.Reader) (err error) {
		if out, err = io.ReadAll(io.LimitReader(r, maxList+1)); len(out) > maxList {
			return errTooMuch
		}
		return err
	}, args...)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// line returns what git writes as one line.
func (g git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.output(ctx, nil, args...)
	return strings.TrimSuffix(string(out), "\n"), err
}

// fields cuts what ends with NUL each.
func fields(out []byte) ([]string, error) {
	if len(out) == 0 {
		return nil, nil
	}
	list, ok := strings.CutSuffix(string(out), "\x00")
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return strings.Split(list, "\x00"), nil
}

// beginning keeps the first bytes of what is written to it.
type beginning struct{ bytes.Buffer }

func (b *beginning) Write(p []byte) (int, error) {
	const most = 1000
	b.Buffer.Write(p[:min(len(p), most-min(most, b.Len()))])
	return len(p), nil
}
