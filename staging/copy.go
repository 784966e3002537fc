package staging

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// copyChunk is how much is copied at a time: between two chunks write-back is started and ctx
// is checked.
const copyChunk = 16 << 20

// writeBackMin is the smallest size for which starting write-back is worth the call. For
// twenty thousand small files the calls cost a fifth of the processor time of their commit.
const writeBackMin = 128 << 10

// stageFiles is step 3: every file is copied into staging and checked there,
// as it was written.
func (a *attempt) stageFiles(ctx context.Context) *Error {
	a.progress(PhaseStage, 0)
	a.openCopies = make([]*pathsafe.File, len(a.copies.files))
	batches := a.batches()
	return parallel(ctx, a.workers, len(batches), func() worker {
		return &copier{attempt: a, at: cache{base: a.news}, batches: batches}
	})
}

// The bounds of a batch.
const (
	batchFiles = 256
	batchBytes = 4 << 20
)

// batches divides the order of the files into runs that one worker copies:
// neighbours in one directory, where several workers would wait for each other
// to make their names.
func (a *attempt) batches() (all [][]int) {
	var bytes int64
	for turn, i := range a.copies.order {
		f := &a.copies.files[i]
		n := len(all) - 1
		fits := n >= 0 && len(all[n]) < batchFiles && bytes+f.Size <= batchBytes
		if !fits || a.copies.files[i].dir != a.copies.files[a.copies.order[turn-1]].dir {
			all, bytes = append(all, nil), 0
			n++
		}
		all[n] = append(all[n], i)
		bytes += f.Size
	}
	return all
}

// A copier is a worker of step 3.
type copier struct {
	*attempt
	at       cache
	sources  pathsafe.Opener
	batches  [][]int
	noClone  bool          // this file system does not share blocks
	unlisted *pathsafe.Dir // a directory in which new files have no access list
}

func (c *copier) close() {
	c.at.close()
	c.sources.Close()
}

