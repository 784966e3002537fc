// Package scarce checks whether an error means that this process, or the machine, has run out of
// descriptors or memory: a retry may succeed, and the error does not depend on the opened file. It
// imports no other package of this module, so that every package can use it.
package scarce

import (
	"errors"
	"syscall"
)

// Is reports whether an error means that descriptors or memory have run out.
func Is(err error) bool { return Descriptors(err) || errors.Is(err, syscall.ENOMEM) }

// Descriptors reports whether an error means that descriptors have run out.
func Descriptors(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
