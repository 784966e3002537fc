package undo

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/blocklog"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// A disk is an ext4 of its own, with its image in memory.
type disk struct{ image, path string }

func newDisk(t testing.TB, size int64) *disk {
	t.Helper()
	blocklog.Need(t)
	dir := harness.MemoryDir(t)
	d := &disk{filepath.Join(dir, "image"), filepath.Join(dir, "mnt")}
	harness.Must(t, os.Mkdir(d.path, 0o755))
	harness.Must(t, os.WriteFile(d.image, nil, 0o600))
	harness.Must(t, os.Truncate(d.image, size))
	argv := []string{"mkfs.ext4", "-q", "-F", "-b", "4096", "-m", "0", "-E", "nodiscard,lazy_itable_init=0", d.image}
	if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%q: %v: %s", argv, err, out)
	}
	d.mount(t)
	t.Cleanup(func() { _ = blocklog.Unmount(d.path) })
	return d
}

func (d *disk) mount(t testing.TB) {
	t.Helper()
	harness.Must(t, blocklog.Mount(d.image, d.path, "ext4", ""))
}

// lose takes the power: what is in no log of the file system is lost.
func (d *disk) lose(t testing.TB) {
	t.Helper()
	const shutdownIoctl, noLogFlush = 0x8004587d, 2
	f, err := os.Open(d.path)
	harness.Must(t, err)
	harness.Must(t, unix.IoctlSetPointerInt(int(f.Fd()), shutdownIoctl, noLogFlush))
	harness.Must(t, f.Close())
	harness.Must(t, blocklog.Unmount(d.path))
	d.mount(t)
}

func (d *disk) sync(t testing.TB) {
	t.Helper()
	f, err := os.Open(d.path)
	harness.Must(t, err)
	harness.Must(t, errors.Join(unix.Syncfs(int(f.Fd())), f.Close()))
}

// TestPower takes the power before some calls of each way back, of a take and of a
// prune: root and state directory are on a disk that loses what was not synced.
func TestPower(t *testing.T) {
	p := newProject(t)
	acts := []*act{rollback(), whole(), part(), taking(), pruning()}
	for i, a := range acts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			d := newDisk(t, 32<<20)
			w := newWorld(t, p, place{filepath.Dir(d.path), filepath.Join(d.path, "state"), filepath.Join(d.path, "above")}, a)
			w.rehearse(t)
			w.cuts(t, d, i, 10)
		})
	}
}

// onDisk matches the calls that a disk can notice.
func (w *world) onDisk(c sysfault.Call) bool { return c.Name != "flock" && w.changing(c) }

// cuts takes the power before about so many calls, or before each, and once when the
// command has ended.
func (w *world) cuts(t *testing.T, d *disk, phase, count int) {
	var sum tally
	w.reset(t)
	calls := w.site.Project.Run(t, &sysfault.Plan{Match: w.onDisk}, w.args...).Fault.Calls
	s := each(stride{calls/count + phase, max(calls/count, 1)})
	for i := 0; ; i++ {
		w.reset(t)
		d.sync(t)
		r := w.site.Project.Run(t, &sysfault.Plan{N: s.at(i), Kill: true, Record: true, Match: w.onDisk}, w.args...)
		if !r.Killed() && r.Status != 0 {
			t.Fatal(r)
		}
		d.lose(t)
		if err := w.afterCut(t, &sum, r); err != nil {
			t.Errorf("the power went before %s\n%v\n%v", w.last(r), r, err)
		}
		if !r.Killed() {
			break
		}
		sum.add("cuts")
	}
	sum.want(t, "cuts", "came late")
}

func (w *world) afterCut(t *testing.T, sum *tally, r harness.Reply) error {
	t.Helper()
	if w.act.after == nil {
		if !r.Killed() {
			sum.add("came late")
			return w.storeKept(t, r)
		}
		return w.afterStore(t, r)
	}
	allowed := []harness.State{harness.Before, harness.After}
	if !r.Killed() {
		sum.add("came late")
		allowed = allowed[1:]
	}
	if again := w.site.Recover(t, nil); again.Status != 0 {
		return fmt.Errorf("recover: %v", again)
	}
	state, err := w.site.State()
	sum.add("recovered " + state.String())
	if err := errors.Join(err, w.ended(t, allowed...)); err != nil {
		return err
	}
	return w.back(t, state, 4)
}

// storeKept checks that what a command on the store has reported is so: a snapshot
// that was taken is there, those that were removed are not.
func (w *world) storeKept(t *testing.T, r harness.Reply) error {
	t.Helper()
	if err := errors.Join(w.keeps(t), w.unchanged(t)); err != nil {
		return err
	}
	want := len(w.snapshots)
	if w.act.name == "take" {
		want++
	}
	if n := len(w.list(t)); n != want {
		return fmt.Errorf("there are %d snapshots, not %d: %v", n, want, r)
	}
	return nil
}

func TestLongPower(t *testing.T) {
	needLong(t)
	TestPower(t)
}
