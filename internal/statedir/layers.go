package statedir

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// layers is the directory of the changes of commands that ran over a directory.
const layers = "runs"

// LayerRecord is the name of the file that describes a layer.
const LayerRecord = "layer.json"

// layerRecordLimit is how much of such a file is read for the directory in it.
const layerRecordLimit = 64 << 20

// Layers opens the directory of the layers of "spectrum run": one for each run whose changes were
// kept. The process that a layer is of has it locked.
func (d *Dir) Layers() (*pathsafe.Dir, error) { return d.open(layers) }

// A Layer is one that was left over: no process uses it, and no candidate was made of it.
type Layer struct {
	Path string
	Over string // the directory that the command ran over; "" if not known
}

// LeftLayers returns the layers that are left over, such as those of runs that were killed or whose
// changes could not be sealed, in the order of their names. It makes and changes nothing.
func (d *Dir) LeftLayers() ([]Layer, error) {
	dir, err := d.root.OpenDir(layers)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, d.part(layers, err)
	}
	defer dir.Close()
	names, err := dir.Names()
	if err != nil {
		return nil, d.part(layers, err)
	}
	sealed, err := d.Candidates()
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var left []Layer
	for _, name := range names {
		isOf := func(c SealedCandidate) bool { return strings.Contains(string(c.RunDir), "/"+layers+"/"+name+"/") }
		if slices.ContainsFunc(sealed, isOf) {
			continue
		}
		if over, isLeft := leftLayer(dir, name); isLeft {
			left = append(left, Layer{filepath.Join(d.path, layers, name), over})
		}
	}
	return left, nil
}

// leftLayer reports whether a directory is a layer that no process uses, and the directory that it
// is over.
func leftLayer(dir *pathsafe.Dir, name string) (over string, isLeft bool) {
	layer, err := dir.OpenDir(name)
	if err != nil {
		return "", false
	}
	defer layer.Close()
	if errors.Is(layer.TryLockShared(), pathsafe.ErrLocked) {
		return "", false
	}
	f, _, err := layer.Open(LayerRecord)
	if err != nil {
		return "", true
	}
	defer f.Close()
	var record struct {
		Lower string `json:"lower"`
	}
	raw, err := io.ReadAll(io.LimitReader(f, layerRecordLimit))
	if err != nil || json.Unmarshal(raw, &record) != nil || !filepath.IsAbs(record.Lower) {
		return "", true
	}
	return record.Lower, true
}
