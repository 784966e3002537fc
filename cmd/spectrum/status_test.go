package main

import (
	"testing"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// TestStatusFree: status and a dry run count the same as free, also where a file system keeps a
// part of it for privileged users.
func TestStatusFree(t *testing.T) {
	dir, err := pathsafe.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	room, err := machine.RoomOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	want, err := room.Free()
	if err != nil {
		t.Fatal(err)
	}
	const others = 2 << 30 // what other processes write or remove meanwhile
	var st rootStatus
	if got := uint64(st.freeAt(dir)); max(got, want.Bytes)-min(got, want.Bytes) > others {
		t.Errorf("status says %d bytes are free, and a rollback %d", got, want.Bytes)
	}
}
