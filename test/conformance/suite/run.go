package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Statement approves a preview.
const Statement = "Approved: commit the restore preview exactly as proposed."

// Patience is how long a command may take before it counts as hung.
const Patience = 5 * time.Minute

// nobody is the user that root runs a case for an ordinary user as.
const nobody = 65534

// A Runner runs cases against a program.
type Runner struct {
	Bin string // absolute path of the program
	Dir string // an empty directory that other users can get through

	mu     sync.Mutex
	public string // the program, where other users can get at it
	made   int
}

// Run runs the commands of a case and says what is wrong, if anything is. Where a command
// has left the tree as it was, the next one gets the same tree.
func (r *Runner) Run(ctx context.Context, c Case) error {
	var wrong []error
	var s *stage
	defer func() {
		if s != nil {
			s.clear()
		}
	}()
	for _, cmd := range c.Commands {
		if s != nil && s.touched {
			s.clear()
			s = nil
		}
		var err error
		if s == nil {
			s, err = r.newStage(c)
		} else {
			err = s.forget()
		}
		if err == nil {
			err = s.command(ctx, c, cmd)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: wanted exit %d, %s\n%w", strings.Join(cmd.Args, " "), cmd.Exit, cmd.Result, err))
		}
	}
	return errors.Join(wrong...)
}

// stage is where commands run.
type stage struct {
	base, work, state string
	bin               string
	as                *syscall.Credential
	before            picture
	touched           bool // the tree is not, or may not be, as the case gives it
}

func (s *stage) command(ctx context.Context, c Case, cmd Command) error {
	s.touched = true
	a, err := s.play(ctx, cmd)
	if err != nil {
		return err
	}
	return errors.Join(a.check(cmd), s.check(c, cmd))
}

// forget empties the state directory.
func (s *stage) forget() error {
	if err := os.RemoveAll(s.state); err != nil {
		return err
	}
	if err := os.Mkdir(s.state, 0o700); err != nil || s.as == nil {
		return err
	}
	return os.Chown(s.state, nobody, nobody)
}

func (r *Runner) newStage(c Case) (*stage, error) {
	r.mu.Lock()
	r.made++
	base := filepath.Join(r.Dir, fmt.Sprint(r.made))
	r.mu.Unlock()
	s := &stage{base: base, work: filepath.Join(base, "work"), state: filepath.Join(base, "state"), bin: r.Bin}
	err := errors.Join(os.MkdirAll(s.work, 0o755), os.Mkdir(s.state, 0o700))
	if err == nil {
		err = plant(s.work, c.Entries)
	}
	if err == nil && c.Ordinary && os.Geteuid() == 0 {
		err = r.becomeOrdinary(s)
	}
	if err == nil {
		s.before, err = take(s.work)
	}
	if err != nil {
		s.clear()
		return nil, fmt.Errorf("making the tree: %w", err)
	}
	return s, nil
}

// becomeOrdinary gives everything to a user whom permission bits bind.
func (r *Runner) becomeOrdinary(s *stage) (err error) {
	s.as = &syscall.Credential{Uid: nobody, Gid: nobody}
	if s.bin, err = r.publicBinary(); err != nil {
		return err
	}
	return filepath.WalkDir(s.base, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, nobody, nobody)
	})
}

// publicBinary is the program, copied if other users cannot get at it.
func (r *Runner) publicBinary() (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.public != "" {
		return r.public, nil
	}
	if isPublic(r.Bin) {
		r.public = r.Bin
		return r.public, nil
	}
	raw, err := os.ReadFile(r.Bin)
	if err != nil {
		return "", err
	}
	copied := filepath.Join(r.Dir, "program")
	if err := os.WriteFile(copied, raw, 0o755); err != nil {
		return "", err
	}
	r.public = copied
	return copied, nil
}

// isPublic reports whether other users may reach a file and run it.
func isPublic(path string) bool {
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if path == "/" {
			return true
		}
	}
}

// clear removes everything, also directories that forbid it.
func (s *stage) clear() {
	_ = filepath.WalkDir(s.base, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(s.base)
}

// answer is what a process answered.
type answer struct {
	exit           int
	stdout, stderr []byte
}

// play carries a command out. A restore is a preview and its commit; where the
// preview is rejected, that is the answer.
func (s *stage) play(ctx context.Context, cmd Command) (answer, error) {
	args := s.expand(cmd.Args[1:])
	if cmd.Args[0] == "verify" {
		return s.exec(ctx, append([]string{"verify", "--json"}, args...)...)
	}
	shown, err := s.exec(ctx, append([]string{"preview", "--json"}, args...)...)
	if err != nil || shown.exit != 0 {
		return shown, err
	}
	block, err := canonical(shown.stdout)
	if err != nil {
		return shown, fmt.Errorf("preview: %w", err)
	}
	id, ok := block["preview_id"].(string)
	if !ok {
		return shown, fmt.Errorf("preview: there is no preview_id in %.300q", shown.stdout)
	}
	if err := s.unchanged(); err != nil {
		return shown, fmt.Errorf("preview: %w", err)
	}
	return s.exec(ctx, "commit", "--json", "--preview", id, "--approve", Statement)
}

// expand puts the working directory in the place of $WORK.
func (s *stage) expand(args []string) []string {
	var out []string
	for _, arg := range args {
		out = append(out, strings.ReplaceAll(arg, "$WORK", s.work))
	}
	return out
}

func (s *stage) exec(ctx context.Context, args ...string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, s.bin, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.work, &stdout, &stderr
	cmd.Env = append(os.Environ(), "SPECTRUM_STATE_DIR="+s.state, "SPECTRUM_PROJECT_ROOT=", "PWD="+s.work)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.as}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if ctx.Err() != nil {
		return answer{}, fmt.Errorf("%s does not end: %w", args[0], ctx.Err())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return answer{}, err
	}
	return answer{cmd.ProcessState.ExitCode(), stdout.Bytes(), stderr.Bytes()}, nil
}

func (a answer) check(cmd Command) error {
	err := cmd.match(a.stdout)
	if a.exit != cmd.Exit {
		err = errors.Join(fmt.Errorf("exit %d", a.exit), err)
	}
	if err != nil {
		err = fmt.Errorf("came exit %d, stdout %.600q, stderr %.300q\n%w", a.exit, a.stdout, a.stderr, err)
	}
	return err
}

// check compares the tree with what the command must leave: what was there, and
// after an accepted restore what that makes of it.
func (s *stage) check(c Case, cmd Command) error {
	after, err := take(s.work)
	if err != nil {
		return err
	}
	var changes []Entry
	if cmd.Args[0] == "restore" && cmd.Exit == 0 {
		for _, e := range c.Entries {
			if e.After || e.Gone {
				changes = append(changes, e)
			}
		}
	}
	err = compare(s.before, after, changes)
	s.touched = err != nil || len(changes) > 0
	return err
}

func (s *stage) unchanged() error {
	after, err := take(s.work)
	if err != nil {
		return err
	}
	return compare(s.before, after, nil)
}
