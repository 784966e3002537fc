package statedir

import (
	"errors"
	"io/fs"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// layers is where the changes of commands are that ran over a directory.
const layers = "runs"

// Layers opens the directory of the layers of "spectrum run": one for each run whose changes were
// kept.
func (d *Dir) Layers() (*pathsafe.Dir, error) { return d.open(layers) }

// LayerNames are the layers that are there, in the order of their names.
func (d *Dir) LayerNames() ([]string, error) {
	dir, err := d.root.OpenDir(layers)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.part(layers, err)
	}
	defer dir.Close()
	return dir.Names()
}
