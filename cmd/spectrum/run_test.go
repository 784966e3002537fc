package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/harness"
)

// runner runs "spectrum run" as a user over a directory.
type runner struct {
	t            *testing.T
	uid          int
	program      string
	dir, state   string
	outside      string // a directory beside, for signs between a test and its command
	before       map[string]string
	stdout, errs string
	status       int
}

// asRunners calls a test as root, where it is, and as an ordinary user.
func asRunners(t *testing.T, name string, test func(r *runner)) {
	uids := []int{os.Getuid()}
	if os.Getuid() == 0 {
		uids = append(uids, 65534)
	}
	for _, uid := range uids {
		t.Run(fmt.Sprintf("uid%d", uid), func(t *testing.T) { test(newRunner(t, uid, name)) })
	}
}

// newRunner makes a project of a name.
func newRunner(t *testing.T, uid int, name string) *runner {
	t.Helper()
	if _, _, status := spectrum(t, "run", "--base", t.TempDir(), "--", "true"); status == statusUnavailable {
		t.Skip("cannot mount an overlay here")
	}
	program, err := exec.LookPath("spectrum")
	if err != nil {
		t.Fatal(err)
	}
	home, err := os.MkdirTemp("", "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = removeAll(home) })
	r := &runner{t: t, uid: uid, program: filepath.Join(home, "spectrum"), dir: filepath.Join(home, name), state: filepath.Join(home, "state"), outside: filepath.Join(home, "signs")}
	raw, err := os.ReadFile(program)
	if err == nil {
		err = os.WriteFile(r.program, raw, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{
		"src/a.txt": "one\n", "src/b.txt": "two\n", "old/deep/c.txt": "three\n", "run.sh": "#!/bin/sh\n", ".git/config": "[core]\n", ".spectrumignore": "*.log\n", "same.txt": "same\n",
	} {
		at := filepath.Join(r.dir, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("src", filepath.Join(r.dir, "link")), os.Mkdir(r.outside, 0o755), os.Chmod(home, 0o755)); err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(home, func(path string, _ fs.DirEntry, _ error) error { return os.Lchown(path, uid, uid) })
	if uid != os.Getuid() {
		for up := home; up != "/"; up = filepath.Dir(up) {
			if info, err := os.Stat(up); err != nil || info.Mode().Perm()&0o001 == 0 {
				t.Skipf("another user cannot reach %q", up)
			}
		}
	}
	time.Sleep(20 * time.Millisecond) // what was just written is not the base of anything
	r.before = r.tree()
	return r
}

// tree is what is in the project.
func (r *runner) tree() map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(r.dir, path)
		info, err := entry.Info()
		if err != nil {
			return err
		}
		all[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			raw, err := os.ReadFile(path)
			all[rel] += string(raw)
			return err
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// command prepares a command of the program in the project.
func (r *runner) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.t.Context(), r.program, args...)
	cmd.Dir, cmd.Args[0] = r.dir, "spectrum"
	cmd.Env = append(os.Environ(), "SPECTRUM_STATE_DIR="+r.state, "SIGNS="+r.outside, "HOME="+r.outside)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if r.uid != os.Getuid() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.uid)}
	}
	return cmd
}

// spectrum runs the program, which must end with an exit status.
func (r *runner) spectrum(status int, args ...string) {
	r.t.Helper()
	r.stdout, r.errs, r.status = runCommand(r.t, r.command(args...))
	if r.status != status {
		r.t.Fatalf("spectrum %q: exit status %d, not %d\n%s%s", args, r.status, status, r.stdout, r.errs)
	}
}

// unchanged requires that the project is as it was.
func (r *runner) unchanged() {
	r.t.Helper()
	now := r.tree()
	for path, was := range r.before {
		if now[path] != was {
			r.t.Errorf("%q was %q and is %q", path, was, now[path])
		}
	}
	for path := range now {
		if _, known := r.before[path]; !known {
			r.t.Errorf("%q is new", path)
		}
	}
	if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), " "+r.dir+" ") {
		r.t.Errorf("something is mounted: %v", err)
	}
}

