//go:build linux && amd64

package sysfault

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	threads = 8
	each    = 12
)

// The test binary is also the program that is traced.
func TestMain(m *testing.M) {
	switch os.Getenv("SYSFAULT_PROGRAM") {
	case "":
		os.Exit(m.Run())
	case "threads":
		manyThreads(os.Args[1])
	case "steps":
		steps(os.Args[1])
	case "sleep":
		time.Sleep(time.Hour)
	case "close":
		fd, _ := syscall.Open(os.Args[1], syscall.O_RDONLY, 0)
		fmt.Print(syscall.Close(fd), ", then ", syscall.Close(fd))
	}
}

// manyThreads makes directories on several threads, and prints how many of them
// could not be made.
func manyThreads(dir string) {
	var failed [threads]int
	var group sync.WaitGroup
	for i := range threads {
		group.Go(func() {
			runtime.LockOSThread()
			for j := range each {
				if syscall.Mkdirat(-100, filepath.Join(dir, fmt.Sprint(i, "-", j)), 0o755) != nil {
					failed[i]++
				}
			}
		})
	}
	group.Wait()
	sum := 0
	for _, n := range failed {
		sum += n
	}
	fmt.Print(sum)
}

// steps makes four calls, one after the other, and prints what they returned.
func steps(dir string) {
	fmt.Println("mkdir", syscall.Mkdirat(-100, dir+"/d", 0o755))
	fd, err := syscall.Open(dir+"/f", syscall.O_CREAT|syscall.O_WRONLY|syscall.O_CLOEXEC, 0o644)
	fmt.Println("open", err)
	n, err := syscall.Write(fd, []byte("0123456789"))
	fmt.Println("write", n, err)
	fmt.Println("rename", syscall.Renameat(-100, dir+"/f", -100, dir+"/g"))
}

func play(name string, p Plan) Plan {
	// With -race a program sleeps a second before it exits, unless GORACE has atexit_sleep_ms=0.
	p.Env = append(p.Env, "SYSFAULT_PROGRAM="+name, "GORACE=atexit_sleep_ms=0")
	return p
}

