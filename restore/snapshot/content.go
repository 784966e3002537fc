package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"io/fs"
	"iter"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

const (
	// chunk is how many bytes are read at a time. A file that is not larger is
	// known whole before anything is written.
	chunk = 1 << 20
	// cloneMin is from how many bytes on sharing blocks is worth its calls.
	cloneMin = 128 << 10
	// holeSize is the size and alignment of the zeros that become a hole.
	holeSize = 4 << 10
)

// The bounds of a batch: neighbours that one worker does.
const (
	batchFiles = 256
	batchBytes = 4 << 20
)

// batches divides the matching entries into runs of one directory.
func batches(entries []Entry, wanted func(*Entry) bool) (all [][]*Entry) {
	var bytes int64
	var last string
	for i := range entries {
		e := &entries[i]
		if !wanted(e) {
			continue
		}
		in, _ := split(e.Path)
		n := len(all) - 1
		if n < 0 || in != last || len(all[n]) >= batchFiles || bytes+e.Size > batchBytes {
			all, bytes, last = append(all, nil), 0, in
			n++
		}
		all[n] = append(all[n], e)
		bytes += e.Size
	}
	return all
}

// contents reads the files that have to be read, and brings their objects.
func (t *take) contents(ctx context.Context, entries []Entry) error {
	unread := func(e *Entry) bool { return e.unread }
	if err := t.survey(ctx, only(entries, unread)); err != nil {
		return err
	}
	if err := t.room(ctx, entries); err != nil {
		return err
	}
	work := "keeping"
	if t.looks {
		work = "reading"
	}
	t.sysHook.watch.begin(work, only(entries, unread))
	parts := batches(entries, unread)
	var mu sync.Mutex
	var readers []*reader
	defer func() {
		for _, r := range readers {
			r.close()
		}
	}()
	start := func() *reader {
		mu.Lock()
		defer mu.Unlock()
		r := &reader{take: t, at: descent{base: t.root}, name: strconv.Itoa(len(readers)), buf: make([]byte, chunk)}
		readers = append(readers, r)
		return r
	}
	var later leased
	err := inorder.Each(ctx, 0, len(parts), start, func(r *reader, i int) error {
		for _, e := range parts[i] {
			err := r.file(ctx, e)
			if errors.Is(err, pathsafe.ErrLeased) {
				later.add(e)
				continue
			}
			if err != nil {
				return &scanError{e.Path, asMounted(err)}
			}
		}
		return nil
	})
	if err != nil || len(later.files) == 0 {
		return err
	}
	return start().await(ctx, later.files)
}

// survey rejects files of which more than [bundle.MaxHoles] bytes are holes, before any is
// read.
func (t *take) survey(ctx context.Context, files iter.Seq[*Entry]) error {
	at := descent{base: t.root}
	defer at.close()
	return bundle.CheckHoles(ctx, func(yield func(bundle.Suspect) bool) {
		for e := range files {
			count := func() (holes, size int64, err error) { return t.holesOf(&at, e.Path) }
			if e.holes > 0 && !yield(bundle.Suspect{Path: e.Path, Holes: e.holes, Count: count}) {
				return
			}
		}
	}, ErrHoles)
}

// holesOf counts the holes of the file at a path of the root: none of one that cannot be
// opened, since reading it finds out why.
func (t *take) holesOf(at *descent, path string) (holes, size int64, err error) {
	in, name := split(path)
	d, err := at.open(in)
	if err != nil {
		return 0, 0, nil //nolint:nilerr // see above
	}
	f, st, err := d.OpenFile(name)
	if err != nil {
		return 0, 0, nil //nolint:nilerr // see above
	}
	_, holes, err = t.sysHook.holes(f, st.Size)
	return holes, st.Size, errors.Join(err, t.sysHook.CloseFile(f))
}

// ErrHoles is an [ErrRefused]: more than [bundle.MaxHoles] bytes of the files to be kept are
// holes, which take no room and all the time of hashing.
var ErrHoles = refuse("more of the files to be kept are holes than is hashed")

