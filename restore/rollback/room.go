package rollback

import (
	"strings"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// shareMin is from how many bytes on a file that is written out may share the blocks of
// its object.
const shareMin = 128 << 10

// room requires that the file system of the root has room for what is to come, before anything
// is written; at least as far as that is known.
func (r *restoring) room() error {
	at, err := machine.RoomOf(r.in.Dir())
	if err != nil {
		return err
	}
	shared := true
	if state := r.in.State(); state != nil {
		kind, err := state.FileSystem()
		if err != nil {
			return err
		}
		shared = at.MayShare(kind)
	}
	var need machine.Need
	for e := range r.target.Entries() {
		switch {
		case !r.brings(e.Path), e.Type == snapshot.Absent, e.Hard != "":
		case e.Type == snapshot.File && !e.Sparse && !(shared && e.Size >= shareMin):
			need = need.Plus(at.File(e.Size))
		default:
			need = need.Plus(at.Entry())
		}
	}
	return at.Check(need)
}

// brings reports whether what stood at a path is to come.
func (r *restoring) brings(path string) bool {
	for i, swap := range r.back.Exchange.Swaps {
		top := r.paths[i]
		if swap.New && (top == pathsafe.Path{} || path == top.String() || strings.HasPrefix(path, top.String()+"/")) {
			return true
		}
	}
	return false
}
