package attack

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// flip exchanges what is at two names of a directory, again and again, until the end of the test
// or of what it returns.
func flip(t *testing.T, dir, a, b string) (end func()) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	harness.Must(t, err)
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-stop:
				_ = unix.Close(fd)
				return
			default:
				_ = unix.Renameat2(fd, a, fd, b, unix.RENAME_EXCHANGE)
			}
		}
	})
	end = sync.OnceFunc(func() { close(stop); work.Wait() })
	t.Cleanup(end)
	return end
}

// TestFlips: another user flips names in a directory of his all the time: a file and a directory,
// a file and a link, two directories. The directory itself stays. The restore is done, of the
// whole root and of one name; what was in the way is kept, and nothing is lost.
func TestFlips(t *testing.T) {
	needRoot(t)
	made := map[string]func(path string) error{
		"directory": func(path string) error { return os.MkdirAll(filepath.Join(path, "in"), 0o755) },
		"link":      func(path string) error { return os.Symlink("/etc/passwd", path) },
		"file":      func(path string) error { return os.WriteFile(path, []byte("other"), 0o644) },
		"fifo":      func(path string) error { return unix.Mkfifo(path, 0o644) },
	}
	for _, kind := range []string{"directory", "link", "file", "fifo"} {
		for _, name := range sample.Pick(t, 2, []string{"a", "gone", "b"}) {
			t.Run(kind+" "+name, func(t *testing.T) {
				for range sample.Of(1, 5, 20) {
					l := newLodger(t, 0)
					if name == "b" {
						l.write(t, "u/b", "b again")
					}
					harness.Must(t, made[kind](filepath.Join(l.root, "u/other")))
					own(t, alice, filepath.Join(l.root, "u"))
					end := flip(t, filepath.Join(l.root, "u"), name, "other")
					args := []string{"snapshot", "restore", l.snapshot}
					if name == "a" && kind != "fifo" {
						args = append(args, "u/"+name)
					}
					r := l.p.Run(t, nil, args...)
					end()
					if r.Status != 0 && !(r.Status == 1 && strings.Contains(r.Stderr, fmt.Sprintf("user %d", alice))) {
						t.Error(r)
					}
					if found := slices.Collect(maps.Values(filesIn(t, l.root))); r.Status == 0 && name != "gone" && !slices.Contains(found, l.then["u/"+name]) {
						t.Errorf("%q is nowhere as it was: %v", name, r)
					}
					l.p.Must(t, "recover", l.root)
				}
			})
		}
	}
}
