package pathsafe

import (
	"crypto/rand"
	"errors"
	"os"
)

// WriteFile makes the file name with this content and the permission bits perm
// less the umask. It appears whole and with its data synced, or not at all; a
// name that is taken gives fs.ErrExist. The new name itself is durable after
// [Dir.Sync].
func (d *Dir) WriteFile(name string, data []byte, perm uint32) error {
	f, err := d.CreateUnnamed(perm)
	if errors.Is(err, errors.ErrUnsupported) {
		return d.writeThenRename(name, data, perm)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeAndSync(f, data); err != nil {
		return err
	}
	return d.Link(f, name)
}

// writeThenRename serves file systems without unnamed files.
func (d *Dir) writeThenRename(name string, data []byte, perm uint32) error {
	temp := ".spectrum-" + rand.Text()
	f, err := d.Create(temp, perm)
	if err != nil {
		return err
	}
	err = errors.Join(writeAndSync(f, data), f.Close())
	if err == nil {
		err = d.RenameNoReplace(temp, d, name)
	}
	if err != nil {
		return errors.Join(err, d.Unlink(temp))
	}
	return nil
}

func writeAndSync(f *os.File, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	return f.Sync()
}
