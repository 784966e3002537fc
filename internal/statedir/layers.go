package statedir

import "github.com/spectrumfs/spectrum/pathsafe"

// layers is where the changes of commands are that ran over a directory.
const layers = "runs"

// Layers opens the directory of the layers of "spectrum run": one for each run whose changes were
// kept.
func (d *Dir) Layers() (*pathsafe.Dir, error) { return d.open(layers) }
