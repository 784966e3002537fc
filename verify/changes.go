package verify

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Changes returns the change set of the bundle, or nil without one. The error is the reason why the
// change set cannot be used; one is a file [bundle.ChangesFile] that TASK_SPEC.json does not name.
// It is not a verdict of a law: the restore decides about it.
func (b *Bundle) Changes() (*bundle.Changes, error) { return b.changes, b.changesFault }

// readChanges reads the change set of a bundle that was verified. An error of this machine is
// returned; any other one is kept for [Bundle.Changes].
func (b *Bundle) readChanges(e *examination) error {
	digest, named, malformed := bundle.ChangesClaim(e.artifacts[bundle.TaskSpec].object)
	raw, fault, err := e.run.readNamed(bundle.ChangesFile, bundle.ChangesMember, named, malformed)
	if err != nil || fault != nil || raw == nil {
		b.changesFault = fault
		return err
	}
	if sha256.Sum256(raw) != digest {
		fault = errors.New("its SHA-256 is not the one in constraints.changes of " + bundle.TaskSpec)
	} else {
		b.changes, fault = bundle.ParseChanges(raw, e.names())
	}
	if fault != nil {
		b.changesFault = fmt.Errorf("%s: %w", bundle.ChangesFile, fault)
	}
	return nil
}

// names yields the paths of the outputs in ascending order.
func (e *examination) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range e.entries {
			if !yield(e.entries[i].name) {
				return
			}
		}
	}
}

// readNamed reads a file of the run directory that is not an artifact and that a member of
// constraints in TASK_SPEC.json names; it returns nil if there is neither. malformed is the error
// about the member. A fault of the file or of the member is returned separately from an error of
// this machine.
func (r *Run) readNamed(file, member string, named bool, malformed error) (raw []byte, fault, err error) {
	err = r.present(file)
	isThere := err == nil
	switch {
	case err != nil && (!errors.Is(err, fs.ErrNotExist) || IsMachineFault(err)):
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	case malformed != nil:
		return nil, fmt.Errorf("%s: %w", bundle.TaskSpec, malformed), nil
	case !isThere && !named:
		return nil, nil, nil
	case !named:
		return nil, fmt.Errorf("file %s exists, but constraints.%s of %s does not name it", file, member, bundle.TaskSpec), nil
	case !isThere:
		return nil, fmt.Errorf("constraints.%s of %s names the file %s, which is missing", member, bundle.TaskSpec, file), nil
	}
	raw, _, err = r.readRaw(file)
	switch {
	case IsMachineFault(err):
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", file, err), nil
	case raw == nil:
		raw = []byte{}
	}
	return raw, nil, nil
}