// A reader is a worker of contents. Its objects go into a directory of its own,
// so that two of them need not wait for each other.
type reader struct {
	*take
	at      descent
	name    string
	own     dir
	buf     []byte
	only    bool // the beginning of a file is read that may grow
	noClone atomic.Bool
}

func (r *reader) close() { r.at.close() }

// care is how exact the content of a file is read that others may write to.
type care int

const (
	atRest care = iota // every write while it is read, or later, is found
	steady             // it has the same times before and after
	anyhow             // what it has at its beginning, up to the size that it had
)

// file reads a file that stays the same meanwhile. One that is written to all the time,
// and whose times are the same before and after nevertheless, is kept as it was read and
// reported; before an action it is an error. Where others may go on writing then, one whose times
// change too is kept and reported as well.
func (r *reader) file(ctx context.Context, e *Entry) error {
	most := steady
	switch {
	case r.still():
		most = atRest
	case r.req.Live:
		most = anyhow
	}
	for with := atRest; with <= most; with++ {
		for range tries {
			err := r.once(ctx, e, with)
			if e.mayBreak(r.req.Live) && errors.As(err, new(*sourceError)) && e.breaks(err) {
				return nil
			}
			if err == nil && with > atRest {
				r.note(&r.restless, e.Path)
			}
			if !errors.Is(err, errUnsettled) {
				return err
			}
		}
	}
	if most == anyhow { // it becomes shorter all the time
		e.gone, e.unread = true, false
		r.note(&r.leftOut, e.Path)
		return nil
	}
	return &ChangedError{e.Path, errUnsettled.Error()}
}

// mayBreak reports whether a snapshot may lack the entry: a requested name is required, except
// for a rollback, which leaves it as it is.
func (e *Entry) mayBreak(live bool) bool { return live || !e.Asked }

func (r *reader) once(ctx context.Context, e *Entry, with care) error {
	in, name := split(e.Path)
	d, err := r.at.open(in)
	if err != nil {
		return r.missing(e, err)
	}
	f, st, err := d.OpenFile(name)
	if err != nil {
		return ofSource(r.missing(e, err))
	}
	defer f.Close()
	if !st.IsOn(r.mount) {
		return pathsafe.ErrCrossesMount
	}
	if with == atRest && r.fresh(st.ChangeTime) {
		if st, err = r.rested(ctx, f, st); err != nil {
			return err
		}
	}
	now := makeEntry(e.Path, st)
	now.Asked = e.Asked
	r.only = with == anyhow
	if err := r.read(ctx, f, &now); err != nil {
		return err
	}
	st, err = r.sysHook.Identify(f)
	if err != nil {
		return ofSource(err)
	}
	if after := makeEntry(e.Path, st); with < anyhow && !after.same(&now) {
		return errUnsettled
	}
	*e = now
	return nil
}

// missing leaves a file out that is not there any more. Where another thing stands in its
// place, or in that of a directory above, all is looked at again.
func (r *reader) missing(e *Entry, err error) error {
	if errors.Is(err, fs.ErrNotExist) || r.last && isReplaced(err) {
		e.gone, e.unread = true, false
		r.note(&r.leftOut, e.Path)
		return nil
	}
	if !e.Asked && errors.Is(err, fs.ErrPermission) {
		e.bar()
		return nil
	}
	return asReplaced(err)
}

// isReplaced reports whether an error of opening or reading an entry means that it was
// replaced: by another type, or by another inode (ESTALE).
func isReplaced(err error) bool {
	if errors.As(err, new(*storeError)) {
		return false
	}
	for _, why := range []error{errReplaced, pathsafe.ErrNotRegular, pathsafe.ErrSymlink, unix.ENOTDIR, unix.ELOOP, unix.ESTALE} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}

// A storeError is an error of writing to the store, not of the root.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

func ofStore(err error) error {
	if err == nil {
		return nil
	}
	return &storeError{err}
}

// A sourceError is one of reading a file of the root.
type sourceError struct{ err error }

func (e *sourceError) Error() string { return e.err.Error() }
func (e *sourceError) Unwrap() error { return e.err }

func ofSource(err error) error {
	if err == nil {
		return nil
	}
	return &sourceError{err}
}

