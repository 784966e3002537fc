package scarce_test

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/internal/scarce"
)

// TestErrorsOfScarcity: what is short, also of a wrapped error, and what is not.
func TestErrorsOfScarcity(t *testing.T) {
	for errno, want := range map[syscall.Errno][2]bool{
		syscall.EMFILE: {true, true}, syscall.ENFILE: {true, true}, syscall.ENOMEM: {true, false}, syscall.ENOSPC: {}, syscall.EIO: {}, syscall.ENOENT: {},
	} {
		err := fmt.Errorf("reading: %w", &fs.PathError{Op: "open", Path: "a", Err: errno})
		if got := [2]bool{scarce.Is(err), scarce.Descriptors(err)}; got != want {
			t.Errorf("%v: %v, want %v", errno, got, want)
		}
	}
	if scarce.Is(nil) || scarce.Descriptors(nil) {
		t.Error("no error is one")
	}
}
