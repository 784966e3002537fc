package verify

import (
	"errors"
	"io"
	"io/fs"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Metadata reads a file of the run directory that is none of the seven artifacts, such as
// [bundle.ChangesFile], as it is now, in the directory that was verified; nil where there is none.
// Nothing of it is checked here.
func (b *Bundle) Metadata(name string) ([]byte, error) {
	dir, err := b.openRunDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, st, err := dir.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	limit := bundle.MaxSize(name)
	raw, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && (st.Size > limit || int64(len(raw)) > limit) {
		err = errors.New(name + " is too large")
	}
	return raw, err
}
