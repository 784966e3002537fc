package staging

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// voidSuffix marks the records of a journal that was set aside.
const voidSuffix = ".void"

// setAside makes a journal void that cannot be believed. Where another user has seen to it that
// its records cannot be renamed, the staging directory gets a name under which it is one no more.
func (u *Unfinished) setAside() error {
	err := u.a.stage.setAside(u.found.names)
	isBarred := errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENOTDIR)
	if !isBarred {
		return err
	}
	name, err := u.a.showAs(u.root.dir, u.Staging)
	if err != nil {
		return err
	}
	u.end.Left = kept(u.end.Left, name)
	return u.root.dir.sync()
}

// setAside makes the journal in a staging directory void that cannot be believed.
// Nothing is removed: its maker may still want it. INTENT is the first, durably:
// without it the other records lead neither back nor forward.
func (d dir) setAside(names []string) error {
	for _, first := range []bool{true, false} {
		for _, name := range names {
			if !ofJournal(name) || (name == intentName) != first {
				continue
			}
			if err := d.rename(name, d, name+voidSuffix); err != nil {
				return err
			}
		}
		if err := d.sync(); err != nil {
			return err
		}
	}
	return nil
}
