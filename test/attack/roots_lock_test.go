package attack

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// A tenancy is a restore root that alice may enter, of root or of an ordinary user.
type tenancy struct {
	*harness.Site
	uid  int
	lock string
}

func newTenancy(t *testing.T, uid int, perm os.FileMode) *tenancy {
	t.Helper()
	top := open(t)
	p := harness.NewIn(t, top, harness.Files{"out/a": "a\n", "out/deep/b": "b\n"})
	s := &tenancy{Site: p.Site(t, filepath.Join(top, "root")), uid: uid}
	s.lock = filepath.Join(s.Root, harness.Lock)
	harness.Must(t, os.RemoveAll(filepath.Join(s.Root, harness.ForeignStaging))) // no snapshot is taken beside it
	give(t, p, uid, s.Root)
	harness.Must(t, os.Chmod(s.Root, perm))
	return s
}

// asAlice is a command that alice runs.
func asAlice(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: alice, Gid: alice}, Pdeathsig: syscall.SIGKILL}
	return cmd
}

// held has alice hold the lock of a file or directory; the mode is -s or -x.
func held(t *testing.T, mode, path string) *exec.Cmd {
	t.Helper()
	cmd := asAlice(t, "flock", "--no-fork", mode, "-n", path, "sh", "-c", "echo held; exec sleep 1000")
	out, err := cmd.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("alice holds nothing: %q, %v", line, err)
	}
	return cmd
}

// commitID finds the id of a commit in what it says.
var commitID = regexp.MustCompile(`([-0-9a-f]{36})" undoes`)

// TestReaderBlocksNothing: another user who may read the root locks it, shared or
// exclusively, for as long as it takes. Every command does its work.
func TestReaderBlocksNothing(t *testing.T) {
	for _, mode := range []string{"-s", "-x"} {
		t.Run(mode, func(t *testing.T) {
			victims(t, func(t *testing.T, uid int) {
				s := newTenancy(t, uid, 0o755)
				held(t, mode, s.Root)
				id := s.Preview(t)
				r := s.Project.Must(t, harness.CommitArgs(id)...)
				s.Project.Must(t, "snapshot", "take", s.Root)
				s.Project.Must(t, "rollback", commitID.FindStringSubmatch(r.Stderr)[1])
				s.Project.Must(t, "recover", s.Root)
				s.holds(t, false)
			})
		})
	}
}

// holds requires that all targets are in the root, or none, and that its lock is gone.
func (s *tenancy) holds(t *testing.T, all bool) {
	t.Helper()
	for _, target := range s.Project.Targets() {
		if _, err := os.Lstat(filepath.Join(s.Root, target)); (err == nil) != all {
			t.Errorf("%q: %v", target, err)
		}
	}
	if _, err := os.Lstat(s.lock); err == nil {
		t.Error("the lock is left")
	}
}

// TestLockIsForWriters: while a commit is at work, who may not write in the root cannot open
// its lock at any moment, whatever the umask and the default access list; who may, can.
func TestLockIsForWriters(t *testing.T) {
	needRoot(t)
	for name, c := range map[string]struct {
		perm  os.FileMode
		list  string // of the root
		more  string // of what is made in it
		opens bool
	}{
		"0755":                 {perm: 0o755},
		"0777":                 {perm: 0o777, opens: true},
		"1777":                 {perm: os.ModeSticky | 0o777, opens: true},
		"2775":                 {perm: os.ModeSetgid | 0o775},
		"reads by list":        {perm: 0o700, list: "u::rwx u:4241:r-x g::--- m::r-x o::---"},
		"writes by list":       {perm: 0o700, list: "u::rwx u:4241:rwx g::--- m::rwx o::---", opens: true},
		"denied by list":       {perm: 0o777, list: "u::rwx u:4241:r-x g::rwx m::rwx o::rwx"},
		"group writes by list": {perm: 0o700, list: "u::rwx g::--- g:4241:rwx m::rwx o::---", opens: true},
		"inherits":             {perm: 0o755, more: "u::rwx u:4241:rwx g::r-x m::rwx o::r-x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTenancy(t, bob, c.perm)
			if c.list != "" {
				harness.SetList(t, s.Root, harness.AccessList, c.list)
			}
			if c.more != "" {
				harness.SetList(t, s.Root, harness.DefaultList, c.more)
			}
			seen, opened := 0, 0
			look := func(sysfault.Call) bool {
				if _, err := os.Lstat(s.lock); err != nil {
					return false
				}
				if seen++; seen > 3 && seen%40 != 0 {
					return false
				}
				if asAlice(t, "sh", "-c", `exec <>"$0"`, s.lock).Run() == nil {
					opened++
				}
				return false
			}
			// Whether alice's writing makes a conflict is not what this is about.
			moments := []string{"openat", "fchown", "fsetxattr", "flock", "mkdirat", "renameat2", "unlinkat"}
			r := s.Project.Run(t, &sysfault.Plan{Match: look, Only: moments}, s.approved(t)...)
			if r.Status != 0 || seen == 0 || c.opens != (opened > 0) {
				t.Errorf("the lock was seen %d times, alice opened it %d times; %v", seen, opened, r)
			}
		})
	}
}

