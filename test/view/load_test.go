package view

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// readMixed mounts a tree of files of all sizes, tampers with some, and has
// readers read all of it at once. Each tampered byte is reported once.
func readMixed(t *testing.T, m harness.Mounting, threads, reads int) {
	t.Helper()
	files, bad := mixed()
	p := harness.New(t, files.files())
	v := p.Mount(t, m)
	tamper(t, p, bad)
	expect := expectation{Sizes: files, Bad: bad}
	sum := readAll(t, orders{View: v.Dir, Expect: expect, Threads: threads, Reads: reads})
	t.Logf("%d readers: %d reads, %d of them EIO", threads, sum.Reads, sum.EIO)
	if sum.Reads != threads*reads || sum.EIO == 0 {
		t.Errorf("%d reads of %d, %d EIO", sum.Reads, threads*reads, sum.EIO)
	}
	for name, offsets := range bad {
		for _, off := range offsets {
			readByte(t, v, name, off)
		}
		if lines := findings(v, name); len(lines) != len(offsets) {
			t.Errorf("%s: %d tampered blocks, and in the log:\n%q", name, len(offsets), lines)
		}
	}
	v.End(t)
}

// readByte requires EIO for a tampered byte.
func readByte(t *testing.T, v *harness.View, name string, off int64) {
	t.Helper()
	f, err := (&readers{orders: orders{View: v.Dir}}).open(name, true)
	harness.Must(t, err)
	defer f.Close()
	if n, err := fill(f, make([]byte, 1), off); err != errIO {
		t.Errorf("%s: the tampered byte %d: %d bytes, %v", name, off, n, err)
	}
}

func TestThousandReadersRace(t *testing.T) { readMixed(t, withRace(t), 1000, sample.Of(1, 5, 5)) }

func TestOneProcessor(t *testing.T) {
	readMixed(t, harness.Mounting{Env: []string{"GOMAXPROCS=1"}}, 200, sample.Of(2, 10, 10))
}

// TestTenThousandReads has 10 processes of 1,000 threads read one file at once; in the
// sample 4.
func TestTenThousandReads(t *testing.T) {
	files := sizes{"large": 64 << 20}
	v := harness.New(t, files.files()).Mount(t, harness.Mounting{})
	processes := sample.Of(4, 10, 10)
	var children []*child
	for range processes {
		o := orders{View: v.Dir, Expect: expectation{Sizes: files}, Threads: 1000, Reads: 1, Pages: true}
		children = append(children, startReaders(t, o))
	}
	for _, c := range children {
		c.tell()
	}
	total := tally{}
	for _, c := range children {
		c.line("reading")
		sum := c.finish()
		total.Reads += sum.Reads
		total.EIO += sum.EIO
	}
	peak, threads := status(t, v, "VmHWM"), status(t, v, "Threads")
	t.Logf("%d reads, %d errors; the server: %d kB at most, %d threads", total.Reads, total.EIO, peak, threads)
	if total.Reads != processes*1000 || total.EIO != 0 || peak > 300_000 || threads > 200 {
		t.Error("this is not what 10,000 reads may cost")
	}
}

// status is a number of /proc/PID/status.
func status(t *testing.T, v *harness.View, field string) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.Server.Pid))
	harness.Must(t, err)
	found := regexp.MustCompile(field + `:\s*(\d+)`).FindSubmatch(raw)
	if found == nil {
		t.Fatalf("there is no %s in %s", field, raw)
	}
	n, err := strconv.Atoi(string(found[1]))
	harness.Must(t, err)
	return n
}

// TestFewDescriptors opens 10,000 files at once (1,000 in the sample), where the server
// may have 64 descriptors, and has many readers read them.
func TestFewDescriptors(t *testing.T) {
	files := sizes{"large": 3 << 20}
	many := sample.Of(1000, 10_000, 10_000)
	for i := range many {
		files[fmt.Sprintf("many/%02d/%04d", i%100, i)] = int64(i % 5000)
	}
	p := harness.New(t, files.files())
	v := p.Mount(t, harness.Mounting{Under: []string{"prlimit", "--nofile=64:64"}})
	o := orders{View: v.Dir, Expect: expectation{Sizes: files}, Threads: 200, Reads: sample.Of(20, 100, 100), Hold: true}
	sum := readAll(t, o)
	fds := harness.OpenFiles(t, v.Server.Pid)
	t.Logf("%d reads of %d open files; the server has %d descriptors", sum.Reads, many, len(fds))
	if sum.Reads != o.Threads*o.Reads || sum.EIO != 0 || len(fds) > 64 || v.Log() != "" && len(findings(v, "")) > 0 {
		t.Errorf("%+v, %d descriptors", sum, len(fds))
	}
}
