package snapshot

import (
	"errors"
	"fmt"
	"strings"
)

// ErrAmbiguous reports a prefix of several snapshots.
var ErrAmbiguous = errors.New("ambiguous snapshot ID prefix")

// ErrOldVersion is what a manifest of version 1 is rejected with: it is not signed, and in no
// chain, so that it proves nothing.
var ErrOldVersion = errors.New("manifest version 1, of an earlier spectrum, which this one does not read")

// DamageError is something in a store that is not what was put there.
type DamageError struct {
	Path  string   // what is damaged, beneath the directory of the store
	Names []string // the paths of a root that need it, as far as they are known
	Part  string   // of a manifest, the object of the part of it that is damaged; "" for the manifest itself
	Root  string   // with Part, the root that the manifest is of
	Err   error
}

// Error names the damaged thing, and the first paths that need it.
func (e *DamageError) Error() string {
	msg := fmt.Sprintf("snapshot store: %q: %v", e.Path, e.Err)
	if len(e.Names) == 0 {
		return msg
	}
	const shown = 3
	var needed []string
	for _, name := range e.Names[:min(shown, len(e.Names))] {
		needed = append(needed, fmt.Sprintf("%q", name))
	}
	if more := len(e.Names) - len(needed); more > 0 {
		needed = append(needed, fmt.Sprintf("%d more", more))
	}
	return msg + ", needed by " + strings.Join(needed, ", ")
}

// Unwrap returns what is wrong with it.
func (e *DamageError) Unwrap() error { return e.Err }

// ChangedError reports that an entry has changed: while a snapshot was taken, or since then.
type ChangedError struct {
	Path string // beneath the root, or beneath what was compared; "" for its top
	What string // what has changed
}

// Is reports ErrRefused for a file that does not come to rest.
func (e *ChangedError) Is(target error) bool {
	return target == ErrRefused && e.What == errUnsettled.Error()
}

// Error names the path.
func (e *ChangedError) Error() string { return fmt.Sprintf("%q has changed: %s", e.Path, e.What) }

// ErrUnsettled reports that names change too fast to be read.
var ErrUnsettled = refuse("names change while it is read")

// ErrRefused matches the error of any entry that no snapshot can hold, or that keeps changing;
// its text has the reason.
var ErrRefused = errors.New("no snapshot can hold it")

// refusal is an ErrRefused with a text of its own.
type refusal string

func (r refusal) Error() string { return string(r) }

func (r refusal) Is(target error) bool { return target == ErrRefused }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }
