package bundle

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// maxPayload is how much of a signed payload is read to find its bundle root.
const maxPayload = 1 << 16

// CheckSealed returns an error unless the run directory at a path has the bundle root with which it
// was sealed. It verifies nothing: it ensures that a name of a run does not lead to another one.
func CheckSealed(runDir, root string) error {
	dir, err := pathsafe.OpenRoot(runDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	f, _, err := dir.Open(SignedPayload)
	if err != nil {
		return err
	}
	defer f.Close()
	var payload struct {
		BundleRoot string `json:"bundle_root"`
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxPayload))
	if err := errors.Join(err, json.Unmarshal(raw, &payload)); err != nil {
		return err
	}
	if payload.BundleRoot != root {
		return errors.New("the bundle was replaced")
	}
	return nil
}