// run runs a shell script over the project, and returns the result.
func (r *runner) run(status int, script string, flags ...string) map[string]any {
	r.t.Helper()
	r.spectrum(status, append(append([]string{"run", "--json"}, flags...), "--", "sh", "-ec", script)...)
	var result map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
		r.t.Fatalf("%v\n%s%s", err, r.stdout, r.errs)
	}
	return result
}

// changes is CHANGES of the result of a run.
func (r *runner) changes(result map[string]any) (base map[string]any, removes, executable []string) {
	r.t.Helper()
	dir, _ := result["run_dir"].(string)
	raw, err := os.ReadFile(filepath.Join(dir, "CHANGES"))
	if err != nil {
		r.t.Fatal(err)
	}
	var changes struct {
		Base                map[string]any
		Removes, Executable []string
	}
	if err := json.Unmarshal(raw, &changes); err != nil {
		r.t.Fatal(err)
	}
	return changes.Base, changes.Removes, changes.Executable
}

func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

const approveAll = "Approved: commit the restore preview exactly as proposed."

// TestRun goes from a command to a commit and back, over directories with all kinds of names.
func TestRun(t *testing.T) {
	for _, name := range []string{"a:b,c\nd\\e f=%41"} {
		asRunners(t, name, func(r *runner) {
			result := r.run(3, `test "$(cat src/a.txt)" = one
				echo more >> src/a.txt; printf 'x' > new.txt; rm -r old; touch src/b.txt; chmod +x run.sh
				echo l > x.log; echo g >> .git/config; cat same.txt > /dev/null; mkdir empty
				test "$PWD" = "$(pwd)"; test "$(id -u)" = `+fmt.Sprint(r.uid)+`
				exit 3`)
			r.unchanged()
			base, removes, executable := r.changes(result)
			want := map[string]any{"src/a.txt": digestOf("one\n"), "new.txt": nil, "old/deep/c.txt": digestOf("three\n"), "run.sh": digestOf("#!/bin/sh\n")}
			if fmt.Sprint(base) != fmt.Sprint(want) || !slices.Equal(removes, []string{"old/deep/c.txt"}) || !slices.Equal(executable, []string{"run.sh"}) {
				r.t.Errorf("base %v, removes %q, executable %q", base, removes, executable)
			}
			if left := fmt.Sprint(result["left_out"]); left != "map[excluded:0 history:1 ignored:1 private:0 reserved:0 special:0]" {
				r.t.Error(left)
			}
			run, _ := result["run_dir"].(string)
			r.spectrum(0, "preview", "-q", "--restore-root", r.dir, run)
			r.spectrum(0, "commit", "-q", "--preview", strings.TrimSpace(r.stdout), "--approve", approveAll)
			if now := r.tree(); now["src/a.txt"] != r.before["src/a.txt"]+"more\n" || now["old/deep/c.txt"] != "" || !strings.HasPrefix(now["run.sh"], "-rwx") {
				r.t.Errorf("%q", now)
			}
			r.spectrum(0, "rollback", "-q", "latest")
			r.unchanged()
		})
	}
}

// TestRunRenames: a file that the command has renamed or linked is new at its name.
func TestRunRenames(t *testing.T) {
	asRunners(t, "p", func(r *runner) {
		result := r.run(0, `mv src/a.txt src/moved.txt; ln src/b.txt src/linked.txt; mkdir made; mv same.txt made/same.txt; rm -r old; mkdir old; mv run.sh old/run.sh`)
		r.unchanged()
		base, removes, _ := r.changes(result)
		want := map[string]any{
			"src/a.txt": digestOf("one\n"), "src/moved.txt": nil, "src/linked.txt": nil, "same.txt": digestOf("same\n"), "made/same.txt": nil,
			"old/deep/c.txt": digestOf("three\n"), "run.sh": digestOf("#!/bin/sh\n"), "old/run.sh": nil,
		}
		if fmt.Sprint(base) != fmt.Sprint(want) || !slices.Equal(removes, []string{"old/deep/c.txt", "run.sh", "same.txt", "src/a.txt"}) {
			r.t.Errorf("base %v, removes %q", base, removes)
		}
	})
}

