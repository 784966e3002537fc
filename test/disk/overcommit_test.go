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
	"github.com/spectrumfs/spectrum/test/sample"
	"golang.org/x/sys/unix"
)

// A thinStore is an ext4 on an image on a tmpfs that has less than the image
// promises: writing succeeds, and fsync fails.
type thinStore struct {
	*harness.Volume
	below *harness.Volume // the tmpfs
}

const thinSize = 16 << 20

// thin is the file system: fresh, since a copy would have holes in its tables.
var thin = func() harness.Format {
	f := harness.Ext4With("thin ext4", thinSize, "-b", "4096", "-I", "1024", "-O", "inline_data", "-E", "nodiscard,lazy_itable_init=0")
	f.Fresh, f.Options = true, "nodiscard"
	return f
}()

// newThinStore makes the file system whole, and then takes from its image every
// block that is free in it. What it has, its tables and directories (they lie in
// the inodes) and if wanted its journal, stays writable; new blocks are those
// that the store may not have.
func newThinStore(t *testing.T, withJournal bool) *thinStore {
	t.Helper()
	below := filled(t, harness.TmpfsWith("store", fmt.Sprintf("size=%d", thinSize+1<<20)))
	s := &thinStore{harness.NewVolumeIn(t, below.Path, thin), below}
	s.punch(t, withJournal)
	s.Mount(t)
	return s
}

var freeRange = regexp.MustCompile(`^  Free blocks: (.*)$`)

// punch makes holes in the image where the file system has free blocks.
func (s *thinStore) punch(t *testing.T, withJournal bool) {
	t.Helper()
	out, err := exec.Command("dumpe2fs", s.Image).Output()
	harness.Must(t, err)
	f, err := os.OpenFile(s.Image, os.O_WRONLY, 0)
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

// lies reports whether a write into a new file succeeds though its sync fails.
func (s *thinStore) lies(t *testing.T) bool {
	t.Helper()
	name := filepath.Join(s.Path, "probe")
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
func thinSteps(t *testing.T, withJournal bool, failed func(*thinStore, *harness.Site, harness.Reply, harness.Usage)) {
	t.Helper()
	p := harness.New(t, large())
	if withJournal {
		control := newThinStore(t, withJournal)
		control.below.LeaveBytes(t, 0)
		if !control.lies(t) {
			t.Error("the store keeps what it takes: nothing is tested")
		}
		control.Unmount(t)
	}
	var ends harness.Tally
	const levels = 8
	stride := sample.Every(t, 4)
	for level := range int64(levels) {
		if !stride.Has(int(level) + 1) {
			continue
		}
		s := newThinStore(t, withJournal)
		site := p.Site(t, filepath.Join(s.Path, "root"))
		free := s.Free(t)
		s.below.LeaveBytes(t, level*512<<10)
		r := site.Commit(t, nil)
		ends.Add(ending(r))
		if r.Status == 0 {
			s.Remount(t)
			want(t, site, harness.After)
		} else {
			failed(s, site, r, free)
		}
		if t.Failed() {
			t.Fatalf("level %d: %v", level, r)
		}
	}
	ends.DemandKinds(t, 2, "done")
}

// TestOverCommitted: the data is lost, the file system lives. The root must be
// as before, now and after a remount.
func TestOverCommitted(t *testing.T) {
	thinSteps(t, true, func(s *thinStore, site *harness.Site, r harness.Reply, free harness.Usage) {
		wantFull(t, r)
		want(t, site, harness.Before)
		s.DemandFree(t, free)
		s.below.Release(t)
		s.Remount(t)
		want(t, site, harness.Before)
		s.lastingly(t, site)
	})
}

// TestOverCommittedJournal: the file system cannot write its journal and turns
// read-only, so that a rollback may be impossible. With space again, recover
// must reach the state before.
func TestOverCommittedJournal(t *testing.T) {
	thinSteps(t, false, func(s *thinStore, site *harness.Site, r harness.Reply, _ harness.Usage) {
		if r.Answer.Code != harness.RollbackFailed {
			wantFull(t, r)
		}
		s.below.Release(t)
		s.Remount(t)
		if r := site.Recover(t, nil); r.Status != 0 {
			t.Error(r)
		}
		if _, err := site.Recovered(t, harness.Before); err != nil {
			t.Error(err)
		}
		s.lastingly(t, site)
	})
}

// lastingly requires a commit in a store with room to succeed and to last.
func (s *thinStore) lastingly(t *testing.T, site *harness.Site) {
	t.Helper()
	again(t, site)
	s.Remount(t)
	want(t, site, harness.After)
}
