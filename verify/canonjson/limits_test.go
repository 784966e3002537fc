package canonjson_test

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

func TestDepth(t *testing.T) {
	mixed := func(n int) string { // n levels, arrays and objects in turn
		return strings.Repeat(`[{"a":`, n/2) + strings.Repeat("[", n%2) + "1" + strings.Repeat("]", n%2) + strings.Repeat("}]", n/2)
	}
	for n, ok := range map[int]bool{1: true, 2: true, 511: true, 512: true, 513: false, 514: false} {
		if _, err := canonjson.Parse([]byte(mixed(n))); (err == nil) != ok {
			t.Errorf("%d levels: error %v", n, err)
		}
	}
	wide := "[" + strings.Repeat("[],", 2000) + "[]]"
	if _, err := canonjson.Parse([]byte(wide)); err != nil {
		t.Errorf("2,001 arrays beside each other are not deep: %v", err)
	}
}

// TestManyBrackets: depth costs neither time nor memory.
func TestManyBrackets(t *testing.T) {
	for _, unit := range []string{"[", `{"":`, `[{"a":`} {
		data := []byte(strings.Repeat(unit, 100_000))
		begin := cpuTime(t)
		allocated := allocatedBy(func() {
			if _, err := canonjson.Parse(data); err == nil {
				t.Errorf("%d of %q: accepted", 100_000, unit)
			}
		})
		if took := cpuTime(t) - begin; took > time.Second || allocated > 4<<20 {
			t.Errorf("%d of %q: %v, %d bytes", 100_000, unit, took, allocated)
		}
	}
}

// allocatedBy returns the number of bytes that f allocates in all, which is at least what f ever
// holds at once.
func allocatedBy(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// cpuTime is what this process has used: other programs do not count.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// shape is some JSON that is dear for a parser that makes a tree, or for one that puts
// objects in order.
type shape struct {
	name string
	data func(size int) []byte
}

var shapes = []shape{
	{"objects", func(n int) []byte { return list("{}", n) }},
	{"objects with a member", func(n int) []byte { return list(`{"":0}`, n) }},
	{"arrays", func(n int) []byte { return list("[]", n) }},
	{"small numbers", func(n int) []byte { return list("0", n) }},
	{"numbers that grow", func(n int) []byte { return list("1e308", n) }},
	{"escaped strings", func(n int) []byte { return list(`"\u001f"`, n) }},
	{"members in order", func(n int) []byte { return members(n, "%07x", func(i, _ int) int { return i }) }},
	{"members the other way round", func(n int) []byte { return members(n, "%07x", func(i, n int) int { return n - i }) }},
	{"members in no order", func(n int) []byte { return members(n, "%07x", noOrder) }},
	{"members with escapes in no order", func(n int) []byte { return members(n, `\u001f%07x`, noOrder) }},
	{"members with short escapes in no order", func(n int) []byte { return members(n, `\n%07x`, noOrder) }},
	{"short members in no order", func(n int) []byte { return members(n, "%04x", noOrder) }},
	{"objects in each other, out of order", func(n int) []byte { return list(column(300, `{"b":`, `,"a":0}`), n) }},
	{"large objects in each other, out of order", largeObjects},
	{"one string", func(n int) []byte { return []byte(`"` + strings.Repeat("a", n-2) + `"`) }},
	{"white space", func(n int) []byte { return append(bytes.Repeat([]byte(" "), n-2), "{}"...) }},
}

// noOrder maps i to a place far from that of its neighbours, of n.
func noOrder(i, n int) int { return i * 7_368_787 % n }

func column(depth int, begin, end string) string {
	return strings.Repeat(begin, depth) + "0" + strings.Repeat(end, depth)
}

// largeObjects are ten objects of many members in each other, the next one first.
func largeObjects(size int) []byte {
	const levels = 10
	data := []byte("0")
	for range levels {
		more := members(size/levels, "%04x", noOrder)
		data = append(append([]byte(`{"z":`), data...), append([]byte{','}, more[1:]...)...)
	}
	return data
}

// TestMemoryInProportion parses and writes all shapes. All that Parse allocates, what it
// drops too, is at most three times the size: the text, where members are in it, and
// what is put in order.
func TestMemoryInProportion(t *testing.T) {
	for _, s := range sample.Pick(t, 6, shapes) {
		t.Run(s.name, func(t *testing.T) { checkMemory(t, s, 1<<20) })
	}
}

// TestMemoryOfLargeArtifacts parses and writes them at the size that most artifacts
// may have. The sample takes one of them, and less of it.
func TestMemoryOfLargeArtifacts(t *testing.T) {
	for _, s := range sample.Pick(t, 1, shapes) {
		t.Run(s.name, func(t *testing.T) { checkMemory(t, s, sample.Of(4, 16, 16)<<20) })
	}
}

func checkMemory(t *testing.T, s shape, size int) {
	t.Helper()
	data := s.data(size)
	var value canonjson.Value
	allocated := allocatedBy(func() { value = mustParse(t, data) })
	if allocated > uint64(3*len(data)+64<<10) {
		t.Errorf("Parse allocates %.1f times the size", float64(allocated)/float64(size))
	}
	allocated = allocatedBy(func() { discard(t, value) })
	if allocated > uint64(4*size) {
		t.Errorf("WriteTo allocates %.1f times the size", float64(allocated)/float64(size))
	}
}

func discard(t *testing.T, value canonjson.Value) {
	t.Helper()
	if _, err := value.WriteTo(io.Discard); err != nil {
		t.Error(err)
	}
}

// list is an array of about size bytes.
func list(element string, size int) []byte {
	n := size / (len(element) + 1)
	return []byte("[" + strings.Repeat(element+",", n-1) + element + "]")
}

// members is an object of about size bytes with many short members.
func members(size int, name string, number func(i, n int) int) []byte {
	name = `,"` + name + `":0`
	n := size / len(fmt.Sprintf(name, 0))
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintf(&b, name, number(i, n))
	}
	return append(append([]byte("{"), b.Bytes()[1:]...), '}')
}

