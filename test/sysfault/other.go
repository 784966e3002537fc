//go:build !(linux && amd64)

package sysfault

import (
	"context"
	"errors"
)

// Run fails on this system.
func Run(context.Context, Plan, ...string) (Result, error) {
	return Result{}, errors.New("sysfault: only Linux on amd64 is supported")
}

// MutatingCalls is empty on this system.
func MutatingCalls() []string { return nil }

// Mutating says no on this system.
func Mutating(Call) bool { return false }
