package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// The program under test runs in processes of its own: the test binary starts
// itself under the name "spectrum" or one of a mount(8) helper, and under other names as what a
// script needs beside it.
func TestMain(m *testing.M) {
	if err := os.Setenv("GORACE", endAtOnce); err != nil {
		log.Fatal(err)
	}
	programs := map[string]func(){"spectrum": main, "killat": killAt, "private": private, "mark": mark, "makesavepoint": makeSavepoint, "rolledback": rolledBackNow}
	for _, name := range helperNames {
		programs[name] = main
	}
	testscript.Main(m, programs)
}

// endAtOnce is for programs with the race detector, which would each wait for a
// second before they end.
const endAtOnce = "atexit_sleep_ms=0"

// killAt runs "killat N COMMAND...": the command is killed instead of its N-th
// rename.
func killAt() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	plan := sysfault.Plan{N: n, Kill: true, Match: func(c sysfault.Call) bool {
		return c.Name == "renameat2" && !strings.Contains(c.Path, "/state/") // where the savepoint is prepared
	}}
	result, err := sysfault.Run(context.Background(), plan, os.Args[2:]...)
	if err != nil || result.Fired != 1 {
		log.Fatalf("%d kills, %v: %s", result.Fired, err, result.Stderr)
	}
	os.Exit(result.Status)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: isolate,
	})
}

// isolate keeps the scripts out of the user's own state directory.
func isolate(env *testscript.Env) error {
	env.Setenv("XDG_STATE_HOME", env.WorkDir+"/state")
	root, err := filepath.Abs(repository)
	if err != nil {
		return err
	}
	env.Setenv("REPOSITORY", root)
	env.Setenv("GORACE", endAtOnce)
	env.Setenv("APPROVE", "Approved: commit the restore preview exactly as proposed.")
	return nil
}

// spectrum runs the program and returns its streams and exit status.
func spectrum(t *testing.T, args ...string) (stdout, stderr string, status int) {
	t.Helper()
	cmd := command(t, args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !asExit(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// command prepares a run of the program with a state directory of the test's.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "spectrum", args...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+stateHome(t))
	return cmd
}

// stateHome is one directory for each test.
func stateHome(t *testing.T) string {
	t.Helper()
	dir, ok := stateHomes[t.Name()]
	if !ok {
		dir = t.TempDir()
		stateHomes[t.Name()] = dir
		t.Cleanup(func() { delete(stateHomes, t.Name()) }) // with -count there is a next one
	}
	return dir
}

var stateHomes = map[string]string{}

// asExit says whether an error is an exit status other than 0.
func asExit(err error, exit **exec.ExitError) bool { return errors.As(err, exit) }