// approved are the arguments of a commit with all conflicts acknowledged.
func (s *tenancy) approved(t *testing.T) []string {
	t.Helper()
	r := s.PreviewReply(t, nil)
	if r.Status != 0 {
		t.Fatal(r)
	}
	args := harness.CommitArgs(strings.TrimSpace(r.Stdout))
	statement := &args[len(args)-1]
	for i := 1; strings.Contains(r.Stderr, fmt.Sprintf("C-%03d", i)); i++ {
		*statement += fmt.Sprintf(" Acknowledge C-%03d.", i)
	}
	return args
}

// TestLockIsTaken: who may write in the root holds the lock, or has put something else at its
// name. Nothing is followed, waited for or changed, and the error says what it is.
func TestLockIsTaken(t *testing.T) {
	victims(t, func(t *testing.T, uid int) {
		s := newTenancy(t, uid, 0o777)
		aim := filepath.Join(filepath.Dir(s.Root), "aim")
		harness.Must(t, os.WriteFile(aim, []byte("precious"), 0o666))
		harness.Must(t, os.Chmod(aim, 0o666))
		for name, c := range map[string]struct {
			make string // a command of alice
			says string
		}{
			"held":      {": >.spectrum06_lock; chmod 666 .spectrum06_lock", `process`},
			"link":      {"ln -s ../aim .spectrum06_lock", "symbolic link"},
			"dangling":  {"ln -s ../none .spectrum06_lock", "symbolic link"},
			"directory": {"mkdir .spectrum06_lock", "not a regular file"},
			"fifo":      {"mkfifo -m 666 .spectrum06_lock", "not a regular file"},
		} {
			t.Run(name, func(t *testing.T) {
				args := s.approved(t)
				cmd := asAlice(t, "sh", "-c", c.make)
				cmd.Dir = s.Root
				harness.Must(t, cmd.Run())
				if name == "held" {
					held(t, "-s", s.lock)
				}
				var before, after unix.Stat_t
				harness.Must(t, unix.Lstat(s.lock, &before))
				for _, command := range [][]string{args, {"recover", s.Root}, {"snapshot", "take", s.Root}} {
					r := s.Project.Run(t, nil, command...)
					if r.Status != 1 || !strings.Contains(r.Stderr, c.says) || r.Hung {
						t.Error(r)
					}
				}
				harness.Must(t, unix.Lstat(s.lock, &after))
				if before != after {
					t.Errorf("it was %v, is %v", before, after)
				}
				harness.Must(t, os.RemoveAll(s.lock))
				if text, err := os.ReadFile(aim); err != nil || string(text) != "precious" {
					t.Errorf("%q, %v", text, err)
				}
			})
		}
		if r := s.Project.Run(t, nil, s.approved(t)...); r.Status != 0 {
			t.Error(r)
		}
	})
}

// TestLockIsReplaced: while a commit is at work, who may write in the root puts another file
// in the place of its lock, or removes it. No other command undoes the commit, and it ends.
func TestLockIsReplaced(t *testing.T) {
	victims(t, func(t *testing.T, uid int) {
		for _, change := range []string{"rm -f .spectrum06_lock", "mv .spectrum06_lock mine; : >.spectrum06_lock; chmod 666 .spectrum06_lock"} {
			t.Run(strings.Fields(change)[0], func(t *testing.T) {
				s := newTenancy(t, uid, 0o777)
				acted := false
				act := func(c sysfault.Call) bool {
					if acted || c.Name != "renameat2" || !strings.Contains(c.Path, "/new/") {
						return false
					}
					acted = true
					cmd := asAlice(t, "sh", "-c", change)
					cmd.Dir = s.Root
					harness.Must(t, cmd.Run())
					for _, other := range [][]string{{"recover", s.Root}, {"snapshot", "take", s.Root}} {
						if r := s.Project.Run(t, nil, other...); r.Status != 1 || !strings.Contains(r.Stderr, "at work") {
							t.Error(r)
						}
					}
					return false
				}
				args := s.approved(t)
				r := s.Project.Run(t, &sysfault.Plan{Match: act}, args...)
				if r.Status != 0 || !acted {
					t.Errorf("acted: %v; %v", acted, r)
				}
				_ = os.Remove(filepath.Join(s.Root, "mine"))
				s.Project.Must(t, "recover", s.Root)
				s.holds(t, true)
			})
		}
	})
}
