package fusemount

import (
	"fmt"
	"io"
	"os"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// TestMountLive: the content changes thousands of times a second, while many readers read it in
// different ways. Each open sees one content, whole.
func TestMountLive(t *testing.T) {
	for name, o := range map[string]orders{"as it is": {}, "old kernel": {AskOpen: true}, "fusermount3": {Helper: true}} {
		t.Run(name, func(t *testing.T) { liveUnderReaders(t, serveVolumeSetAs(t, o)) })
	}
	t.Run("one processor", func(t *testing.T) { liveUnderReaders(t, serveVolumeSetAs(t, orders{}, "GOMAXPROCS=1")) })
}

func liveUnderReaders(t *testing.T, s *volumeSetView) {
	var group sync.WaitGroup
	for i := range 12 {
		path := s.at([]string{"now", ".spectrum/live"}[i%2])
		group.Go(func() {
			for range sample.Of(10, 100, 100) {
				if err := readLive(path, i/2%3); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	number := s.inode("now")
	if again := s.inode("now"); again != number || s.inode(".spectrum/live") == number {
		t.Errorf("its inode number is %x, then %x", number, again)
	}
	s.checkInodes(".spectrum")
	s.forgets()
	if log := s.log(); log != "" {
		t.Errorf("log: %s", log)
	}
	s.end()
}

// readLive opens a live file, lets the content change, and reads: all at once, in small pieces from
// the end, or through a mapping.
func readLive(path string, way int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	data := make([]byte, info.Size())
	switch way {
	case 0:
		data, err = io.ReadAll(f)
	case 1:
		for off := len(data) / 1000 * 1000; off >= 0 && err == nil; off -= 1000 {
			if _, err = f.ReadAt(data[off:min(off+1000, len(data))], int64(off)); err == nil {
				err = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
			}
		}
	case 2:
		var mapped []byte
		if mapped, err = unix.Mmap(int(f.Fd()), 0, len(data), unix.PROT_READ, unix.MAP_SHARED); err == nil {
			copy(data, mapped)
			err = unix.Munmap(mapped)
		}
	}
	if err != nil {
		return fmt.Errorf("way %d: %w", way, err)
	}
	if int64(len(data)) != info.Size() {
		return fmt.Errorf("way %d: %d bytes, stat says %d", way, len(data), info.Size())
	}
	_, err = numberOf(data)
	return err
}

// forgets waits until the server holds no snapshot. It makes the kernel drop its caches now and
// then, which slows down the whole machine.
func (s *volumeSetView) forgets() {
	s.t.Helper()
	asked := 0
	eventually(s.t, "all snapshots are forgotten", func() bool {
		if err := s.cmd.Process.Signal(unix.SIGUSR1); err != nil {
			s.t.Fatal(err)
		}
		var all, n int
		if _, err := fmt.Sscan(s.line("holds"), &all, &n); err != nil {
			s.t.Fatal(err)
		}
		if asked++; all > 0 && asked%200 == 20 {
			if err := os.WriteFile("/proc/sys/vm/drop_caches", []byte("2"), 0); err != nil {
				s.t.Fatal(err)
			}
		}
		return all == 0
	})
}

// TestMountLiveMovesOn: an open after a change sees the change, an earlier one does not, and the
// result of a stat before the open does not matter.
func TestMountLiveMovesOn(t *testing.T) {
	s := serveVolumeSet(t)
	held, err := os.Open(s.at("now"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	last := int64(-1)
	for range 20 {
		eventually(t, "a newer content", func() bool {
			data, err := os.ReadFile(s.at("now"))
			if err != nil {
				t.Fatal(err)
			}
			n, err := numberOf(data)
			if err != nil || n < last {
				t.Fatalf("%d after %d, %v", n, last, err)
			}
			moved := n > last
			last = n
			return moved
		})
	}
	data, err := io.ReadAll(held)
	if n, wrong := numberOf(data); err != nil || wrong != nil || n >= last {
		t.Errorf("the one that was held: %d, %v, %v", n, err, wrong)
	}
	if got := client(t, "tail", "-n", "1", s.at(".spectrum/live")); len(got) != 16 {
		t.Errorf("tail: %q", got)
	}
	s.end()
}
