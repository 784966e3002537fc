package action_test

import (
	"os"
	"reflect"
	"sync"
	"unsafe"

	"github.com/spectrumfs/spectrum/restore/action"
)

// A death ends a process at a call that package staging or package snapshot makes:
// from that one on no call does anything, nothing is logged and no halt is marked.
// What the process does with the errors changes nothing that outlives it.
//
// The calls go through seams that other packages cannot name. They are found by
// reflection, which is simpler and faster than a process of its own for each
// action, and dies between any two calls just so. That the real binary survives
// real kills is for the tests of the binary to see.
type death struct {
	mu    sync.Mutex
	left  int // calls that are still made
	log   *os.File
	fired bool
}

func (d *death) dead() bool {
	if d == nil {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fired
}

// call makes a call, unless the process is dead.
func (d *death) call(_, _ string, do func() error) error {
	if d.dies() {
		return errKilled
	}
	return do()
}

func (d *death) dies() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left--; d.left < 0 && !d.fired {
		d.fired = true
		_ = d.log.Close()
	}
	return d.fired
}

// seize lets the calls of a root that was entered go through the death.
func (d *death) seize(in *action.Root, log *os.File) {
	if d == nil {
		return
	}
	d.log = log
	hook := d.call
	setHook(reflect.ValueOf(in).Elem().FieldByName("lock").Elem().FieldByName("s"), hook)
	setHook(reflect.ValueOf(in.Snapshots()).Elem().FieldByName("seam"), hook)
}

// setHook sets the member "hook" of what a pointer to a seam points to.
func setHook(seam reflect.Value, hook func(op, path string, do func() error) error) {
	field := seam.Elem().FieldByName("hook")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(hook))
}

// whenStaging lets the calls of package staging go through a hook.
func (i *inside) whenStaging(hook func(op, path string, do func() error) error) {
	setHook(reflect.ValueOf(i.Root).Elem().FieldByName("lock").Elem().FieldByName("s"), hook)
}
