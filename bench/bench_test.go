package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/sample"
)

// rowsOf is how many rows each section measures.
var rowsOf = map[string]int{
	"big": 3, "small": 3, "preview": 3, "edit": 2, "view": 7, "lazy": 7, "names": 4, "restic": 0, "memory": 3, "syncs": 1, "undo": 5, "million": 6,
}

// TestWholeRun runs every section at a small size against the stub; in the sample some
// of them.
func TestWholeRun(t *testing.T) {
	if _, err := exec.LookPath("restic"); err == nil {
		rowsOf["restic"] = 2
	}
	names, want := sample.Pick(t, 2, sectionNames()), 0
	for _, name := range names {
		n, ok := rowsOf[name]
		if !ok {
			t.Errorf("section %q has no number of rows", name)
		}
		want += n
	}
	args, dir := stubArgs(t, names...)
	opts, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := measureAll(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != want {
		t.Errorf("%q: %d rows, want %d: %v", names, len(rows), want, rows)
	}
	wantEmpty(t, dir)
}

// TestFailureCleansUp lets each command of the stub fail, where a whole run comes to it
// first; in the sample without the sections before that one.
func TestFailureCleansUp(t *testing.T) {
	first := map[string]string{
		"keygen": "big", "seal": "big", "verify": "big", "preview": "big", "commit": "big",
		"mount": "view", "savepoint": "undo", "rollback": "undo", "snapshot": "undo",
	}
	for _, command := range sample.Pick(t, 2, slices.Sorted(maps.Keys(first))) {
		t.Run(command, func(t *testing.T) {
			var only []string
			if sample.Now() == sample.Sample {
				only = []string{first[command]}
			}
			args, dir := stubArgs(t, only...)
			t.Setenv("STUB_FAIL", command)
			err := run(args, new(bytes.Buffer))
			if err == nil || !strings.Contains(err.Error(), "stub fails") {
				t.Errorf("error %v does not tell what the program said", err)
			}
			wantEmpty(t, dir)
		})
	}
}

// TestCancelCleansUp ends a run while the view is mounted.
func TestCancelCleansUp(t *testing.T) {
	args, dir := stubArgs(t)
	opts, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b, err := newBench(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	err = b.withSet(ctx, set{name: "cancel", n: 1, size: 1}, func(s set) error {
		m, err := b.mountSpectrum(ctx, s)
		cancel()
		if err != nil {
			return err
		}
		return m.close()
	})
	if err != nil && !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Error(err)
	}
	if err := os.RemoveAll(b.work); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, dir)
}

// TestViewCopiedElsewhere ends the server of a view that another mount namespace has a copy
// of, as one has that was made while the view was mounted.
func TestViewCopiedElsewhere(t *testing.T) {
	args, _ := stubArgs(t)
	opts, err := parse(args)
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(b.work) })
	err = b.withSet(t.Context(), set{name: "copied", n: 1, size: 1}, func(s set) error {
		m, err := b.mountLoopback(t.Context(), s)
		if err != nil {
			return err
		}
		holder := exec.Command("cat")
		holder.SysProcAttr = &unix.SysProcAttr{Unshareflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
		stdin, err := holder.StdinPipe()
		if err != nil {
			return err
		}
		if err := holder.Start(); err != nil {
			return errors.Join(err, m.close())
		}
		return errors.Join(m.close(), stdin.Close(), holder.Wait())
	})
	if err != nil {
		t.Error(err)
	}
}

// built is a directory of programs that the tests have built.
var built string

// stubLoopback is the binary of bench/loopback, which is built once.
var stubLoopback = sync.OnceValues(func() (binary string, err error) {
	binary = filepath.Join(built, "loopback")
	if out, err := exec.Command("go", "build", "-o", binary, "./loopback").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return binary, nil
})

