package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify"
	"golang.org/x/sys/unix"
)

// pieceSize is how many bytes of outputs are requested at once, and how large those are that are fetched
// together.
const pieceSize = 8 << 20

// Pull fetches the outputs into dir, the directory that the run was fetched into. Every byte is checked
// against the signature. Files get mode 0666, or 0777 where a change set signed that they can be
// executed, less the umask, and the time of the run's completion. An error leaves some of the files.
func (r *Run) Pull(ctx context.Context, dir *pathsafe.Dir, watch Watch) error {
	dirs := directoriesOf(func(yield func(pathsafe.Path) bool) {
		for e := range r.listing.Entries() {
			if !yield(e.Path) {
				return
			}
		}
	})
	if err := checkDirectories(dirs, r.Len()); err != nil {
		return &UnfitError{r.RunID(), "fetched", "", err}
	}
	room, err := machine.RoomOf(dir)
	if err != nil {
		return err
	}
	if err := room.Check(r.need(room, dirs)); err != nil {
		return err
	}
	return r.fetch(ctx, watch, func() *puller { return &puller{run: r, out: &writer{root: dir}} })
}

// need is what the outputs take, in so many directories.
func (r *Run) need(room *machine.Room, dirs int) machine.Need {
	one := room.Directory()
	need := machine.Need{Bytes: one.Bytes * uint64(dirs), Inodes: one.Inodes * uint64(dirs)}
	for output := range r.plan.ends {
		need = need.Plus(room.File(sizeOf(r.plan.of(output))))
	}
	return need
}

// Check fetches the outputs, checks them, and keeps nothing. A content at a place that was found right
// before, for a run of this store, is not fetched again; right can be nil.
func (r *Run) Check(ctx context.Context, watch Watch, right *Right) error {
	if right == nil {
		right = &Right{}
	}
	return r.fetch(ctx, watch, func() *puller { return &puller{run: r, right: right} })
}

// Right is which contents were found right at which places of a store. The zero Right has none.
type Right struct {
	mu  sync.Mutex
	set map[[sha256.Size]byte]bool
}

// has reports whether a place was found right, and remembers that it was if add is set.
func (r *Right) has(place [sha256.Size]byte, add bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if add {
		if r.set == nil {
			r.set = map[[sha256.Size]byte]bool{}
		}
		r.set[place] = true
	}
	return r.set[place]
}

// fetch fetches all outputs: small ones together, up to a piece, and large ones piece by piece.
func (r *Run) fetch(ctx context.Context, watch Watch, newPuller func() *puller) error {
	watch = watch.oneAtATime()
	if watch.Begin != nil {
		watch.Begin(r.Len(), r.Claimed())
	}
	entries := slices.Collect(r.listing.Entries())
	var jobs []job
	var in int64
	for output := range entries {
		size := sizeOf(r.plan.of(output))
		if len(jobs) == 0 || in+size > r.store.piece || output-jobs[len(jobs)-1].first >= together {
			jobs, in = append(jobs, job{first: output}), 0
		}
		in += size
		jobs[len(jobs)-1].end = output + 1
	}
	return inorder.Each(ctx, workers, len(jobs), newPuller, func(p *puller, i int) error {
		return p.fetch(ctx, entries, jobs[i], watch)
	})
}

// together is how many outputs are fetched together at most.
const together = 4096

// A job is some neighbouring outputs.
type job struct{ first, end int }

// A puller is a worker of a fetch.
type puller struct {
	run   *Run
	out   *writer // nil to keep nothing
	right *Right  // nil to fetch a content each time
	buf   []byte
}

// Close closes what the worker holds.
func (p *puller) Close() {
	if p.out != nil {
		p.out.Close()
	}
}

func (p *puller) fetch(ctx context.Context, entries []verify.Entry, j job, watch Watch) error {
	if size := sizeOf(p.run.plan.of(j.first)); size > p.run.store.piece { // alone
		err := p.large(ctx, entries[j.first], p.run.plan.of(j.first))
		watch.Moved(size)
		return err
	}
	var ranges ranges
	for output := j.first; output < j.end; output++ {
		if !p.isRight(entries[output], p.run.plan.of(output), false) {
			ranges.add(p.run.plan.of(output))
		}
	}
	p.buf = slices.Grow(p.buf[:0], int(ranges.size))[:ranges.size]
	for _, one := range ranges.all {
		if err := p.read(ctx, one.extent, p.buf[one.at:one.at+int64(one.n)]); err != nil {
			return err
		}
	}
	for output := j.first; output < j.end; output++ {
		extents := p.run.plan.of(output)
		if p.isRight(entries[output], extents, false) {
			continue
		}
		content := ranges.pick(p.buf, extents)
		if sha256.Sum256(content) != entries[output].Digest {
			var err error
			if content, err = p.reread(ctx, extents); err != nil {
				return err
			}
			if sha256.Sum256(content) != entries[output].Digest {
				return p.wrong(entries[output], extents)
			}
		}
		if err := p.write(ctx, entries[output], content); err != nil {
			return err
		}
		p.isRight(entries[output], extents, true)
		watch.Moved(int64(len(content)))
	}
	return nil
}

// isRight reports whether a content at some extents was found right, and remembers it if add is set.
func (p *puller) isRight(e verify.Entry, extents []extent, add bool) bool {
	if p.right == nil || len(extents) == 0 {
		return false
	}
	h := sha256.New()
	h.Write(e.Digest[:])
	for _, x := range extents {
		_, _ = fmt.Fprintf(h, "%s:%d:%d\n", p.run.plan.packs[x.pack].id, x.off, x.n)
	}
	return p.right.has([sha256.Size]byte(h.Sum(nil)), add)
}

