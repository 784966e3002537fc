package fusemount

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"golang.org/x/sys/unix"
)

// A view must not be used by the process that serves it (the Go scheduler can
// run out of threads to answer itself with), so the tests serve it from a child:
// this test binary again, with its orders in the environment.
const childEnv = "SPECTRUM_FUSEFS_TEST_CHILD"

// orders are what a child is to do.
type orders struct {
	Scenario   string
	Source     string // directory to serve
	Mountpoint string
	Grace      time.Duration
	NoFile     uint64        // RLIMIT_NOFILE
	Helper     bool          // mount through fusermount3 although root
	AskOpen    bool          // as with a kernel that requires OPEN and OPENDIR answered
	Exec       bool          // mount option
	AllowOther bool          // mount option
	Delay      time.Duration // of each read of a content
	Cycles     int
}

func childMain(text string) int {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return childFailed(err)
	}
	if o.NoFile > 0 {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: o.NoFile, Max: o.NoFile}); err != nil {
			return childFailed(err)
		}
	}
	scenario := map[string]func(orders) error{
		"serve":        childServe,
		"cycles":       childCycles,
		"namespace":    childNamespace,
		"unprivileged": childUnprivileged,
		"volume set":   childVolumeSet,
	}[o.Scenario]
	if err := scenario(o); err != nil {
		return childFailed(err)
	}
	return 0
}

func childFailed(err error) int {
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}

// system is hostSystem, bent as ordered.
func (o orders) system() system {
	sys := hostSystem()
	if o.Helper {
		sys.direct = false
	}
	sys.answerOpen = o.AskOpen
	return sys
}

// childServe serves a view until it is unmounted or a signal arrives; a second signal ends the
// grace period. The command does the same.
func childServe(o orders) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
	v, err := childMount(o)
	if err != nil {
		return err
	}
	fmt.Println("ready", v.Path())
	select {
	case <-v.Done():
		fmt.Println("ended")
		return nil
	case <-signals:
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-signals
		cancel()
	}()
	start := time.Now()
	if err := v.Unmount(ctx, o.Grace); err != nil {
		return err
	}
	v.Wait()
	fmt.Println("unmounted", time.Since(start).Milliseconds())
	return nil
}

func childMount(o orders) (*View, error) {
	tree, err := treeOf(o)
	if err != nil {
		return nil, err
	}
	return mountWith(o.system(), tree, o.Mountpoint, Options{
		Source:     "test, source \\ with\n odd characters",
		Exec:       o.Exec,
		AllowOther: o.AllowOther,
		Log:        slog.New(slog.NewTextHandler(os.Stderr, nil)),
		OnTamper:   func(path string, err error) { fmt.Println("tamper", path) },
	})
}

// childCycles mounts and unmounts again and again, and compares what is left of
// it in this process with what was there before.
func childCycles(o orders) error {
	tree, err := treeOf(o)
	if err != nil {
		return err
	}
	cycle := func() error {
		v, err := mountWith(o.system(), tree, o.Mountpoint, Options{})
		if err != nil {
			return err
		}
		if err := runClient("sh", "-c", `find "$0" -type f -exec cat {} + >/dev/null && ls -lR "$0" >/dev/null`, v.Path()); err != nil {
			return err
		}
		return v.Unmount(context.Background(), 0)
	}
	if err := cycle(); err != nil { // the runtime makes itself at home
		return err
	}
	before := takeInventory(o)
	for i := range o.Cycles {
		if err := cycle(); err != nil {
			return fmt.Errorf("cycle %d: %w", i, err)
		}
	}
	var after inventory
	for range 10_000 { // goroutines may take a moment to be gone, those of the first cycle too
		if after = takeInventory(o); after.noMoreThan(before) {
			fmt.Println("same", before)
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("before %+v, after %+v", before, after)
}

// inventory is what a mount could leave behind.
type inventory struct{ goroutines, descriptors, mounts int }

func takeInventory(o orders) inventory {
	fds, _ := os.ReadDir("/proc/self/fd")
	return inventory{runtime.NumGoroutine(), len(fds), len(spectrumMounts(o.Mountpoint))}
}

func (i inventory) noMoreThan(j inventory) bool {
	return i.goroutines <= j.goroutines && i.descriptors <= j.descriptors && i.mounts <= j.mounts
}

// treeOf describes a directory, each file with a digest of every block as it is
// now: what changes later does not check any more.
func treeOf(o orders) (*fusefs.Tree, error) {
	files, err := describeAll(o.Source, o.Delay)
	if err != nil {
		return nil, err
	}
	return fusefs.NewTree(slices.Values(files), nil)
}

func describeAll(dir string, delay time.Duration) (files []fusefs.File, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := describe(path, delay)
		f.Path, _ = filepath.Rel(dir, path)
		files = append(files, f)
		return err
	})
	return files, err
}

const testBlock = 4096

func describe(path string, delay time.Duration) (fusefs.File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return fusefs.File{}, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return fusefs.File{}, err
	}
	var sums [][32]byte
	for off := 0; off < len(data); off += testBlock {
		sums = append(sums, sha256.Sum256(data[off:min(off+testBlock, len(data))]))
	}
	return fusefs.File{
		Size: st.Size(), Mode: st.Mode(), ModTime: st.ModTime(),
		Source: fusefs.SourceFunc(func() (fusefs.Content, error) {
			f, err := os.Open(path)
			if err != nil {
				return nil, err
			}
			return &checked{f, sums, delay}, nil
		}),
	}, nil
}

// checked is a Content that checks each block before it returns any of it.
type checked struct {
	*os.File
	sums  [][32]byte
	delay time.Duration
}

func (c *checked) ReadAt(p []byte, off int64) (int, error) {
	time.Sleep(c.delay)
	first := off / testBlock
	last := (off + int64(len(p)) - 1) / testBlock
	buf := make([]byte, (last-first+1)*testBlock)
	n, err := c.File.ReadAt(buf, first*testBlock)
	if err != nil && err != io.EOF {
		return 0, err
	}
	for i := first; i <= last; i++ {
		lo := min(int(i-first)*testBlock, n)
		if sha256.Sum256(buf[lo:min(lo+testBlock, n)]) != c.sums[i] {
			return 0, errors.New("block " + strconv.FormatInt(i, 10) + " is not what was signed")
		}
	}
	return copy(p, buf[off-first*testBlock:n]), nil
}

// unmountNow is a context that leaves no grace.
func unmountNow() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}