// asReplaced makes an error that isReplaced one that all is looked at again for.
func asReplaced(err error) error {
	if err == nil || errors.Is(err, errReplaced) || !isReplaced(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errReplaced, err)
}

// asMounted is asReplaced where there was no mount a moment ago.
func asMounted(err error) error {
	if errors.Is(err, pathsafe.ErrCrossesMount) {
		return fmt.Errorf("%w: %w", errReplaced, err)
	}
	return asReplaced(err)
}

func (r *reader) read(ctx context.Context, f *os.File, e *Entry) (err error) {
	if e.xattrs, err = readXattrs(r.sysHook, e.Path, pathsafe.FileNode(f)); err != nil {
		return ofSource(err)
	}
	if e.Size >= holeSize {
		var holes int64
		if e.Sparse, holes, err = r.sysHook.holes(f, e.Size); err != nil {
			return ofSource(err)
		}
		if holes > bundle.MaxHoles { // it has grown since the survey
			return &bundle.HolesError{Path: e.Path, Size: e.Size, Err: ErrHoles}
		}
	}
	if e.Size > int64(len(r.buf)) {
		return r.large(ctx, f, e)
	}
	n, err := r.sysHook.read(f, r.buf[:e.Size])
	if err != nil {
		return ofSource(err)
	}
	if int64(n) != e.Size {
		return errUnsettled
	}
	e.Digest = sha256.Sum256(r.buf[:n])
	return r.bring(e, func(name string) error { return r.small(name, e) })
}

// bring makes the object of e, as name in the reader's own directory, unless
// there is one.
func (r *reader) bring(e *Entry, write func(name string) error) error {
	if r.looks {
		return nil
	}
	there, err := r.objects.known(e.Digest, e.Size, r.base().needs(e.Digest))
	if err != nil || there {
		return err
	}
	if err := r.enterOwn(); err != nil {
		return err
	}
	if !r.objects.claim(e.Digest, e.Size, r.own) {
		return nil
	}
	return ofStore(write(e.Digest.name()))
}

func (r *reader) enterOwn() (err error) {
	if r.own.H == nil {
		r.own, err = r.objects.room(r.name)
	}
	return ofStore(err)
}

func (r *reader) small(name string, e *Entry) error {
	f, err := r.own.Create(name, objectPerm)
	if err != nil {
		return err
	}
	w := filler{s: r.sysHook, f: f, sparse: e.Sparse}
	err = w.write(r.buf[:e.Size])
	if err == nil {
		err = w.end()
	}
	return errors.Join(err, r.sysHook.CloseFile(f))
}

// large copies and hashes in one go.
func (r *reader) large(ctx context.Context, f *os.File, e *Entry) error {
	if r.looks || r.tight {
		if err := r.copy(ctx, nil, f, e); err != nil || r.looks {
			return err
		}
		there, err := r.objects.known(e.Digest, e.Size, r.base().needs(e.Digest))
		if err != nil || there {
			return err
		}
		if err := r.sysHook.rewind(f); err != nil {
			return err
		}
	}
	if err := r.enterOwn(); err != nil {
		return err
	}
	const temp = "large"
	dst, err := r.own.Create(temp, objectPerm)
	if err != nil {
		return ofStore(err)
	}
	err = r.copy(ctx, dst, f, e)
	if err := errors.Join(err, r.sysHook.CloseFile(dst)); err != nil {
		return errors.Join(err, r.own.Unlink(temp))
	}
	brought := false
	err = r.bring(e, func(name string) error {
		brought = true
		return r.own.rename(temp, r.own, name)
	})
	if err != nil || brought {
		return err
	}
	return r.own.Unlink(temp)
}

func (r *reader) copy(ctx context.Context, dst, src *os.File, e *Entry) error {
	sum := sha256.New()
	c := copier{s: r.sysHook, buf: r.buf, noClone: &r.noClone, only: r.only}
	n, err := c.copy(ctx, dst, src, sum, e)
	if err == nil && n != e.Size {
		err = errUnsettled
	}
	sum.Sum(e.Digest[:0])
	return err
}