// TestRunStatus: the exit status is the command's, and what could not be started is as in a shell.
func TestRunStatus(t *testing.T) {
	r := newRunner(t, os.Getuid(), "p")
	for _, test := range []struct {
		status int
		args   []string
	}{
		{0, []string{"true"}}, {9, []string{"sh", "-c", "exit 9"}}, {128 + 15, []string{"sh", "-c", "kill -TERM $$"}}, {128 + 9, []string{"sh", "-c", "kill -KILL $$"}},
		{127, []string{"no-such-command"}}, {127, []string{"./no-such"}}, {126, []string{"./same.txt"}}, {126, []string{"/"}}, {127, []string{""}},
	} {
		r.spectrum(test.status, append([]string{"run", "--"}, test.args...)...)
		if entries, err := os.ReadDir(filepath.Join(r.state, "runs")); err != nil || len(entries) > 0 {
			t.Errorf("%q leaves %v, %v", test.args, entries, err)
		}
		if r.stdout != "" {
			t.Errorf("%q: stdout has %q", test.args, r.stdout)
		}
	}
	r.unchanged()
}

// TestRunOnlyRemoves: such a set carries a file of the directory, which is not in the layer.
func TestRunOnlyRemoves(t *testing.T) {
	asRunners(t, "p", func(r *runner) {
		base, removes, _ := r.changes(r.run(0, "rm -r old; mkdir old; rm src/a.txt"))
		if !slices.Equal(removes, []string{"old/deep/c.txt", "src/a.txt"}) || base["same.txt"] != digestOf("same\n") || len(base) != 5 {
			r.t.Errorf("base %v, removes %q", base, removes)
		}
		r.unchanged()
	})
}

// TestRunForms: what a bundle cannot hold is rejected by name, and what was done is not lost.
func TestRunForms(t *testing.T) {
	r := newRunner(t, os.Getuid(), "p")
	for script, named := range map[string]string{
		"rm -r old; echo x > old":                       `"old" was a directory and is a file`,
		"rm same.txt; mkdir same.txt; touch same.txt/x": `"same.txt" was a file and is a directory`,
		"rm link":                             `"link" was a symbolic link and is gone`,
		"ln -sfn old link":                    `output "link" is a symbolic link`,
		"mkfifo fifo":                         `output "fifo" is a FIFO`,
		"rm -r CONTRACTS; echo x > CONTRACTS": "CONTRACTS",
	} {
		if strings.Contains(script, "CONTRACTS") {
			if err := os.MkdirAll(filepath.Join(r.dir, "CONTRACTS/_runs/x"), 0o755); err != nil {
				t.Fatal(err)
			}
			r.before = r.tree()
		}
		r.spectrum(statusRunFailed, "run", "--", "sh", "-ec", script)
		if !strings.Contains(r.errs, named) || !strings.Contains(r.errs, ": spectrum seal --upper ") {
			t.Errorf("%s:\n%s", script, r.errs)
		}
		r.unchanged()
	}
	if result := r.run(0, "rm -r CONTRACTS; echo x > new"); result["run_dir"] == nil {
		t.Errorf("%v", result)
	}
	r.unchanged()
}

// TestRunLastLines: the last line is the command that reviews, and the one that removes what is
// kept asks nothing, whatever the modes of the files.
func TestRunLastLines(t *testing.T) {
	r := newRunner(t, os.Getuid(), "p")
	r.spectrum(0, "run", "--", "sh", "-ec", "echo x > new; chmod 400 new")
	lines := strings.Split(strings.TrimSpace(r.errs), "\n")
	last := lines[len(lines)-2:]
	if !strings.HasPrefix(last[0], "to look at it: spectrum review --restore-root ") || !strings.HasPrefix(last[1], "when it is not needed any more: rm -rf /") {
		t.Errorf("%q", last)
	}
}