// TestTimeInProportion: sorting many members, and finding the last of them,
// takes no square of their number.
func TestTimeInProportion(t *testing.T) {
	data := members(2<<20, "%07x", func(i, n int) int { return n - i })
	begin := cpuTime(t)
	object, _ := mustParse(t, data).Object()
	if object.Len() < 150_000 {
		t.Fatalf("only %d members", object.Len())
	}
	if _, ok := object.Get("zzz"); ok {
		t.Error("found what is not there")
	}
	if took := cpuTime(t) - begin; took > 20*time.Second {
		t.Errorf("took %v", took)
	}
}

// TestUnsortedDepth: objects that are out of order, one in the other, cost what others
// of the same size cost. Each shape is compared with the same text in order.
func TestUnsortedDepth(t *testing.T) {
	const levels = 510
	size := sample.Of(4, 8, 8) << 20
	column := func(first, second string) []byte {
		content := `"` + strings.Repeat("x", size) + `"`
		return []byte(strings.Repeat(`{"`+first+`":`, levels) + content + strings.Repeat(`,"`+second+`":0}`, levels))
	}
	sorted, unsorted := column("a", "b"), column("b", "a")
	cost := func(data []byte) (time.Duration, uint64) {
		least, allocated := time.Hour, uint64(0)
		for range 3 {
			begin := cpuTime(t)
			allocated = allocatedBy(func() { mustParse(t, data) })
			least = min(least, cpuTime(t)-begin)
		}
		return least, allocated
	}
	plain, _ := cost(sorted)
	took, allocated := cost(unsorted)
	if took > 10*plain+50*time.Millisecond || allocated > 4*uint64(size) {
		t.Errorf("out of order it takes %v and allocates %d bytes, in order %v", took, allocated, plain)
	}
	if got, want := mustParse(t, unsorted).Append(nil), strings.Count(string(unsorted), ""); len(got)+1 != want {
		t.Errorf("%d bytes become %d", want-1, len(got))
	}
}

// TestPutAside: large objects that are out of order, in objects and arrays that may be
// so too, are written as the slow writer writes them.
func TestPutAside(t *testing.T) {
	rng := sample.Rand(t)
	var grow func(b *strings.Builder, depth int)
	grow = func(b *strings.Builder, depth int) {
		switch kind := rng.IntN(6); {
		case depth == 0 || kind == 0 || b.Len() > 200_000:
			fmt.Fprintf(b, `"%s\u0000\n\ud83d\udca1"`, strings.Repeat("x", rng.IntN(900)))
		case kind == 1:
			b.WriteByte('[')
			for i := range rng.IntN(5) {
				if i > 0 {
					b.WriteString(" , ")
				}
				grow(b, depth-1)
			}
			b.WriteByte(']')
		default:
			b.WriteString("{ ")
			for i, key := range rng.Perm(rng.IntN(6)) {
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(b, `"%d\u0001":`, key)
				grow(b, depth-1)
			}
			b.WriteByte('}')
		}
	}
	for tried, large := 0, 0; tried < sample.Of(40, 3000, 30_000) || large == 0; tried++ {
		var b strings.Builder
		grow(&b, 6)
		if b.Len() > 100_000 {
			large++
		}
		checkCanonical(t, []byte(b.String()), mustParse(t, []byte(b.String())))
		if t.Failed() {
			t.FailNow()
		}
	}
}

// TestWriterFails: an error of the writer is returned, with the number of bytes written.
func TestWriterFails(t *testing.T) {
	value := mustParse(t, list("123456789", 1<<20))
	for _, room := range []int64{0, 1, 40_000, 1 << 19} {
		n, err := value.WriteTo(&fullWriter{room})
		if err != io.ErrShortBuffer || n != room {
			t.Errorf("room for %d: wrote %d, error %v", room, n, err)
		}
		if err := value.WriteASCII(&fullWriter{room}); err != io.ErrShortBuffer {
			t.Errorf("room for %d: WriteASCII gives %v", room, err)
		}
	}
}

// fullWriter takes as many bytes as it has room for.
type fullWriter struct{ room int64 }

func (w *fullWriter) Write(p []byte) (int, error) {
	n := min(w.room, int64(len(p)))
	w.room -= n
	if n < int64(len(p)) {
		return int(n), io.ErrShortBuffer
	}
	return int(n), nil
}

// TestTooLarge: what offsets of 32 bits cannot tell apart is rejected before it
// is looked at. The pages of this input are never touched.
func TestTooLarge(t *testing.T) {
	data, err := syscall.Mmap(-1, 0, 4<<30, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = syscall.Munmap(data) }()
	if _, err := canonjson.Parse(data); err == nil || !strings.Contains(err.Error(), "4 GiB") {
		t.Errorf("error %v", err)
	}
}