func (c *copier) do(ctx context.Context, turn int) *Error {
	for _, i := range c.batches[turn] {
		if err := c.one(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) one(ctx context.Context, i int) *Error {
	f := &c.copies.files[i]
	name := f.path.String()
	if err := ctx.Err(); err != nil {
		return fail(StepStage, name, err)
	}
	in, err := c.at.open(parent(f.path))
	if err != nil {
		return fail(StepStage, name, err)
	}
	perm := f.Perm // in a directory that only this user can enter
	if c.swaps[f.top].hasOld {
		perm = ownFile
	}
	dst, err := in.createFile(f.path.Base(), perm)
	f.created.tried = !errors.Is(err, fs.ErrExist)
	if err != nil {
		return fail(StepStage, name, err)
	}
	failure := c.fill(ctx, in, dst, f)
	if failure != nil && !f.created.known { // the undo removes no other file
		if st, err := c.s.Identify(dst); err == nil {
			f.created.see(st, anySize)
		}
	}
	if failure == nil && c.staysOpen(f) && dst.Keep() {
		c.openCopies[i] = dst
		return nil
	}
	if err := c.s.CloseFile(dst); err != nil && failure == nil {
		return fail(StepStage, name, err)
	}
	return failure
}

// staysOpen reports whether a copy stays open until verify has checked it at its name, which
// then need not open it again. A program that other processes can run may not be open for
// writing, and a file that its owner may not read is to be found out by opening it.
func (c *copier) staysOpen(f *copiedFile) bool {
	return !c.swaps[f.top].hasOld && f.Perm&0o111 == 0 && f.Perm&0o400 != 0
}

// closeCopies closes the copies that are still open. All of them were synced.
func (a *attempt) closeCopies() error {
	if !slices.ContainsFunc(a.openCopies, func(f *pathsafe.File) bool { return f != nil }) {
		return nil
	}
	return a.s.closeAll(newsName, a.openCopies)
}

// dropCopies is closeCopies for copies that are given up, and after it.
func (a *attempt) dropCopies() {
	_ = pathsafe.CloseAll(a.openCopies)
	a.openCopies = nil
}

// fill makes dst the copy of f: content, check, times, mode, metadata taken over from the
// replaced file, identity, and a sync if files are synced one by one.
func (c *copier) fill(ctx context.Context, in dir, dst *pathsafe.File, f *copiedFile) *Error {
	name, m := f.path.String(), &f.created
	if err := c.content(ctx, dst, f); err != nil {
		return fail(StepStage, name, err)
	}
	err := c.s.Do("check", name, func() error { return f.Check(ctx, dst) })
	if cancelled := ctx.Err(); cancelled != nil && errors.Is(err, cancelled) {
		return fail(StepStage, name, err) // not an error of the copy
	}
	if err != nil {
		return fail(StepCheck, name, err)
	}
	if err := c.s.setModTime(dst, f.ModTime); err != nil {
		return fail(StepStage, name, err)
	}
	st, err := c.settle(in, dst, f)
	if err != nil {
		return fail(StepStage, name, err)
	}
	m.see(st, st.Size)
	if st.Size != f.Size {
		return fail(StepCheck, name, fmt.Errorf("size is %d, not %d", st.Size, f.Size))
	}
	if c.fewEntries() {
		err = c.s.SyncFile(dst)
	}
	return fail(StepStage, name, err)
}

// settle sets the mode of a copy, and whatever it takes over from a file that it replaces, and
// records its access. A new file has the mode that it was made with, unless the umask or an
// access list has changed it. Its directory can be entered by this user alone, so if one file in
// it has no access list, others that are made there have none either.
func (c *copier) settle(in dir, dst *pathsafe.File, f *copiedFile) (st pathsafe.Stat, err error) {
	if c.swaps[f.top].hasOld {
		if err := c.takeOver(dst, f); err != nil {
			return st, err
		}
	}
	st, err = c.s.Identify(dst)
	if err == nil && st.Perm != f.Perm && !c.swaps[f.top].hasOld {
		if err = c.s.chmod(dst, f.Perm); err == nil {
			st, err = c.s.Identify(dst)
		}
	}
	if err != nil {
		return st, err
	}
	if c.unlisted == in.H && !c.swaps[f.top].hasOld {
		f.created.access = accessOf(pathsafe.Access{Perm: st.Perm, GID: st.GID})
		return st, nil
	}
	f.created.access, err = c.s.accessList(dst, st)
	if err == nil && !c.swaps[f.top].hasOld && f.created.access.Value().ACL == "" {
		c.unlisted = in.H
	}
	return st, err
}

func (c *copier) content(ctx context.Context, dst *pathsafe.File, f *copiedFile) error {
	var src Source
	err := c.s.Do("open source", f.path.String(), func() (err error) {
		src, err = f.Open(&c.sources)
		return err
	})
	if err != nil {
		return err
	}
	defer src.Close()
	if !c.noClone {
		err = c.s.clone(dst, src)
		if err == nil {
			c.progress(PhaseStage, f.Size)
			return nil
		}
		c.noClone = errors.Is(err, unix.EOPNOTSUPP) // else the next one may do; copying does in any case
	}
	return c.copyBytes(ctx, dst, src, f.Size)
}

// copyBytes copies until the end of src, but never more than one byte beyond
// size: that is enough to see that it is wrong.
func (c *copier) copyBytes(ctx context.Context, dst *pathsafe.File, src Source, size int64) error {
	for done := int64(0); done <= size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		wanted := min(copyChunk, size+1-done)
		n, err := c.s.copy(dst, src, wanted)
		if err != nil {
			return err
		}
		if n >= writeBackMin {
			c.s.startWriteBack(dst, done, n)
		}
		done += n
		c.progress(PhaseStage, n)
		if n < wanted { // the source ends here
			return nil
		}
	}
	return nil
}
