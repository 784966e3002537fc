package commit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spectrumfs/spectrum/staging"
)

// ErrUnended says that an attempt stands in a root which is not to be written to, and so
// cannot be ended.
var ErrUnended = errors.New("something in it has to be ended first")

// look requires that nothing stands in the root that would have to be ended. A halt is the
// error that it is for everybody.
func (r *Root) look() error {
	unfinished, err := r.lock.Unfinished()
	var stands []string
	for _, u := range unfinished {
		if halt := u.Halt(staging.ErrHalted); r.isMarked(halt) {
			return halt
		}
		stands = append(stands, fmt.Sprintf("%q", u.Staging))
	}
	if len(stands) == 0 {
		return err
	}
	return fmt.Errorf("%q: %w: %s", r.history.root, ErrUnended, strings.Join(stands, ", "))
}
