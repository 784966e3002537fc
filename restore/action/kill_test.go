package action_test

import (
	"os"
	"reflect"
	"sync"
	"unsafe"

	"github.com/spectrumfs/spectrum/restore/action"
)

// A simulatedKill has the effect of a kill of the process at a call of package staging or
// snapshot: from that call on every call fails without an effect, nothing is logged and no halt
// is marked.
//
// The hooks of these packages are not exported; reflection finds them, which is simpler and
// faster than a process for each action. Tests in test/undo kill the real binary.
type simulatedKill struct {
	mu    sync.Mutex
	left  int // calls that are still made
	log   *os.File
	fired bool
}

func (k *simulatedKill) happened() bool {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fired
}

// call makes a call, unless the kill has happened.
func (k *simulatedKill) call(_, _ string, do func() error) error {
	if k.countDown() {
		return errKilled
	}
	return do()
}

func (k *simulatedKill) countDown() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left--; k.left < 0 && !k.fired {
		k.fired = true
		_ = k.log.Close()
	}
	return k.fired
}

// install lets the calls of an entered root go through call.
func (k *simulatedKill) install(in *action.Root, log *os.File) {
	if k == nil {
		return
	}
	k.log = log
	hook := k.call
	setHook(reflect.ValueOf(in).Elem().FieldByName("lock").Elem().FieldByName("s"), hook)
	setHook(reflect.ValueOf(in.Snapshots()).Elem().FieldByName("sysHook"), hook)
}

// setHook sets the hook of a package, to which a pointer leads.
func setHook(pointer reflect.Value, hook func(op, path string, do func() error) error) {
	field := pointer.Elem().FieldByName("Call")
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(hook))
}

// whenStaging lets the calls of package staging go through a hook.
func (i *inside) whenStaging(hook func(op, path string, do func() error) error) {
	setHook(reflect.ValueOf(i.Root).Elem().FieldByName("lock").Elem().FieldByName("s"), hook)
}