// TestRunRetry: the command that is printed after a seal that failed leaves out what was the
// cause, and has the flags of the run.
func TestRunRetry(t *testing.T) {
	r := newRunner(t, os.Getuid(), "p")
	for script, left := range map[string]string{
		"mkfifo fifo":             " --skip-special",
		"rm -r old; echo x > old": " --exclude /old",
		"rm link":                 " --exclude /link",
	} {
		r.spectrum(statusRunFailed, "run", "--task", "again", "--exclude", "*.tmp", "--", "sh", "-ec", script+"; echo more >> src/a.txt; touch x.tmp")
		_, line, _ := strings.Cut(r.errs, "spectrum seal --upper ")
		line, _, _ = strings.Cut(line, "\n")
		if !strings.HasSuffix(line, " --task again --exclude '*.tmp'"+left) || strings.Contains(r.errs, "without --base") {
			t.Errorf("%s:\n%s", script, r.errs)
		}
		words := strings.Fields(strings.ReplaceAll(line, "'", ""))
		r.spectrum(0, append([]string{"seal", "--upper"}, words...)...)
		if !strings.HasSuffix(strings.TrimSpace(r.stdout), "-again") || !strings.Contains(r.errs, "a change set: 0 new, 1 changed") {
			t.Errorf("%s:\n%s%s", script, r.stdout, r.errs)
		}
	}
}

// TestRunRetried: the command that a failed seal prints seals what the run would have sealed.
func TestRunRetried(t *testing.T) {
	asRunners(t, "p", func(r *runner) {
		contracts := filepath.Join(r.dir, "CONTRACTS")
		if err := errors.Join(os.Mkdir(contracts, 0o755), os.WriteFile(filepath.Join(contracts, "c"), nil, 0o644), os.Chown(contracts, r.uid, r.uid)); err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
		for script, want := range map[string][]string{
			"rm same.txt; mkfifo fifo":                         {"same.txt"},
			"rm -r CONTRACTS same.txt; kill -KILL $PPID":       {"CONTRACTS/c", "same.txt"},
			"rm -r CONTRACTS; mkfifo fifo":                     {"CONTRACTS/c"},
			"rm -r CONTRACTS; mkdir CONTRACTS; mkfifo fifo":    {"CONTRACTS/c"},
			"rm same.txt; echo new > new; mkfifo fifo; exit 9": {"same.txt"},
		} {
			r.spectrum(statusRunFailed, "run", "--", "sh", "-ec", script)
			_, command, _ := strings.Cut(r.errs, ": spectrum seal ")
			command, _, _ = strings.Cut("seal "+command, "\n")
			r.spectrum(0, append(strings.Fields(command), "--json")...)
			var result map[string]any
			if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
				r.t.Fatal(err)
			}
			if _, removes, _ := r.changes(result); !slices.Equal(removes, want) {
				r.t.Errorf("%s: removes %q, not %q", script, removes, want)
			}
		}
	})
}