func run(t *testing.T, p Plan, dir string) Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := Run(ctx, p, os.Args[0], dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mkdirs(c Call) bool { return c.Name == "mkdirat" }

func beneath(dir string) func(Call) bool {
	return func(c Call) bool { return Mutating(c) && strings.HasPrefix(c.Path, dir+"/") && c.Name != "close" }
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func TestOneCounterOverAllThreads(t *testing.T) {
	const total = threads * each
	for n := 1; n <= total+1; n += 5 {
		dir := t.TempDir()
		r := run(t, play("threads", Plan{N: n, Errno: syscall.EIO, Match: mkdirs, Record: true}), dir)
		want := 1
		if n > total {
			want = 0
		}
		if r.Calls != total || r.Fired != want || string(r.Stdout) != fmt.Sprint(want) || len(entries(t, dir)) != total-want {
			t.Errorf("n=%d: %d calls, fired %d, the program saw %s failures, %d entries", n, r.Calls, r.Fired, r.Stdout, len(entries(t, dir)))
		}
	}
}

func TestFaultFromCallOnward(t *testing.T) {
	const total = threads * each
	for _, n := range []int{1, 40, total} {
		dir := t.TempDir()
		r := run(t, play("threads", Plan{N: n, Onward: true, Errno: syscall.ENOSPC, Match: mkdirs}), dir)
		if want := total - n + 1; r.Fired != want || string(r.Stdout) != fmt.Sprint(want) || len(entries(t, dir)) != n-1 {
			t.Errorf("from %d on: fired %d, the program saw %s failures, %d entries", n, r.Fired, r.Stdout, len(entries(t, dir)))
		}
	}
}

func TestKillComesBeforeTheCall(t *testing.T) {
	want := [][]string{nil, {"d"}, {"d", "f"}, {"d", "f"}, {"d", "g"}}
	for i, names := range want {
		dir := t.TempDir()
		r := run(t, play("steps", Plan{N: i + 1, Kill: true, Match: beneath(dir)}), dir)
		status, fired := 137, 1
		if i == 4 {
			status, fired = 0, 0
		}
		if got := entries(t, dir); fmt.Sprint(got) != fmt.Sprint(names) || r.Status != status || r.Fired != fired {
			t.Errorf("killed before call %d: status %d, fired %d, the file has %q, want %q", i+1, r.Status, r.Fired, got, names)
		}
	}
	dir := t.TempDir()
	r := run(t, play("threads", Plan{N: 50, Kill: true, Match: mkdirs}), dir)
	if n := len(entries(t, dir)); r.Status != 137 || n > 49 {
		t.Errorf("many threads, killed before the 50th: status %d, %d calls were executed", r.Status, n)
	}
}

func TestCallThatDoesNothing(t *testing.T) {
	dir := t.TempDir()
	r := run(t, play("steps", Plan{N: 1, Onward: true, Lie: true, Match: beneath(dir)}), dir)
	const said = "mkdir <nil>\nopen <nil>\nwrite 10 <nil>\nrename <nil>\n"
	if got := entries(t, dir); string(r.Stdout) != said || fmt.Sprint(got) != "[f]" || r.Fired != 3 {
		t.Errorf("fired %d, the program said %q, the file has %q", r.Fired, r.Stdout, got)
	}
	if info, err := os.Stat(dir + "/f"); err != nil || info.Size() != 0 {
		t.Errorf("the file that was not written: %v, %v", info, err)
	}
}

func TestShort(t *testing.T) {
	dir := t.TempDir()
	r := run(t, play("steps", Plan{N: 1, Onward: true, Short: true, Match: beneath(dir)}), dir)
	text, err := os.ReadFile(dir + "/g")
	if string(text) != "01234" || err != nil || r.Fired != 1 || !strings.Contains(string(r.Stdout), "write 5 <nil>") {
		t.Errorf("fired %d, the program said %q, the file holds %q, %v", r.Fired, r.Stdout, text, err)
	}
}

func TestFaultBeforeCall(t *testing.T) {
	dir := t.TempDir()
	var seen []string
	plan := Plan{N: 1, Onward: true, Match: beneath(dir), Record: true, Returns: true, Before: func(c Call) {
		seen = append(seen, c.Name+" "+strings.TrimPrefix(c.Path, dir))
		if c.Name == "mkdirat" {
			if err := os.Mkdir(c.Path, 0o700); err != nil {
				t.Error(err)
			}
		}
	}}
	r := run(t, play("steps", plan), dir)
	if got := strings.Join(seen, ", "); got != "mkdirat /d, openat /f, write /f, renameat /f" {
		t.Errorf("saw %s", got)
	}
	if !strings.Contains(string(r.Stdout), "mkdir file exists") {
		t.Errorf("the rival came too late: %s", r.Stdout)
	}
	if len(r.Trace) != 4 || r.Trace[0].Returned != -int64(syscall.EEXIST) || r.Trace[2].Returned != 10 || r.Trace[3].To != dir+"/g" {
		t.Errorf("the trace is %+v", r.Trace)
	}
}

// A callback that fails the test ends its goroutine.
func TestBeforeEndsTheGoroutine(t *testing.T) {
	dir := t.TempDir()
	pid := make(chan int, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		plan := Plan{N: 1, Match: mkdirs, Before: func(c Call) { pid <- c.Tid; runtime.Goexit() }}
		_, _ = Run(t.Context(), play("steps", plan), os.Args[0], dir)
	}()
	<-done
	if err := syscall.Kill(<-pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the command is still there: %v", err)
	}
}

func TestDeadline(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r, err := Run(ctx, play("sleep", Plan{}), os.Args[0])
	if !errors.Is(err, context.DeadlineExceeded) || r.Status != 137 {
		t.Errorf("status %d, %v", r.Status, err)
	}
}

// The children of others are not waited for, also when many run at once.
func TestOtherChildren(t *testing.T) {
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			for range 5 {
				cat := exec.Command("cat")
				in, err := cat.StdinPipe()
				if err != nil || cat.Start() != nil {
					t.Fatal(err)
				}
				dir := t.TempDir()
				if r := run(t, play("steps", Plan{Match: beneath(dir)}), dir); r.Calls != 4 || r.Status != 0 {
					t.Errorf("%d calls, status %d", r.Calls, r.Status)
				}
				if err := errors.Join(in.Close(), cat.Wait()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A shell starts children, and leaves one behind.
func TestChildren(t *testing.T) {
	dir := t.TempDir()
	r, err := Run(t.Context(), Plan{Match: mkdirs}, "sh", "-c", "mkdir "+dir+"/a; mkdir "+dir+"/b; sleep 1000 & exit 7")
	if err != nil || r.Status != 7 {
		t.Errorf("status %d, %v, %s", r.Status, err, r.Stderr)
	}
	if _, err := Run(t.Context(), Plan{}, filepath.Join(dir, "none")); err == nil {
		t.Error("a command that does not exist was run")
	}
	if got := entries(t, dir); fmt.Sprint(got) != "[a b]" {
		t.Errorf("the children made %q", got)
	}
}

func TestQuietCalls(t *testing.T) {
	var names []string
	r := run(t, play("threads", Plan{Record: true}), t.TempDir())
	for _, c := range r.Trace {
		if c.Name == "write" && (c.Fd <= 2 || strings.Contains(c.Path, "eventfd")) {
			names = append(names, c.Path)
		}
	}
	if len(names) > 0 {
		t.Errorf("counted: %q", names)
	}
	if _, err := Run(t.Context(), Plan{}); err == nil {
		t.Error("no command was run")
	}
}

// A plan that names its calls counts the same ones.
func TestPlanOfNamedCalls(t *testing.T) {
	for _, only := range [][]string{nil, {"mkdirat"}, {"write", "mkdirat"}} {
		r := run(t, play("threads", Plan{N: 5, Errno: syscall.EIO, Match: mkdirs, Only: only, Record: true}), t.TempDir())
		if r.Calls != threads*each || r.Fired != 1 || string(r.Stdout) != "1" {
			t.Errorf("only %q: %d calls, fired %d, the program saw %s failures", only, r.Calls, r.Fired, r.Stdout)
		}
	}
	dir := t.TempDir()
	if r := run(t, play("steps", Plan{N: 1, Onward: true, Errno: syscall.EIO, Only: []string{"renameat"}}), dir); r.Calls != 1 || fmt.Sprint(entries(t, dir)) != "[d f]" {
		t.Errorf("%d calls, the file has %q", r.Calls, entries(t, dir))
	}
}

// A close that fails has closed: what it was given is not there any more.
func TestFailedCloseCloses(t *testing.T) {
	dir := t.TempDir()
	match := func(c Call) bool { return c.Name == "close" && c.Path == dir }
	r := run(t, play("close", Plan{N: 1, Errno: syscall.EIO, Match: match}), dir)
	if string(r.Stdout) != "input/output error, then bad file descriptor" {
		t.Errorf("the program said %q", r.Stdout)
	}
}
