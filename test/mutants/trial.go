package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// maxCPU is how much processor time a test may take by itself.
	maxCPU = 20 * time.Second
	// maxWait is when a test is given up.
	maxWait = 2 * time.Minute
)

// A verdict is how a test ended.
type verdict int

const (
	broken  verdict = iota // in another way than those below
	passed                 // it passed
	failed                 // it failed by an assertion
	skipped                // it was skipped
	absent                 // there is no such test
)

var verdictNames = [...]string{"broke", "passed", "failed", "was skipped", "does not exist"}

func (v verdict) String() string { return verdictNames[v] }

// A trial is one run of one test.
type trial struct {
	verdict verdict
	cpu     time.Duration // of the test and of what it has started
	output  string
}

// build compiles the tests of a package of the copy. Without the paths of the copies in
// them, all copies share what was built before.
func (t *tree) build(pkg, name string) (string, error) {
	bin := filepath.Join(t.base, name+".test")
	_, err := output(t.dir, "go", "test", "-c", "-trimpath", "-vet=off", "-o", bin, pkg)
	if err != nil {
		return "", fmt.Errorf("it does not compile: %w", err)
	}
	return bin, nil
}

// together is a command that is killed with all that it has started when ctx is done.
func together(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd
}

// try runs one test of a test binary. The seed does not follow from the commit: otherwise whether
// the sample of a test contains a case that shows the fault would change with every commit.
func (t *tree) try(ctx context.Context, bin string, m *mutant, env []string) (trial, error) {
	limited, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	cmd := together(limited, bin, "-test.run=^"+m.test+"$", "-test.v", "-test.count=1")
	cmd.Dir = filepath.Join(t.dir, m.pkg)
	cmd.Env = append(append(os.Environ(), "SPECTRUM_TESTS=sample", "SEED=0"), append(slices.Clone(m.env), env...)...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		return trial{}, ctx.Err()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return trial{}, err
	}
	state := cmd.ProcessState
	return trial{judge(m.test, out.String(), state.ExitCode()), state.UserTime() + state.SystemTime(), out.String()}, nil
}

// judge reads what a test binary has printed. A panic has the status 2.
func judge(test, out string, status int) verdict {
	says := func(word string) bool { return strings.Contains("\n"+out, "\n--- "+word+": "+test+" (") }
	switch {
	case status == 0 && says("PASS"):
		return passed
	case status == 1 && says("FAIL"):
		return failed
	case status == 0 && says("SKIP"):
		return skipped
	case status == 0 && strings.Contains(out, "testing: warning: no tests to run"):
		return absent
	}
	return broken
}

// control is the test without the fault: it has to pass, and soon.
func (t *tree) control(ctx context.Context, m *mutant, env []string) (time.Duration, error) {
	bin, err := t.sound(m.pkg)
	if err != nil {
		return 0, err
	}
	run, err := t.try(ctx, bin, m, env)
	switch {
	case err != nil:
		return 0, err
	case run.verdict != passed:
		return 0, fmt.Errorf("without the fault %s of %s %s:\n%s", m.test, m.pkg, run.verdict, tail(run.output))
	case run.cpu > maxCPU:
		return 0, fmt.Errorf("%s of %s takes %v of processor time, and may take %v", m.test, m.pkg, run.cpu, maxCPU)
	}
	return run.cpu, nil
}

// sound is the test binary of a package without a fault, which is built once.
func (t *tree) sound(pkg string) (string, error) {
	if bin, ok := t.bins[pkg]; ok {
		return bin, nil
	}
	bin, err := t.build(pkg, "sound"+strings.ReplaceAll(pkg, "/", "-"))
	if err == nil {
		t.bins[pkg] = bin
	}
	return bin, err
}

// catch runs the test of a mutant with the fault, once for each environment: it has to
// fail in each.
func (t *tree) catch(ctx context.Context, m *mutant, envs [][]string) (cpu time.Duration, err error) {
	if err := t.apply(m); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.revert(m)) }()
	bin, err := t.build(m.pkg, "mutant")
	if err != nil {
		return 0, err
	}
	for _, env := range envs {
		run, err := t.try(ctx, bin, m, env)
		if err != nil {
			return 0, err
		}
		if run.verdict == passed {
			return 0, fmt.Errorf("the mutant survives: %s of %s passes with it %v", m.test, m.pkg, env)
		}
		if run.verdict != failed {
			return 0, fmt.Errorf("%s of %s %s, and has to fail by an assertion %v:\n%s", m.test, m.pkg, run.verdict, env, tail(run.output))
		}
		cpu += run.cpu
	}
	return cpu, nil
}