// TestRunDirChanges: what another process changes in the directory is never the base of what the
// command changes.
func TestRunDirChanges(t *testing.T) {
	const file = "src/a.txt"
	const beside = "another file made in its directory"
	wait := `i=0; while ! test -e "$SIGNS/go"; do i=$((i+1)); test $i -lt 6000; sleep 0.05; done; `
	exchange := func(path string) error { // the times of the files in both stay as they are
		src := filepath.Dir(path)
		return errors.Join(os.Rename(src, src+".old"), os.Rename(filepath.Join(filepath.Dir(src), "next"), src))
	}
	forgotten := func(path string) error { // the overlay looks at the directory again
		err := exchange(path)
		if os.Getuid() == 0 {
			err = errors.Join(err, os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0))
		}
		return err
	}
	for name, test := range map[string]struct {
		script string
		other  func(path string) error
	}{
		"edited before, same size, times put back": {`touch "$SIGNS/ready"; ` + wait + `echo mine > ` + file, func(path string) error {
			info, err := os.Stat(path)
			return errors.Join(err, os.WriteFile(path, []byte("two\n"), 0o644), os.Chtimes(path, info.ModTime(), info.ModTime()))
		}},
		"edited after": {`echo mine > ` + file + `; touch "$SIGNS/ready"; ` + wait, func(path string) error { return os.WriteFile(path, []byte("two\n"), 0o644) }},
		"renamed after": {`echo mine > new; mv new ` + file + `; touch "$SIGNS/ready"; ` + wait, func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("two\n"), 0o644), os.Rename(path+".new", path))
		}},
		"removed after":                      {`echo mine >> ` + file + `; touch "$SIGNS/ready"; ` + wait, os.Remove},
		"edited, and removed by the command": {`touch "$SIGNS/ready"; ` + wait + `rm -r src`, func(path string) error { return os.WriteFile(path, []byte("two\n"), 0o644) }},
		"directory exchanged before":         {`cat src/a.txt; touch "$SIGNS/ready"; ` + wait + `echo mine >> ` + file, exchange},
		"directory exchanged before, made":   {`cat src/a.txt; touch "$SIGNS/ready"; ` + wait + `echo mine > new; mv new ` + file, exchange},
		"directory exchanged and forgotten":  {`cat src/a.txt; touch "$SIGNS/ready"; ` + wait + `echo mine > new; mv new ` + file, forgotten},
		"directory exchanged before, gone":   {`cat src/a.txt; touch "$SIGNS/ready"; ` + wait + `rm -r src`, exchange},
		"directory exchanged after":          {`echo mine >> ` + file + `; touch "$SIGNS/ready"; ` + wait, exchange},
		beside:                               {`touch "$SIGNS/ready"; ` + wait + `echo mine >> ` + file, func(path string) error { return os.WriteFile(path+".new", nil, 0o644) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, os.Getuid(), "p")
			next := filepath.Join(r.dir, "next")
			if err := errors.Join(os.Mkdir(next, 0o755), os.WriteFile(filepath.Join(next, "a.txt"), []byte("two\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
			cmd := r.command("run", "--", "sh", "-ec", test.script)
			var errs strings.Builder
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r.awaitReady(cmd)
			if err := errors.Join(test.other(filepath.Join(r.dir, file)), os.WriteFile(filepath.Join(r.outside, "go"), nil, 0o644)); err != nil {
				t.Error(err)
			}
			_ = cmd.Wait()
			found, err := filepath.Glob(filepath.Join(r.state, "runs/*/changed"))
			if err != nil || len(found) != 1 {
				t.Fatalf("%q, %v\n%s", found, err, errs.String())
			}
			if cmd.ProcessState.ExitCode() == 0 { // the kernel told of the change in time
				runs, _ := filepath.Glob(filepath.Join(found[0], "CONTRACTS/_runs/*"))
				if base, _, _ := r.changes(map[string]any{"run_dir": runs[0]}); base[file] != digestOf("one\n") || strings.Contains(name, "before") {
					t.Errorf("sealed with the base %v", base)
				}
				return
			}
			if name == beside || cmd.ProcessState.ExitCode() != statusRunFailed || !strings.Contains(errs.String(), `"`+file+`"`) {
				t.Errorf("%v\n%s", cmd.ProcessState, errs.String())
			}
			r.spectrum(1, "seal", "--upper", found[0], "--lower", r.dir)
			if !strings.Contains(r.errs, `"`+file+`"`) {
				t.Error(r.errs)
			}
		})
	}
}

// awaitReady waits until a command has given its sign; it kills one that never does.
func (r *runner) awaitReady(cmd *exec.Cmd) {
	r.t.Helper()
	for deadline := time.Now().Add(harness.Patience); !isThere(filepath.Join(r.outside, "ready")); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			r.t.Fatal("the command gave no sign")
		}
	}
}

