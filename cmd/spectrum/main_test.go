package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spectrumfs/spectrum/staging"
	"github.com/spectrumfs/spectrum/test/blocklog"
	tier "github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// The program under test runs in processes of its own. It is the binary that
// SPECTRUM_BIN names, or SPECTRUM_RACE_BIN when the tests run with the race detector;
// without it the test binary, which starts itself under the name "spectrum" or one of a
// mount(8) helper. Under other names the test binary is what a script needs beside it.
//
// The tests have mounts of their own: a rollback elsewhere on this machine looks at all
// views that it sees, and makes them busy meanwhile.
func TestMain(m *testing.M) {
	if err := os.Setenv("GORACE", endAtOnce); err != nil {
		log.Fatal(err)
	}
	if err := flag.Set("test.parallel", atOnce); err != nil { // -parallel replaces it
		log.Fatal(err)
	}
	programs := map[string]func(){"spectrum": main, "killat": killAt, "private": private, "mark": mark, "makesavepoint": makeSavepoint, "rolledback": rolledBackNow}
	for _, name := range helperNames {
		programs[name] = main
	}
	testscript.Main(underTest{m}, programs)
}

// atOnce is how many tests may run at once. They mostly wait, for the disk and for other
// processes, so it is more than there are processors.
const atOnce = "8"

// binaryVariable names the variable that the program under test is taken from.
func binaryVariable() string {
	if raceDetector {
		return "SPECTRUM_RACE_BIN"
	}
	return "SPECTRUM_BIN"
}

// underTest runs the tests with the program under test first on PATH.
type underTest struct{ *testing.M }

// Run is called by testscript, which has put the test binary on PATH under all names.
func (m underTest) Run() int { return blocklog.Main(m.run) }

func (m underTest) run() int {
	binary := os.Getenv(binaryVariable())
	if binary == "" {
		return m.M.Run()
	}
	dir, err := linkProgram(binary)
	if dir != "" {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", binaryVariable(), err)
		return 1
	}
	return m.M.Run()
}

// linkProgram makes a directory with a link to the program for each of its names, and puts it
// first on PATH.
func linkProgram(binary string) (dir string, err error) {
	if binary, err = filepath.Abs(binary); err != nil {
		return "", err
	}
	if _, err := exec.LookPath(binary); err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "spectrum-under-test"); err != nil {
		return "", err
	}
	err = errors.Join(os.Chmod(dir, 0o755), os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH")))
	for _, name := range append([]string{"spectrum"}, helperNames...) {
		err = errors.Join(err, os.Symlink(binary, filepath.Join(dir, name)))
	}
	return dir, err
}

// TestProgramUnderTest makes sure that the tests start the binary that they were given.
func TestProgramUnderTest(t *testing.T) {
	want := os.Getenv(binaryVariable())
	if want == "" {
		t.Skip("the program under test is the test binary")
	}
	for _, name := range append([]string{"spectrum"}, helperNames...) {
		program, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err1 := os.Stat(program)
		binary, err2 := os.Stat(want)
		if err := errors.Join(err1, err2); err != nil || !os.SameFile(got, binary) {
			t.Errorf("%s is %q, not %q: %v", name, program, want, err)
		}
	}
	if out := must(t, "version"); !strings.HasPrefix(out, "spectrum ") {
		t.Errorf("it says %q", out)
	}
}

// endAtOnce is for programs with the race detector, which would each wait for a
// second before they end.
const endAtOnce = "atexit_sleep_ms=0"

// killAt runs "killat N[:CALL] COMMAND...": the command is killed instead of its N-th rename, or
// the N-th of another call, in the restore root.
func killAt() {
	count, call, isOther := strings.Cut(os.Args[1], ":")
	if !isOther {
		call = "renameat2"
	}
	n, err := strconv.Atoi(count)
	if err != nil {
		log.Fatal(err)
	}
	plan := sysfault.Plan{N: n, Kill: true, Match: func(c sysfault.Call) bool {
		return c.Name == call && !strings.Contains(c.Path, "/state/") && !strings.Contains(c.Path, staging.LockName) // where the savepoint is prepared, and the lock
	}}
	result, err := sysfault.Run(context.Background(), plan, os.Args[2:]...)
	if err != nil || result.Fired != 1 {
		log.Fatalf("%d kills, %v: %s", result.Fired, err, result.Stderr)
	}
	os.Exit(result.Status)
}

// askAll are the scripts whose commands ask every view of the machine. While one is asked it
// is in use, and "spectrum umount" of it fails: no script that unmounts may run beside them.
var askAll = []string{"audit", "doctor", "recover", "rollback"}

// scriptFile is the path of a script.
func scriptFile(name string) string { return filepath.Join("testdata", "script", name+".txtar") }

func TestScripts(t *testing.T) {
	files, err := filepath.Glob(scriptFile("*"))
	if err != nil || len(files) < 20 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	runScripts(t, 4, slices.DeleteFunc(files, func(file string) bool {
		return slices.ContainsFunc(askAll, func(name string) bool { return file == scriptFile(name) })
	}))
}

func TestScriptsOfTheWholeMachine(t *testing.T) {
	var files []string
	for _, name := range askAll {
		files = append(files, scriptFile(name))
	}
	runScripts(t, 1, files)
}

// runScripts runs all of the scripts. With the race detector, in the sample, only a few of
// them: without it all run.
func runScripts(t *testing.T, few int, files []string) {
	t.Helper()
	if raceDetector {
		files = tier.Pick(t, few, files)
	}
	// Its own directory is left behind when -run chooses only some of the scripts.
	testscript.Run(t, testscript.Params{Files: files, Setup: isolate, WorkdirRoot: t.TempDir()})
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
	return runCommand(t, command(t, args...))
}

// runCommand runs a command to its end.
func runCommand(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, status int) {
	t.Helper()
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
	if dir, ok := stateHomes.Load(t.Name()); ok {
		return dir.(string)
	}
	dir, known := stateHomes.LoadOrStore(t.Name(), t.TempDir())
	if !known {
		t.Cleanup(func() { stateHomes.Delete(t.Name()) }) // with -count there is a next one
	}
	return dir.(string)
}

var stateHomes sync.Map // of the names of tests

// asExit reports whether an error is an exit status other than 0.
func asExit(err error, exit **exec.ExitError) bool { return errors.As(err, exit) }
