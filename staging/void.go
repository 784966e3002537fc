package staging

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// voidSuffix marks the records of a void journal.
const voidSuffix = ".void"

// void makes a rejected journal void. If another user has prevented the renaming of its
// records, the staging directory is renamed to a name that no longer denotes one.
func (u *Unfinished) void() error {
	err := u.a.stage.voidRecords(u.found.names)
	isPrevented := errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR)
	if !isPrevented {
		return err
	}
	name, err := u.a.showAs(u.root.dir, u.Staging)
	if err != nil {
		return err
	}
	u.end.Left = leftIn(u.end.Left, name)
	return u.root.dir.Sync()
}

// voidRecords makes the rejected journal of a staging directory void. Nothing is removed, since
// the process that made it may still need it. INTENT is renamed first, durably: without it the
// other records cause neither an undo nor a completion.
func (d dir) voidRecords(names []string) error {
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if !ofJournal(name) || (name == intentName) != first {
				continue
			}
			if err := d.rename(name, d, name+voidSuffix); err != nil {
				return err
			}
		}
		if err := d.Sync(); err != nil {
			return err
		}
	}
	return nil
}
