package rollback

import (
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/restore/commit"
	"github.com/spectrumfs/spectrum/restore/snapshot"
)

// shareMin is from how many bytes on a file that is written out may share the blocks of
// its object.
const shareMin = 128 << 10

// room requires that the file system of the root has room for what comes, before anything
// is written; at least as far as that is known.
func room(in *commit.Root, d *difference) error {
	at, err := machine.RoomOf(in.Dir())
	if err != nil {
		return err
	}
	shared := true
	if state := in.State(); state != nil {
		kind, err := state.FileSystem()
		if err != nil {
			return err
		}
		shared = at.MayShare(kind)
	}
	var need machine.Need
	for _, part := range d.parts {
		for _, e := range d.target.Tree(part.Path.String()) {
			switch {
			case !e.Type.Kept(), e.Hard != "":
			case e.Type == snapshot.File && !e.Sparse && !(shared && e.Size >= shareMin):
				need = need.Plus(at.File(e.Size))
			default:
				need = need.Plus(at.Entry())
			}
		}
	}
	return at.Check(need)
}
