package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/internal/machine"
	"golang.org/x/sys/unix"
)

// TestFetchedIsToldByItsAddress: what fails in the private directory of a run that is fetched is told by
// the address and the state directory that the user named.
func TestFetchedIsToldByItsAddress(t *testing.T) {
	state := t.TempDir()
	a := &app{stateDir: state}
	b, err := newBox(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.make(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.close() }()
	const address = "file:///s@0123"
	for _, test := range []struct {
		err  error
		want string
	}{
		{&machine.FullError{Path: b.dir.Name(), Of: "bytes", Need: 2, Free: 1}, fmt.Sprintf("fetch %s: no space in the file system of %q: at least 2 bytes are needed, and 1 are free", address, state)},
		{&fs.PathError{Op: "write", Path: filepath.Join(b.dir.Name(), "out/a"), Err: unix.ENOSPC}, "write " + address + "/out/a: no space left on device"},
	} {
		told := a.toldFetched(b, test.err, address)
		if told.Error() != test.want || !errors.Is(told, unix.ENOSPC) || strings.Contains(told.Error(), b.name) {
			t.Errorf("%v, want %s", told, test.want)
		}
	}
}
