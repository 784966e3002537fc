package disk

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"golang.org/x/sys/unix"
)

// A thinStore is an ext4 on an image on a tmpfs that has less than the image
// promises: writing succeeds, and fsync fails.
type thinStore struct {
	*volume
	below *volume // the tmpfs
	image string
}

const thinSize = 16 << 20

// newThinStore makes the file system whole, and then takes from its image every
// block that is free in it. What it has, its tables and directories (they lie in
// the inodes) and if wanted its journal, stays writable; new blocks are those
// that the store may not have.
func newThinStore(t *testing.T, withJournal bool) *thinStore {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting needs root")
	}
	dir := t.TempDir()
	s := &thinStore{below: &volume{kind: "store", path: filepath.Join(dir, "store")}}
	harness.Must(t, os.Mkdir(s.below.path, 0o755))
	s.below.mount(t, "-t", "tmpfs", "-o", fmt.Sprintf("size=%d", thinSize+1<<20), "tmpfs")
	s.below.prepare(t)
	s.image = filepath.Join(s.below.path, "image")
	harness.Must(t, os.WriteFile(s.image, nil, 0o600))
	harness.Must(t, os.Truncate(s.image, thinSize))
	run(t, "mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-I", "1024", "-O", "inline_data",
		"-E", "nodiscard,lazy_itable_init=0", s.image)
	s.volume = &volume{kind: "thin ext4", path: filepath.Join(dir, "mnt")}
	harness.Must(t, os.Mkdir(s.path, 0o755))
	s.punch(t, withJournal)
	s.mount(t, "-o", "loop,nodiscard", s.image)
	return s
}

var freeRange = regexp.MustCompile(`^  Free blocks: (.*)$`)

// punch makes holes in the image where the file system has free blocks.
func (s *thinStore) punch(t *testing.T, withJournal bool) {
	t.Helper()
	out, err := exec.Command("dumpe2fs", s.image).Output()
	harness.Must(t, err)
	f, err := os.OpenFile(s.image, os.O_WRONLY, 0)
	harness.Must(t, err)
	defer f.Close()
	if withJournal { // mkfs leaves holes in it
		harness.Must(t, unix.Fallocate(int(f.Fd()), 0, 0, thinSize))
	}
	punched := 0
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		m := freeRange.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		for _, r := range regexp.MustCompile(`(\d+)-(\d+)`).FindAllStringSubmatch(m[1], -1) {
			from, err := strconv.ParseInt(r[1], 10, 64)
			harness.Must(t, err)
			to, err := strconv.ParseInt(r[2], 10, 64)
			harness.Must(t, err)
			const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
			harness.Must(t, unix.Fallocate(int(f.Fd()), mode, from*4096, (to-from+1)*4096))
			punched++
		}
	}
	if punched == 0 {
		t.Fatal("dumpe2fs names no free blocks")
	}
}

// remount lets go of all that is cached.
func (s *thinStore) remount(t *testing.T) {
	t.Helper()
	unmount(t, s.path)
	run(t, "mount", "-o", "loop,nodiscard", s.image, s.path)
}

// lies tells whether a write into a new file succeeds though its sync fails.
func (s *thinStore) lies(t *testing.T) bool {
	t.Helper()
	name := filepath.Join(s.path, "probe")
	f, err := os.Create(name)
	harness.Must(t, err)
	_, err = f.Write(make([]byte, 1<<20))
	harness.Must(t, err)
	err = f.Sync()
	harness.Must(t, errors.Join(f.Close(), os.Remove(name)))
	return err != nil
}

// thinSteps commits into stores that hold less and less of what they have said
// they took. failed looks at one that could not be completed.
func thinSteps(t *testing.T, withJournal bool, failed func(*thinStore, *harness.Site, harness.Reply, usage)) {
	t.Helper()
	p := harness.New(t, large())
	ends := map[string]int{}
	const levels = 8
	for level := range int64(levels) {
		s := newThinStore(t, withJournal)
		site := p.Site(t, filepath.Join(s.path, "root"))
		free := s.free(t)
		s.below.leaveBytes(t, level*512<<10)
		if withJournal && level == 0 && !s.lies(t) {
			t.Error("the store keeps what it takes: nothing is tested")
		}
		r := site.Commit(t, nil)
		ends[r.Answer.Code]++
		if r.Status == 0 {
			s.remount(t)
			want(t, site, harness.After)
		} else {
			failed(s, site, r, free)
		}
		if t.Failed() {
			t.Fatalf("level %d: %v", level, r)
		}
	}
	t.Logf("%d levels, %v", levels, ends)
	if ends[""] == 0 || len(ends) < 2 {
		t.Errorf("the sweep saw only one end")
	}
}

// TestOverCommitted: the data is lost, the file system lives. The root must be
// as before, now and after a remount.
func TestOverCommitted(t *testing.T) {
	thinSteps(t, true, func(s *thinStore, site *harness.Site, r harness.Reply, free usage) {
		wantFull(t, r)
		want(t, site, harness.Before)
		s.wantFree(t, free)
		s.below.release(t)
		s.remount(t)
		want(t, site, harness.Before)
		s.lastingly(t, site)
	})
}

// TestOverCommittedJournal: the file system cannot write its journal and turns
// read-only, so that a rollback may be impossible. With space again, recover
// must reach the state before.
func TestOverCommittedJournal(t *testing.T) {
	thinSteps(t, false, func(s *thinStore, site *harness.Site, r harness.Reply, _ usage) {
		if r.Answer.Code != harness.RollbackFailed {
			wantFull(t, r)
		}
		s.below.release(t)
		s.remount(t)
		if r := site.Recover(t, nil); r.Status != 0 {
			t.Error(r)
		}
		if _, err := site.Recovered(t, harness.Before); err != nil {
			t.Error(err)
		}
		s.lastingly(t, site)
	})
}

// lastingly wants a commit in a store with room to succeed and to last.
func (s *thinStore) lastingly(t *testing.T, site *harness.Site) {
	t.Helper()
	again(t, site)
	s.remount(t)
	want(t, site, harness.After)
}