// read reads an extent. A map can name any number of extents, and a driver may never look at ctx.
func (p *puller) read(ctx context.Context, e extent, dst []byte) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	of := p.run.plan.packs[e.pack].id
	err := p.run.store.read(ctx, of.key(), int64(e.off), dst)
	if errors.Is(err, fs.ErrNotExist) {
		return &FaultError{p.run.store.address, of.key(), "get", ErrMissing}
	}
	return err
}

// ErrMissing means that a pack of a run is not in the store.
var ErrMissing = errors.New("the pack is missing")

// reread reads a content once more: bytes can go wrong on the way.
func (p *puller) reread(ctx context.Context, extents []extent) ([]byte, error) {
	content := make([]byte, sizeOf(extents))
	at := uint32(0)
	for _, e := range extents {
		if err := p.read(ctx, e, content[at:at+e.n]); err != nil {
			return nil, err
		}
		at += e.n
	}
	return content, nil
}

func (p *puller) wrong(e verify.Entry, extents []extent) error {
	key := p.run.runKey()
	if len(extents) > 0 {
		key = p.run.plan.packs[extents[0].pack].id.key()
	}
	return &WrongError{p.run.store.address, key, fmt.Errorf("output %q is not what was signed", e.Path.String())}
}

func (r *Run) runKey() string { return runsPrefix + r.root }

// write makes a small output.
func (p *puller) write(ctx context.Context, e verify.Entry, content []byte) error {
	if p.out == nil {
		return nil
	}
	f, err := p.create(ctx, e)
	if f == nil || err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		return pathsafe.NoSpace(f, len(content), err)
	}
	return p.finish(f)
}

// create makes the file of an output; nil if it is a file of the run directory, which is there.
func (p *puller) create(ctx context.Context, e verify.Entry) (*os.File, error) {
	perm := uint32(0o666)
	if p.run.changes != nil && p.run.changes.Executable(e.Path.String()) {
		perm = 0o777
	}
	f, err := p.out.create(ctx, e.Path, perm)
	if above, ok := e.Path.Parent(); errors.Is(err, fs.ErrExist) && ok && above == p.run.runDir {
		return nil, nil
	}
	if errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EISDIR) {
		return nil, &WrongError{p.run.store.address, p.run.runKey(), fmt.Errorf("output %q and another file of the run cannot both exist", e.Path.String())}
	}
	return f, err
}

func (p *puller) finish(f *os.File) error {
	if p.run.completed.IsZero() {
		return nil
	}
	return pathsafe.FileNode(f).SetModTime(p.run.completed)
}

// large fetches an output piece by piece.
func (p *puller) large(ctx context.Context, e verify.Entry, extents []extent) error {
	if p.isRight(e, extents, false) {
		return nil
	}
	var f *os.File
	if p.out != nil {
		var err error
		if f, err = p.create(ctx, e); err != nil || f == nil {
			return err
		}
		defer f.Close()
	}
	for range 2 {
		digest, err := p.stream(ctx, f, extents)
		if err != nil {
			return err
		}
		if digest == e.Digest {
			p.isRight(e, extents, true)
			if f == nil {
				return nil
			}
			return p.finish(f)
		}
	}
	return p.wrong(e, extents)
}

// stream writes the bytes of extents to f, if it is not nil, and returns their SHA-256.
func (p *puller) stream(ctx context.Context, f *os.File, extents []extent) (digest [sha256.Size]byte, err error) {
	h := sha256.New()
	at := int64(0)
	for _, e := range extents {
		for e.n > 0 {
			part := extent{e.pack, e.off, min(e.n, uint32(p.run.store.piece))}
			p.buf = slices.Grow(p.buf[:0], int(part.n))[:part.n]
			if err := p.read(ctx, part, p.buf); err != nil {
				return digest, err
			}
			h.Write(p.buf)
			if f != nil {
				if _, err := f.WriteAt(p.buf, at); err != nil {
					return digest, pathsafe.NoSpace(f, len(p.buf), err)
				}
			}
			at += int64(part.n)
			e.off, e.n = e.off+part.n, e.n-part.n
		}
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// ranges are the parts of packs that are requested for some outputs: neighbours together, and each
// extent once.
type ranges struct {
	all  []placedRange
	at   map[extent]int64 // where an extent is in the buffer
	size int64
}

type placedRange struct {
	extent
	at int64
}

func (r *ranges) add(extents []extent) {
	if r.at == nil {
		r.at = map[extent]int64{}
	}
	for _, e := range extents {
		if _, ok := r.at[e]; ok {
			continue
		}
		r.at[e] = r.size
		if last := len(r.all) - 1; last >= 0 && r.all[last].pack == e.pack && r.all[last].off+r.all[last].n == e.off {
			r.all[last].n += e.n
		} else {
			r.all = append(r.all, placedRange{e, r.size})
		}
		r.size += int64(e.n)
	}
}

// pick returns the bytes of an output.
func (r *ranges) pick(buf []byte, extents []extent) []byte {
	if len(extents) == 1 {
		at := r.at[extents[0]]
		return buf[at : at+int64(extents[0].n)]
	}
	var content []byte
	for _, e := range extents {
		at := r.at[e]
		content = append(content, buf[at:at+int64(e.n)]...)
	}
	return content
}
