package blocklog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestMain(m *testing.M) { os.Exit(Main(m.Run)) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLogRoundTrip(t *testing.T) {
	want := []Record{{Write, 1 << 40, []byte("data")}, {Kind: Flush, Data: []byte{}}, {Mark, 0, []byte("durable")}}
	var b []byte
	for _, r := range want {
		b = r.appendTo(b)
	}
	path := filepath.Join(t.TempDir(), "log")
	whole := map[int]bool{0: true, 17: true, 30: true, len(b): true}
	for n := range len(b) + 1 {
		must(t, os.WriteFile(path, b[:n], 0o600))
		got, err := ReadLog(path)
		switch {
		case !whole[n] && !errors.Is(err, io.ErrUnexpectedEOF):
			t.Errorf("log cut at %d: %v, %v", n, got, err)
		case whole[n] && err != nil:
			t.Errorf("log cut at %d: %v", n, err)
		case n == len(b) && !reflect.DeepEqual(got, want):
			t.Errorf("got %v, want %v", got, want)
		}
	}
	if n := Find(want, "durable"); n != 3 {
		t.Errorf("the mark is at %d", n)
	}
	if n := Find(want, "no such mark"); n != 0 {
		t.Errorf("a mark that is not there is at %d", n)
	}
}

// TestReplay: what was flushed is there, what was not may be lost, and nothing
// that comes later is there.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	base, out := filepath.Join(dir, "base"), filepath.Join(dir, "out")
	disk := bytes.Repeat([]byte("b"), 3*blockSize)
	must(t, os.WriteFile(base, append(disk, make([]byte, 5*blockSize)...), 0o600))
	records := []Record{
		{Write, blockSize - 2, []byte("1111")}, {Kind: Flush},
		{Write, 6*blockSize + 7, []byte("2222")}, {Write, 9, []byte("3333")}, {Kind: Mark},
	}
	r, lost := NewReplay(base, records), map[int]int{}
	for _, n := range []int{5, 4, 3, 2, 1, 0, 5} {
		for seed := range uint64(32) {
			count, err := r.Image(out, n, seed)
			must(t, err)
			got, err := os.ReadFile(out)
			must(t, err)
			has := func(text string) bool { return bytes.Contains(got, []byte(text)) }
			if len(got) != 8*blockSize || seed == 0 && count != 0 {
				t.Fatalf("%d bytes, %d lost", len(got), count)
			}
			if n >= 2 && !has("b1111b") || n == 0 && has("1") || n < 3 && has("2222") || n < 4 && has("3333") {
				t.Errorf("after %d records with seed %d", n, seed)
			}
			if kept := bytes.Count(got, []byte("2222")) + bytes.Count(got, []byte("3333")); n == 5 && kept+count != 2 {
				t.Errorf("%d kept, %d lost", kept, count)
			}
			if n == 5 {
				lost[count]++
			}
		}
	}
	if got := []int{Unflushed(records[:1]), Unflushed(records[:2]), Unflushed(records)}; !reflect.DeepEqual(got, []int{1, 0, 2}) {
		t.Errorf("unflushed: %v", got)
	}
	if len(lost) != 3 {
		t.Errorf("64 images lost none, one or both: %v", lost)
	}
}

// TestTornWrites: with an odd seed a write may be there in part, with an even one not.
func TestTornWrites(t *testing.T) {
	dir := t.TempDir()
	base, out := filepath.Join(dir, "base"), filepath.Join(dir, "out")
	must(t, os.WriteFile(base, make([]byte, 8*blockSize), 0o600))
	r := NewReplay(base, []Record{{Write, 100, bytes.Repeat([]byte("x"), 3*blockSize)}})
	torn := map[bool]int{}
	for seed := range uint64(64) {
		_, err := r.Image(out, 1, seed)
		must(t, err)
		got, err := os.ReadFile(out)
		must(t, err)
		if n := bytes.Count(got, []byte("x")); n != 0 && n != 3*blockSize {
			torn[seed%2 == 1]++
		}
	}
	if torn[false] != 0 || torn[true] == 0 {
		t.Errorf("torn with even seeds %d times, with odd ones %d times", torn[false], torn[true])
	}
}

// TestStore sends a file system through: a file that was synced is on every
// image after that, one that was not is missing on some.
func TestStore(t *testing.T) {
	Need(t)
	dir := t.TempDir()
	base, mnt, img := filepath.Join(dir, "base"), filepath.Join(dir, "mnt"), filepath.Join(dir, "img")
	must(t, os.WriteFile(base, nil, 0o600))
	must(t, os.Truncate(base, 16<<20))
	must(t, os.Mkdir(mnt, 0o700))
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,nodiscard", base).CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	before, err := os.ReadFile(base)
	must(t, err)
	s := Serve(t, base)
	must(t, Mount(s.Disk, mnt, "ext4", ""))
	t.Cleanup(func() { Unmount(mnt) }) //nolint:errcheck // it is unmounted but after a failure
	f, err := os.Create(filepath.Join(mnt, "synced"))
	must(t, err)
	_, err = f.WriteString("synced")
	must(t, errors.Join(err, f.Sync(), f.Close()))
	s.Mark(t, "synced")
	must(t, os.WriteFile(filepath.Join(mnt, "written"), []byte("written"), 0o600))
	must(t, Unmount(mnt))
	records := s.Stop(t)
	if after, err := os.ReadFile(base); err != nil || !bytes.Equal(before, after) {
		t.Error("the store wrote to the image it was given")
	}
	from, replay, images, missing := Find(records, "synced"), NewReplay(base, records), 0, 0
	for n := from; n <= len(records); n++ {
		_, err := replay.Image(img, n, uint64(n))
		must(t, err)
		must(t, Mount(img, mnt, "ext4", ""))
		if got, err := os.ReadFile(filepath.Join(mnt, "synced")); string(got) != "synced" {
			t.Errorf("after %d records: %q, %v", n, got, err)
		}
		if _, err := os.Stat(filepath.Join(mnt, "written")); err != nil {
			missing++
		}
		images++
		must(t, Unmount(mnt))
	}
	t.Logf("%d records, %d images, the second file missing on %d", len(records), images, missing)
	if from == 0 || missing == 0 || missing == images {
		t.Error("the log does not show the moment of the sync")
	}
}

// TestStoppedWhileMounted: a test that fails leaves its mount on the store; the
// server ends nevertheless.
func TestStoppedWhileMounted(t *testing.T) {
	Need(t)
	base := filepath.Join(t.TempDir(), "base")
	must(t, os.WriteFile(base, nil, 0o600))
	must(t, os.Truncate(base, 1<<20))
	s := Serve(t, base)
	f, err := os.OpenFile(s.Disk, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	must(t, s.stop())
	mounts, err := os.ReadFile("/proc/self/mounts")
	must(t, err)
	if strings.Contains(string(mounts), s.dir) {
		t.Error("the store is still mounted")
	}
}
