package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/spectrumfs/spectrum/verify"
)

// A packer puts the contents of outputs into packs and uploads them.
type packer struct {
	*push
	cancel context.CancelCauseFunc // ends the uploads
	plan   *plan
	placed map[id]int // the output with a content, by its digest
	buf    []byte     // of the pack that is filled
	index  int        // of that pack in the plan; -1 for none

	free    chan []byte // buffers for packs
	group   sync.WaitGroup
	mu      sync.Mutex // guards the plan, the record, and what follows
	err     error
	sent    map[int]bool // the packs of the plan that are uploaded
	waiting []waiting    // outputs whose content is not recorded yet, in order
}

// waiting is an output that is not recorded yet.
type waiting struct {
	output int
	digest id
}

// newPacker returns a packer, and the context of its uploads, for its methods.
func newPacker(ctx context.Context, p *push) (context.Context, *packer) {
	k := &packer{push: p, plan: &plan{}, placed: map[id]int{}, index: -1, free: make(chan []byte, uploads), sent: map[int]bool{}}
	ctx, k.cancel = context.WithCancelCause(ctx)
	for range uploads {
		k.free <- nil
	}
	return ctx, k
}

// stop ends the uploads that are under way.
func (k *packer) stop() {
	k.cancel(nil)
	k.group.Wait()
}

// place places an output whose content needs no upload: it is empty, or that of an output before it, or
// in packs of the record that can be relied on. of has the index in the plan of a pack of the record.
func (k *packer) place(o verify.Output, usable []bool, of map[int]int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	digest := id(o.Digest())
	if o.Size() == 0 {
		k.plan.add(nil)
		return true
	}
	if at, ok := k.placed[digest]; ok {
		k.plan.add(k.plan.of(at))
		return true
	}
	k.placed[digest] = len(k.plan.ends)
	extents := slices.Clone(k.record.find(digest))
	if len(extents) == 0 || slices.ContainsFunc(extents, func(e extent) bool { return !usable[e.pack] }) {
		return false
	}
	for i := range extents {
		in := int(extents[i].pack)
		at, ok := of[in]
		if !ok {
			at = len(k.plan.packs)
			k.plan.packs = append(k.plan.packs, k.record.packs[in])
			of[in] = at
		}
		extents[i].pack = uint32(at)
	}
	k.plan.add(extents)
	return true
}

// add puts a content into packs.
func (k *packer) add(ctx context.Context, o verify.Output) error {
	source, err := o.Open(nil)
	if err != nil {
		return err
	}
	defer source.Close()
	var extents []extent
	for off := int64(0); off < o.Size(); {
		if err := k.room(ctx, o.Size()-off); err != nil {
			return err
		}
		n := min(o.Size()-off, int64(k.target-len(k.buf)))
		at := len(k.buf)
		k.buf = slices.Grow(k.buf, int(n))[:at+int(n)]
		if got, err := source.ReadAt(k.buf[at:], off); int64(got) < n {
			return fmt.Errorf("output %q: %w", o.Path().String(), cmp.Or(err, io.ErrUnexpectedEOF))
		}
		extents = append(extents, extent{uint32(k.index), uint32(at), uint32(n)})
		off += n
	}
	k.mu.Lock()
	k.waiting = append(k.waiting, waiting{len(k.plan.ends), id(o.Digest())})
	k.plan.add(extents)
	k.mu.Unlock()
	k.watch.Moved(o.Size())
	return nil
}