func TestMain(m *testing.M) {
	var err error
	if built, err = os.MkdirTemp("", "bench-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(built)
	os.Exit(code)
}

// stubArgs returns arguments for a small run of these sections (none means all) against
// the stub, and the directory of its data.
func stubArgs(t *testing.T, only ...string) (args []string, dir string) {
	t.Helper()
	loopback, err := stubLoopback()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("STUB_LOOPBACK", loopback)
	dir = t.TempDir()
	return []string{
		"-bin", "testdata/spectrum.sh", "-loopback", loopback, "-dir", dir, "-only", strings.Join(only, ","),
		"-rounds", strconv.Itoa(sample.Of(1, 2, 2)), "-big-mib", "1", "-small", strconv.Itoa(sample.Of(20, 250, 250)),
		"-view-mib", "2", "-tiny", strconv.Itoa(sample.Of(20, 250, 250)), "-million", strconv.Itoa(sample.Of(1100, 2500, 2500)),
	}, dir
}

// wantEmpty fails when something is left in dir, or mounted there.
func wantEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) > 0 {
		t.Errorf("left in %q: %v, %v", dir, entries, err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || bytes.Contains(mounts, []byte(dir)) {
		t.Errorf("left mounted in %q, %v", dir, err)
	}
}

func TestInterleave(t *testing.T) {
	var order []string
	step := func(name string, took time.Duration) timing {
		return func(_ context.Context, round int) (time.Duration, error) {
			order = append(order, name)
			return took + time.Duration(round), nil
		}
	}
	p, err := interleave(context.Background(), 3, step("a", 10), step("b", 20))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "b", "a", "a", "b"}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if !slices.Equal(p.ours, []time.Duration{10, 11, 12}) || !slices.Equal(p.theirs, []time.Duration{20, 21, 22}) {
		t.Errorf("times %v", p)
	}
	if best(p.ours) != 10 || median(p.ours) != 11 {
		t.Errorf("best %d, median %d", best(p.ours), median(p.ours))
	}
}

func TestVerdicts(t *testing.T) {
	times := func(ours, theirs time.Duration) pair {
		return pair{ours: []time.Duration{ours}, theirs: []time.Duration{theirs}}
	}
	for _, c := range []struct {
		row row
		ok  bool
	}{
		{timed("", times(100, 85), 0.85, false), true},
		{timed("", times(100, 84), 0.85, false), false},
		{timed("", times(100, 100), 1, true), false},
		{timed("", times(100, 101), 1, true), true},
		{timed("", times(200, 100), 0.5, true), false},
		{resident("", 299, 300*kib), true},
		{resident("", 300, 300*kib), false},
		{beyond("", times(149, 100), 50), true},
		{beyond("", times(150, 100), 50), false},
		{within("", []time.Duration{50, 49}, 50), true},
		{within("", []time.Duration{50, 51}, 50), false},
		{perFile("", 7, 10, kib), true},
		{perFile("", 10, 10, kib), false},
		{perFile("", 1<<40, 1, 0), true},
		{timed("", times(100, 1), 0, false), true},
	} {
		if c.row.ok != c.ok || missed([]row{c.row}) == c.ok {
			t.Errorf("%+v: want ok %v", c.row, c.ok)
		}
	}
}

func TestPrintRowsShowsMisses(t *testing.T) {
	var out bytes.Buffer
	rows := []row{resident("one", 1, 2*kib), resident("two", 2, 2*kib)}
	if err := printRows(&out, rows); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !strings.HasSuffix(lines[1], "ok") || !strings.HasSuffix(lines[2], "MISSED") {
		t.Errorf("table:\n%s", out.String())
	}
}

func TestParseStatus(t *testing.T) {
	got, err := parseStatus([]byte("Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t  4321 kB\nVmRSS:\t 7 kB\n"), "VmHWM")
	if got != 4321 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	for _, bad := range []string{"", "VmRSS:\t7 kB\n", "VmHWM:\t7 MB\n", "VmHWM:\tx kB\n"} {
		if got, err := parseStatus([]byte(bad), "VmHWM"); err == nil {
			t.Errorf("%q: got %d", bad, got)
		}
	}
}

func TestShareCoversEveryFileOnce(t *testing.T) {
	var all, want []string
	for i := range 7 {
		want = append(want, set{}.file(i))
	}
	for core := range 3 {
		all = append(all, share(set{n: 7}, core, 3)...)
	}
	slices.Sort(all)
	if !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
}

func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	if err := checkSpace(dir, 1<<62, 0); err == nil {
		t.Error("space for 2^62 bytes")
	}
	if _, err := chosen("big,nonsense"); err == nil {
		t.Error("a section that does not exist was chosen")
	}
	if _, err := parse([]string{"-bin", filepath.Join(dir, "absent")}); err == nil {
		t.Error("a binary that does not exist was taken")
	}
	byDefault := sizes{bigMiB: 256, small: 20_000, viewMiB: 512, tiny: 100_000, million: 1_000_000}
	if need := byDefault.need(5); need < 12*gib {
		t.Errorf("the default sizes need %d bytes", need)
	}
	if need := byDefault.need(1); need < 2*4*kib*1_000_000 {
		t.Errorf("a million files and as much again need %d bytes", need)
	}
	if files := byDefault.files(1); files < 1_000_000 {
		t.Errorf("the default sizes need %d inodes", files)
	}
}
