package undo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/spectrumfs/spectrum/test/harness"
)

// leave fills the disk until there is no block left, and then gives so many bytes
// back. With 0 it gives none.
func (d *disk) leave(t testing.TB, bytes int64) {
	t.Helper()
	f, err := os.OpenFile(d.ballast(), os.O_WRONLY|os.O_CREATE, 0o600)
	harness.Must(t, err)
	defer f.Close()
	size := int64(0)
	for piece := int64(8 << 20); piece >= 4096; {
		switch err := unix.Fallocate(int(f.Fd()), 0, size, piece); {
		case err == nil:
			size += piece
		case errors.Is(err, unix.ENOSPC):
			piece /= 2
		case !errors.Is(err, unix.EINTR):
			t.Fatal(err)
		}
	}
	harness.Must(t, f.Truncate(max(size-bytes, 0)))
	harness.Must(t, f.Sync())
}

func (d *disk) ballast() string { return filepath.Join(d.path, "ballast") }

// release gives everything back.
func (d *disk) release(t testing.TB) {
	t.Helper()
	harness.Must(t, os.Remove(d.ballast()))
}

// TestDiskFull fills the disk of the root, or that of the state directory, more or
// less before each way back, a take and a prune.
func TestDiskFull(t *testing.T) {
	p := newProject(t)
	for i, make := range []func() *act{rollback, whole, part, taking, pruning} {
		for _, full := range []string{"root", "state"} {
			a := make()
			if a.after == nil && full == "root" {
				continue // nothing is written there
			}
			t.Run(a.name+", "+full, func(t *testing.T) {
				t.Parallel()
				d := newDisk(t, 16<<20)
				at := in(filepath.Dir(d.path))
				if full == "root" {
					at.above = filepath.Join(d.path, "above")
				} else {
					at.state = filepath.Join(d.path, "state")
				}
				w := newWorld(t, p, at, a)
				w.rehearse(t)
				w.fill(t, d, int64(i%2))
			})
		}
	}
}

// fill carries the act out with less and less missing.
func (w *world) fill(t *testing.T, d *disk, phase int64) {
	var sum tally
	step := int64(24)
	if long() {
		step, phase = 1, 0
	}
	for blocks := phase; ; blocks += 1 + (blocks/8+1)*step/8 {
		w.reset(t)
		d.leave(t, blocks*4096)
		r := w.site.Project.Run(t, nil, w.args...)
		sum.add(fmt.Sprint("exit ", r.Status))
		d.release(t)
		if err := errors.Join(wellSaid(r), w.afterFull(t, r)); err != nil {
			t.Errorf("with %d blocks left: %v\n%v", blocks, r, err)
			break
		}
		if r.Status == 0 && blocks > 4 {
			break
		}
	}
	sum.want(t, "exit 0")
}

// afterFull checks what a command has left that had too little room, now that it has
// more.
func (w *world) afterFull(t *testing.T, r harness.Reply) error {
	t.Helper()
	if w.act.after == nil {
		return w.afterStore(t, r)
	}
	state := harness.Before
	switch {
	case r.Status == 0:
		state = harness.After
	case r.Status == 3:
		return errors.New("a full disk halts the root")
	}
	if err := w.ended(t, state); err != nil {
		return err
	}
	return w.back(t, state, 4)
}

func TestLongDiskFull(t *testing.T) {
	needLong(t)
	TestDiskFull(t)
}
