package view

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Readers are processes of their own: this test binary again, with the path of
// its orders in the environment.
const childEnv = "SPECTRUM_VIEW_TEST_CHILD"

const errIO = syscall.EIO

// orders are what a child is to do.
type orders struct {
	Role    string // which of roles
	View    string
	Expect  expectation
	Threads int
	Reads   int   // of each thread; 0: until it is stopped, or a read fails
	Pages   bool  // read 4 KiB each, and not up to 256 KiB
	Hold    bool  // open all files before the first read
	Off     int64 // of the byte that is touched
	Shared  bool  // how it is mapped
}

// A tally is what became of the readers of a child.
type tally struct {
	Reads, EIO int
	Wrong      []string       // what no reader may see, the first few
	Ends       map[string]int // the errors that ended readers
}

var roles = map[string]func(orders) error{
	"read": childRead, "touch": childTouch, "greet": childGreet, "posix": childPosix,
}

func childMain(path string) int {
	var o orders
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err == nil {
		err = roles[o.Role](o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// childGreet shows that this very file can be executed.
func childGreet(orders) error {
	_, err := fmt.Println("hello from the view")
	return err
}

// childRead says ready, waits for a line, reads, says reading when each thread
// has done its first read, and prints the tally. A second line stops threads
// that have no number of reads.
func childRead(o orders) error {
	r := &readers{orders: o, sum: tally{Ends: map[string]int{}}}
	for name := range o.Expect.Sizes {
		r.names = append(r.names, name)
	}
	slices.Sort(r.names)
	if err := r.hold(); err != nil {
		return err
	}
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	lines.Scan()
	go func() {
		lines.Scan()
		r.stop.Store(true)
	}()
	var first, all sync.WaitGroup
	first.Add(o.Threads)
	for i := range o.Threads {
		all.Go(func() { r.thread(i, &first) })
	}
	first.Wait()
	fmt.Println("reading")
	all.Wait()
	return json.NewEncoder(os.Stdout).Encode(r.sum)
}

// readers are the threads of one child.
type readers struct {
	orders
	names []string
	held  map[string]*os.File
	stop  atomic.Bool

	mu  sync.Mutex
	sum tally
}

// hold opens all files. Who reads until there is an error must not be served
// from the kernel's cache, which outlives the server.
func (r *readers) hold() error {
	if !r.Hold {
		return nil
	}
	r.held = map[string]*os.File{}
	for i, name := range r.names {
		f, err := r.open(name, r.Reads == 0 || i%2 == 0)
		if err != nil {
			return err
		}
		r.held[name] = f
	}
	return nil
}

// open opens a file without read-ahead; and, when it is direct, asks the server in any case.
func (r *readers) open(name string, direct bool) (*os.File, error) {
	flags := unix.O_RDONLY | unix.O_CLOEXEC
	if direct {
		flags |= unix.O_DIRECT
	}
	fd, err := unix.Open(filepath.Join(r.View, name), flags, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	return f, unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM)
}

func (r *readers) thread(i int, first *sync.WaitGroup) {
	random := rand.New(rand.NewSource(int64(i)))
	once := sync.OnceFunc(first.Done)
	defer once()
	for n := 0; (r.Reads == 0 || n < r.Reads) && !r.stop.Load(); n++ {
		// With as many reads in all as there are files, each is read.
		name := r.names[(n*r.Threads+i)%len(r.names)]
		err := r.one(random, name)
		if err != nil && r.Reads == 0 {
			r.ended(err)
			return
		}
		if err != nil {
			r.wrong(err)
		}
		once()
	}
}

// one opens, stats and reads a part of a file. An error is one that the
// expectation does not allow.
func (r *readers) one(random *rand.Rand, name string) error {
	f, err := r.held[name], error(nil)
	if f == nil {
		if f, err = r.open(name, random.Intn(2) == 0); err != nil {
			return err
		}
		defer f.Close()
	}
	size := r.Expect.Sizes[name]
	if info, err := f.Stat(); err != nil || info.Size() != size {
		return fmt.Errorf("%s: %v: %w", name, info, err)
	}
	off := random.Int63n(size + size/8 + 1)
	buf := make([]byte, 1+random.Intn(256<<10))
	if r.Pages {
		off, buf = off-off%4096, make([]byte, 4096)
	}
	n, err := fill(f, buf, off)
	r.count(err)
	want := int(max(0, min(int64(len(buf)), size-off)))
	return r.Expect.judge(name, off, want, buf[:n], err)
}

// fill reads until the buffer is full, the file ends, or a read fails.
func fill(f *os.File, buf []byte, off int64) (n int, err error) {
	for n < len(buf) {
		m, err := unix.Pread(int(f.Fd()), buf[n:], off+int64(n))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if m <= 0 {
			return n, err
		}
		n += m
	}
	return n, nil
}

func (r *readers) count(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Reads++
	if errors.Is(err, errIO) {
		r.sum.EIO++
	}
}

// ended keeps the error that ended a reader. Bytes that are wrong are that in
// any case.
func (r *readers) ended(err error) {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		r.wrong(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.Ends[errno.Error()]++
}

func (r *readers) wrong(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sum.Wrong) < 10 {
		r.sum.Wrong = append(r.sum.Wrong, err.Error())
	}
}
