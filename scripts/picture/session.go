package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// A shot is a command and what it printed.
type shot struct {
	command string
	lines   []string
	failed  bool
}

// A step is a command of the session. Of what it prints the lines that begin with one
// of the words are kept; all of them when there are none.
type step struct {
	command string
	keep    []string
}

// The session. COMMIT stands for the id that the commit has printed.
var steps = []step{
	{command: "run=project/CONTRACTS/_runs/run-001"},
	{command: "spectrum verify $run"},
	{command: "spectrum verify tampered/CONTRACTS/_runs/run-001   # a copy in which one digit was changed"},
	{command: "spectrum mount --daemon $run view"},
	{command: "head -n 4 view/data/stations.csv"},
	{command: "id=$(spectrum preview --restore-root /tmp/demo/restore $run)", keep: []string{"| Files", "| R-001 |", "| R-002 |", "| R-003 |", "| C-001 | authority", "preview_id"}},
	{command: `spectrum commit --preview $id --approve 'Approved: commit the restore preview exactly as proposed.'`, keep: []string{"restored", `"spectrum rollback`, "OK"}},
	{command: "diff -r view restore && echo what was seen is what was written"},
	{command: "spectrum rollback COMMIT"},
	{command: "ls -A restore | wc -l"},
}

// rollbackID finds the id in what a commit says last.
var rollbackID = regexp.MustCompile(`"spectrum rollback ([0-9a-f-]{36})"`)

// play runs the session in a directory.
func play(ctx context.Context, program, dir string) (shots []shot, err error) {
	sh, err := newShell(ctx, program, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, sh.end()) }()
	names := newNames(dir)
	commit := ""
	for _, step := range steps {
		command := strings.ReplaceAll(step.command, "COMMIT", commit)
		lines, status, err := sh.run(strings.ReplaceAll(command, "/tmp/demo", filepath.Join(dir, "demo")))
		if err != nil {
			return nil, err
		}
		if id := rollbackID.FindStringSubmatch(strings.Join(lines, "\n")); id != nil {
			commit = id[1]
		}
		for i := range lines {
			lines[i] = names.of(lines[i])
		}
		shots = append(shots, shot{names.of(command), cut(lines, step.keep), status != "0"})
	}
	return shots, nil
}

// cut keeps lines, and puts "…" where others were.
func cut(lines, keep []string) []string {
	if len(keep) == 0 {
		return lines
	}
	var kept []string
	for _, line := range lines {
		begins := func(word string) bool { return strings.HasPrefix(line, word) }
		switch {
		case slices.ContainsFunc(keep, begins):
			kept = append(kept, line)
		case len(kept) == 0 || kept[len(kept)-1] != "…":
			kept = append(kept, "…")
		}
	}
	return kept
}

// A shell is a running bash that tells when a command has ended.
type shell struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// endOfCommand stands before the exit status of a command.
const endOfCommand = "\x00END "

// newShell starts a shell in a fresh demo below a directory.
func newShell(ctx context.Context, program, dir string) (*shell, error) {
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		return nil, err
	}
	if err := os.Symlink(program, filepath.Join(bin, "spectrum")); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "bash")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "LC_ALL=C", "SPECTRUM_STATE_DIR="+filepath.Join(dir, "state"))
	begin := "exec 2>&1; umask 022; "
	if os.Geteuid() == 0 { // a rollback by root looks at all views that it can see: let there be no other
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		begin += "findmnt -rno TARGET -t fuse.spectrum | xargs -r umount -l; "
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	sh := &shell{cmd, in, bufio.NewScanner(out)}
	if lines, status, err := sh.run(begin + "spectrum demo demo && cd demo"); err != nil || status != "0" {
		return nil, errors.Join(err, fmt.Errorf("the demo was not made: %q", lines), sh.end())
	}
	return sh, nil
}

// run runs a command, and gives what it prints on both streams, and its exit status.
func (s *shell) run(command string) (lines []string, status string, err error) {
	if _, err := io.WriteString(s.in, command+"\nprintf '\\n\\0END %s\\n' $?\n"); err != nil {
		return nil, "", err
	}
	for s.out.Scan() {
		if status, ok := strings.CutPrefix(s.out.Text(), endOfCommand); ok {
			return lines[:len(lines)-1], status, nil // without the line break before the mark
		}
		lines = append(lines, s.out.Text())
	}
	return nil, "", errors.Join(s.out.Err(), fmt.Errorf("the shell has ended at %q", command))
}

// end takes the view away, if there is one still, and ends the shell.
func (s *shell) end() error {
	_, writeErr := io.WriteString(s.in, "mountpoint -q view && spectrum umount view\nexit 0\n")
	closeErr := s.in.Close()
	_, readErr := io.Copy(io.Discard, s.rest())
	return errors.Join(writeErr, closeErr, readErr, s.cmd.Wait())
}

// rest reads what nobody has asked for, so that the shell does not wait.
func (s *shell) rest() io.Reader {
	r, w := io.Pipe()
	go func() {
		for s.out.Scan() {
		}
		_ = w.CloseWithError(s.out.Err())
	}()
	return r
}
