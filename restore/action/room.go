package action

import (
	"os"
	"runtime"

	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/staging"
	"golang.org/x/sys/unix"
)

// Room returns a [*machine.FullError] if the file system of the restore root, or that of the
// state directory (nil: none), has no room for what a commit writes. It counts what exists at
// the same time, and never too much: a commit that passes may still find the disk full, but
// one that is rejected would have.
func Room(r *restore.Restore, state *pathsafe.Dir) error {
	change, err := changeOf(r)
	if err != nil {
		return err
	}
	return room(r, &change, state)
}

// The minimum that is written for each file beside its content, in bytes: its path and its
// hash in hexadecimal digits.
const digits = 64

// The files of a journal, and of a savepoint.
const (
	journalRecords = 3
	savepointFiles = 8
)

func room(r *restore.Restore, change *staging.Change, state *pathsafe.Dir) error {
	at, err := machine.RoomOf(r.Root())
	if err != nil {
		return err
	}
	shared, err := sharesBlocks(at, r)
	if err != nil {
		return err
	}
	var paths, hashes int64
	need := machine.Need{}
	dirs := map[pathsafe.Path]bool{}
	for _, s := range change.Swaps {
		switch f := s.New.(type) {
		case *staging.Artifact:
			need = need.Plus(at.File(int64(len(f.Data))))
		case *staging.File:
			paths, hashes = paths+int64(len(s.Path.String())), hashes+digits
			if shared {
				need = need.Plus(at.Entry())
			} else {
				need = need.Plus(at.File(f.Size))
			}
			for up, ok := s.Path.Parent(); ok && !dirs[up]; up, ok = up.Parent() {
				dirs[up] = true
				need = need.Plus(at.Entry())
			}
		}
	}
	need = need.Plus(at.Entry()).Plus(at.File(paths)).Plus(at.File(hashes)) // staging, INTENT, PREPARED
	for range journalRecords - 2 {
		need = need.Plus(at.Entry())
	}
	if state == nil {
		return at.Check(need)
	}
	kept, err := machine.RoomOf(state)
	if err != nil {
		return err
	}
	record := kept.File(paths + hashes) // the savepoint has the list of all files
	for range savepointFiles {
		record = record.Plus(kept.Entry())
	}
	_, err = spacesOf(at, need, kept, record)
	return err
}

// sharesBlocks reports whether copies of the sources may share their blocks. All of them
// are in the file system of the project root.
func sharesBlocks(at *machine.Room, r *restore.Restore) (bool, error) {
	for run := range r.Plan().Runs() {
		for o := range run.Bundle().Outputs() {
			src, err := o.OpenSource()
			if err != nil {
				return false, nil //nolint:nilerr // staging finds that out, and has the law's code for it
			}
			kind, err := kindOf(src)
			if err != nil || at.MayShare(kind) {
				return true, err
			}
			break
		}
	}
	return false, nil
}

func kindOf(f *os.File) (int64, error) {
	defer f.Close()
	var sf unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &sf)
	runtime.KeepAlive(f)
	return int64(sf.Type), os.NewSyscallError("statfs", err)
}
