package staging

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// An undo gives each displaced entry of a commit its name back, unless a newer entry is there:
// a file that another process has put there since, or the commit's own file with its writes.
// The newer entry stays, and the displaced one is kept, as in a change of another kind. So
// the undo of a replacement succeeds, and loses no data of other processes.

// displacesForCommit reports whether a swap of a commit takes something from its name.
func (a *attempt) displacesForCommit(s *swapping) bool { return a.isCommit() && s.hasOld }

// reinstate undoes what a commit has displaced at one name.
func (u *undo) reinstate(s *swapping) error {
	in, err := u.parentDir(s)
	if err != nil {
		return err
	}
	defer in.Close()
	for range maxFlips {
		var was pathsafe.Stat
		isDisplaced := false
		if u.olds.H != nil {
			was, err = u.olds.Stat(s.name)
			isDisplaced = err == nil && !s.fresh.is(was)
		}
		if gone(err) != nil {
			return err
		}
		st, err := in.Stat(s.path.Base())
		if gone(err) != nil {
			return err
		}
		isOurs := err == nil && s.fresh.is(st)
		switch {
		case !isDisplaced && isOurs:
			return u.missingUnlessEdited(s, in)
		case !isDisplaced:
			return nil // it was not displaced yet, or is back
		case err != nil:
			err = u.olds.shift(s.name, in, s.path.Base())
		case isOurs:
			err = u.restoreDisplaced(s, in)
		case identityOf(was) == identityOf(st) && !st.Mode.IsDir():
			return u.olds.Unlink(s.name) // a crash has left it with both names
		default:
			return nil // the existing entry is newer
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errFlips
}

// missingUnlessEdited handles a swap whose new file is at its name and whose displaced entry is
// not in staging. That is not a loss if an earlier undo has kept the displaced entry and left the
// file there.
func (u *undo) missingUnlessEdited(s *swapping, in dir) error {
	edited, err := u.isEdited(s, in, s.path.Base())
	if err == nil && !edited {
		err = errOldMissing
	}
	return err
}

// restoreDisplaced exchanges the displaced entry with the commit's file. The entry that comes out must
// be that file, unchanged: any other one is newer than the displaced entry, and goes back.
func (u *undo) restoreDisplaced(s *swapping, in dir) error {
	expected := s.fresh
	for turn := range maxFlips {
		put, err := u.olds.Stat(s.name)
		if err == nil {
			err = u.olds.exchange(s.name, in, s.path.Base())
		}
		var out pathsafe.Stat
		if err == nil {
			out, err = u.olds.Stat(s.name)
		}
		if err != nil {
			return err
		}
		isIt, edited := expected.is(out), false
		if isIt && turn == 0 {
			if edited, err = u.isEdited(s, u.olds, s.name); err != nil {
				return err
			}
		}
		if isIt && !edited {
			return nil
		}
		expected = identityOf(put)
	}
	return errFlips
}

// isEdited reports whether the commit's file, at a name, has another content than it was made with.
func (u *undo) isEdited(s *swapping, in dir, name string) (bool, error) {
	i := slices.IndexFunc(u.copies.files, func(f copiedFile) bool { return f.path == s.path })
	if !s.hasNew || i < 0 {
		return false, nil
	}
	f := &u.copies.files[i]
	got, st, err := in.OpenFile(name)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, pathsafe.ErrLeased) {
		st, err = in.Stat(name)
		return err == nil && !f.created.is(st), err
	}
	if err != nil {
		return false, err
	}
	defer got.Close()
	if !f.created.is(st) {
		return true, nil
	}
	content := f.Check
	if !u.revived {
		content = createdRecord{Size: f.Size}.with(f.SHA256).check()
	}
	err = u.s.Do("check", name, func() error { return content(context.Background(), got) })
	if errors.Is(err, errChanged) {
		return true, nil
	}
	return false, err
}

// discardReplacing removes the commit's file that was taken back, if it is as it was made, and no
// process has it open to write to it. Else it is kept.
func (u *undo) discardReplacing(s *swapping) error {
	st, err := u.olds.Stat(s.name)
	if err != nil || !s.fresh.is(st) {
		return err
	}
	open, _, err := u.olds.isWritten(s.name)
	if err != nil || open {
		return err
	}
	edited, err := u.isEdited(s, u.olds, s.name)
	if err != nil || edited {
		return err
	}
	return u.olds.Unlink(s.name)
}
