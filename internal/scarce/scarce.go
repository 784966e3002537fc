// Package scarce has the one check for errors that report that this process, or the machine, has run
// out of descriptors or memory: another try may succeed, and they say nothing of what was opened. It
// imports nothing, so that every package can ask it.
package scarce

import (
	"errors"
	"syscall"
)

// Is reports whether an error is that there are no more descriptors, or no more memory.
func Is(err error) bool { return Descriptors(err) || errors.Is(err, syscall.ENOMEM) }

// Descriptors reports whether an error is that there are no more descriptors.
func Descriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