// TestRunEnds: however a run ends, no process and no mount is left, and the directory is as it was.
func TestRunEnds(t *testing.T) {
	interruptTwice := func(pid int) error {
		err := syscall.Kill(pid, syscall.SIGINT)
		time.Sleep(100 * time.Millisecond)
		return errors.Join(err, syscall.Kill(pid, syscall.SIGINT))
	}
	for name, test := range map[string]struct {
		status int // -1 for a signal
		script string
		end    func(spectrum int) error
	}{
		"daemons":                {0, `(setsid sleep TIME &); sleep TIME & echo x > new; touch "$SIGNS/ready"`, nil},
		"killed":                 {-1, `(setsid sleep TIME &); touch "$SIGNS/ready"; sleep TIME; true`, func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }},
		"helper killed":          {statusRunFailed, `(setsid sleep TIME &); touch "$SIGNS/ready"; sleep TIME; true`, killChild},
		"passed on":              {7, `trap 'exit 7' TERM; touch "$SIGNS/ready"; while :; do sleep 0.02; done`, func(pid int) error { return syscall.Kill(pid, syscall.SIGTERM) }},
		"to the group":           {5, `n=0; trap 'n=$((n+1))' INT; touch "$SIGNS/ready"; while test $n = 0; do sleep 0.02; done; sleep 0.5; test $n = 1; exit 5`, func(pid int) error { return syscall.Kill(-pid, syscall.SIGINT) }},
		"second interrupt":       {128 + 9, `trap '' INT; (setsid sleep TIME &); touch "$SIGNS/ready"; while :; do sleep 0.02; done`, interruptTwice},
		"helper stopped":         {128 + 9, `trap '' INT; kill -STOP $PPID; touch "$SIGNS/ready"; while :; do sleep TIME; done`, interruptTwice},
		"helper stopped, killed": {-1, `kill -STOP $PPID; touch "$SIGNS/ready"; sleep TIME; true`, func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunner(t, os.Getuid(), "p")
			time1 := fmt.Sprintf("3600.%d", os.Getpid()*1000+len(name))
			cmd := r.command("run", "-q", "--", "sh", "-c", strings.ReplaceAll(test.script, "TIME", time1))
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			r.awaitReady(cmd)
			if test.end != nil {
				if err := test.end(cmd.Process.Pid); err != nil {
					t.Error(err)
				}
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != test.status {
				t.Errorf("exit status %d, not %d", got, test.status)
			}
			for deadline := time.Now().Add(harness.Patience); ; time.Sleep(10 * time.Millisecond) {
				left := processesWith(time1)
				if len(left) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("left: %q", left)
				}
			}
			r.unchanged()
		})
	}
}

// killChild kills the only child of a process.
func killChild(pid int) error {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return err
	}
	var child int
	if _, err := fmt.Sscan(string(raw), &child); err != nil {
		return err
	}
	return syscall.Kill(child, syscall.SIGKILL)
}

// processesWith are the command lines that have a word.
func processesWith(word string) (found []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if raw, _ := os.ReadFile(path); slices.Contains(strings.Split(string(raw), "\x00"), word) {
			found = append(found, string(raw))
		}
	}
	return found
}

// TestRunPlace: neither of the directory and of the state directory is in the other, and no
// terminal or number of files beneath the directory matters.
func TestRunPlace(t *testing.T) {
	r := newRunner(t, os.Getuid(), "p")
	r.spectrum(1, "run", "--base", filepath.Dir(r.dir), "--", "touch", "x")
	if !strings.Contains(r.errs, "overlaps the directory to run over") {
		t.Error(r.errs)
	}
	r.spectrum(1, "run", "--base", filepath.Join(r.dir, "missing"), "--", "touch", "x")
	if err := os.Symlink(r.dir, filepath.Join(r.outside, "way")); err != nil {
		t.Fatal(err)
	}
	result := func() map[string]any {
		return r.run(0, "cd src; echo x > new", "--base", filepath.Join(r.outside, "way"))
	}()
	if base, _, _ := r.changes(result); len(base) != 1 {
		t.Errorf("%v", base)
	}
	r.unchanged()
}
