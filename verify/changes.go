package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Changes returns the change set of the bundle; nil without one. The error is the reason why
// the change set cannot be used; a file [bundle.ChangesFile] that TASK_SPEC.json does not name
// is such a reason too. It is no verdict of a law: the restore decides what it means.
func (b *Bundle) Changes() (*bundle.Changes, error) { return b.changes, b.changesFault }

// readChanges reads the change set of a bundle that was verified. An error of this machine is
// returned; any other one is kept for [Bundle.Changes].
func (b *Bundle) readChanges(e *examination) error {
	digest, named, fault := bundle.ChangesClaim(e.artifacts[bundle.TaskSpec].object)
	err := e.run.present(bundle.ChangesFile)
	isThere := err == nil
	switch {
	case err != nil && (!errors.Is(err, fs.ErrNotExist) || IsMachineFault(err)):
		return fmt.Errorf("%s: %w", bundle.ChangesFile, err)
	case fault != nil:
		b.changesFault = fmt.Errorf("%s: %w", bundle.TaskSpec, fault)
		return nil
	case !isThere && !named:
		return nil
	case !named:
		b.changesFault = fmt.Errorf("there is a file %s, and constraints.changes of %s does not name it", bundle.ChangesFile, bundle.TaskSpec)
		return nil
	case !isThere:
		b.changesFault = fmt.Errorf("constraints.changes of %s names the file %s, which is missing", bundle.TaskSpec, bundle.ChangesFile)
		return nil
	}
	raw, _, err := e.run.readRaw(bundle.ChangesFile)
	if IsMachineFault(err) {
		return fmt.Errorf("%s: %w", bundle.ChangesFile, err)
	}
	if err == nil && sha256.Sum256(raw) != digest {
		err = errors.New("its SHA-256 is not the one in constraints.changes of " + bundle.TaskSpec)
	}
	if err == nil {
		b.changes, err = bundle.ParseChanges(raw, func(yield func(string) bool) {
			for i := range b.outputs {
				if !yield(b.outputs[i].path.String()) {
					return
				}
			}
		})
	}
	if err != nil {
		b.changesFault = fmt.Errorf("%s: %w", bundle.ChangesFile, err)
	}
	return nil
}