// room begins another pack unless there is room for the rest of a file in this one, or for a part of a
// large file.
func (k *packer) room(ctx context.Context, rest int64) error {
	left := int64(k.target - len(k.buf))
	if k.index >= 0 && left > 0 && (rest <= left || rest > int64(k.target/8)) {
		return nil
	}
	if err := k.seal(ctx); err != nil {
		return err
	}
	select {
	case k.buf = <-k.free:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	k.buf = k.buf[:0]
	k.mu.Lock()
	defer k.mu.Unlock()
	k.index = len(k.plan.packs)
	k.plan.packs = append(k.plan.packs, pack{})
	return nil
}

// seal uploads the pack that was filled.
func (k *packer) seal(ctx context.Context) error {
	if k.index < 0 {
		return nil
	}
	content, index := k.buf, k.index
	k.buf, k.index = nil, -1
	k.group.Go(func() {
		stored, err := k.upload(ctx, content)
		if err == nil {
			err = k.uploaded(index, stored)
		}
		if err != nil {
			k.fail(err)
		}
		k.free <- content
	})
	return k.failure()
}

func (k *packer) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.err == nil {
		k.err = err
	}
	k.cancel(err)
}

func (k *packer) failure() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// finish waits until everything is uploaded.
func (k *packer) finish(ctx context.Context) error {
	err := k.seal(ctx)
	k.group.Wait()
	return cmp.Or(k.failure(), err)
}

// uploaded records a pack, and the contents all of whose packs are uploaded.
func (k *packer) uploaded(index int, stored pack) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plan.packs[index] = stored
	k.sent[index] = true
	if err := k.record.pushedPack(stored); err != nil {
		return err
	}
	left := k.waiting[:0]
	for _, w := range k.waiting {
		extents := slices.Clone(k.plan.of(w.output))
		if slices.ContainsFunc(extents, func(e extent) bool { return !k.sent[int(e.pack)] }) {
			left = append(left, w)
			continue
		}
		for i := range extents {
			extents[i].pack = uint32(k.record.known[k.plan.packs[extents[i].pack].id])
		}
		if err := k.record.pushedContent(w.digest, extents); err != nil {
			return err
		}
	}
	k.waiting = left
	return k.record.out.Flush()
}

// upload puts a pack into the store. A pack of this name that is there is not believed: it is one that
// this user uploaded, or it is read and compared. Where it cannot be relied on, some bytes at the end
// give the pack another name.
func (k *packer) upload(ctx context.Context, content []byte) (pack, error) {
	p := packOf(content)
	if _, isMarked := k.marked[p.id]; isMarked {
		return k.send(ctx, salted(content))
	}
	k.mu.Lock()
	_, isOurs := k.record.known[p.id]
	k.mu.Unlock()
	if isOurs {
		o, err := k.stat(ctx, p.id.key())
		if err == nil && o.Size == int64(p.size) {
			return p, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
	}
	p, err := k.send(ctx, content)
	if !errors.Is(err, fs.ErrExist) {
		return p, err
	}
	if k.isThere(ctx, p.id.key(), content) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.compared[p.id] = true
		return p, nil
	}
	return k.send(ctx, salted(content))
}

// send uploads a pack, unless there is one of its name.
func (k *packer) send(ctx context.Context, content []byte) (pack, error) {
	p := packOf(content)
	if err := k.putIfAbsent(ctx, p.id.key(), content); err != nil {
		return p, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.compared[p.id] = true
	k.done.Packs++
	k.done.Sent += int64(len(content))
	return p, nil
}

// checkLimits requires that the run can be read again.
func (k *packer) checkLimits() error {
	err := k.plan.checkClaims(func(yield func([sha256.Size]byte) bool) {
		for o := range k.bundle.Outputs() {
			if !yield(o.Digest()) {
				return
			}
		}
	})
	if err != nil || len(k.plan.packs) > maxPacks || len(k.plan.extents) > maxExtents {
		return &UnfitError{k.bundle.RunID(), "pushed", "", cmp.Or(err, errors.New("it is too large for a store"))}
	}
	return nil
}

func packOf(content []byte) pack { return pack{sha256.Sum256(content), uint32(len(content))} }

func salted(content []byte) []byte {
	var salt [16]byte
	rand.Read(salt[:])
	return slices.Concat(content, salt[:])
}
