package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

const (
	// packTarget is how large packs are. A file of up to an eighth of it is in one pack.
	packTarget = 32 << 20
	// uploads is how many packs are uploaded at once; each is in memory.
	uploads = 3
	// rounds is how often the bytes of removed packs are uploaded again before the push gives up.
	rounds = 4
)

// A Watch has the callbacks for progress. The zero Watch reports nothing.
type Watch struct {
	Begin func(files int, bytes int64) // before the outputs are transferred
	Moved func(bytes int64)            // by one goroutine at a time
}

func (w Watch) oneAtATime() Watch {
	if w.Moved == nil {
		w.Moved = func(int64) {}
		return w
	}
	var mu sync.Mutex
	moved := w.Moved
	w.Moved = func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		moved(n)
	}
	return w
}

// Pushed is what a push did.
type Pushed struct {
	Address string // STORE@BUNDLE_ROOT
	Files   int    // the outputs of the run, and their bytes
	Bytes   int64
	Packs   int // what was uploaded of them: the rest was in the store
	Sent    int64
	Existed bool // the run was there already, exactly as it is now
}

// Push writes a bundle to the store. It must have been verified with [verify.Watch].Reread set. A push
// that was interrupted continues where it was if it is started again with the same record.
func (s *Store) Push(ctx context.Context, b *verify.Bundle, record *Record, watch Watch) (Pushed, error) {
	if err := checkFit(b); err != nil {
		return Pushed{}, err
	}
	p := &push{Store: s, bundle: b, record: record, watch: watch.oneAtATime(), compared: map[id]bool{}}
	for o := range b.Outputs() {
		p.done.Bytes += o.Size()
	}
	p.done.Address, p.done.Files = s.address+"@"+b.Root(), b.Len()
	if watch.Begin != nil {
		watch.Begin(p.done.Files, p.done.Bytes)
	}
	for range rounds {
		at, err := p.contents(ctx)
		if err != nil {
			return Pushed{}, err
		}
		isPublished, err := p.publish(ctx, at)
		if err != nil {
			return Pushed{}, err
		}
		if !isPublished {
			continue
		}
		lost, err := p.unsafe(ctx, at.packs)
		if err != nil {
			return Pushed{}, err
		}
		if len(lost) == 0 {
			return p.done, nil
		}
		p.done.Existed = false
	}
	return Pushed{}, &FaultError{s.address, "", "push", errors.New("packs are removed as soon as they are there; is \"spectrum store gc\" running with a grace period that is too short")}
}

// push is one call of Push.
type push struct {
	*Store
	bundle *verify.Bundle
	record *Record
	watch  Watch
	marked map[id]Object // by a collection, when the marks were read last
	done   Pushed

	compared map[id]bool // the packs that were sent, or read and found right, in this push
}

// unsafe returns those of some packs that a run must not rely on: they are missing, or a collection
// has marked them. The marks are read first: a collection removes the mark of a pack after the pack,
// so one without a mark that is still there will stay.
func (p *push) unsafe(ctx context.Context, packs []pack) ([]id, error) {
	var err error
	if p.marked, err = p.marks(ctx); err != nil {
		return nil, err
	}
	bad := make([]bool, len(packs))
	err = inorder.Each(ctx, workers, len(packs), func() struct{} { return struct{}{} }, func(_ struct{}, i int) error {
		_, isMarked := p.marked[packs[i].id]
		if isMarked {
			bad[i] = true
			return nil
		}
		o, err := p.stat(ctx, packs[i].id.key())
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		bad[i] = err != nil || o.Size != int64(packs[i].size)
		return nil
	})
	var lost []id
	for i := range packs {
		if bad[i] {
			lost = append(lost, packs[i].id)
		}
	}
	return lost, err
}

// marks are the packs that a collection has marked, and when.
func (s *Store) marks(ctx context.Context) (map[id]Object, error) {
	listed, err := s.list(ctx, marksPrefix)
	marks := make(map[id]Object, len(listed))
	for _, o := range listed {
		if of, ok := parseID(o.Key[len(marksPrefix):]); ok {
			marks[of] = o
		}
	}
	return marks, err
}

// contents uploads what is not in the store, and returns the plan of the run.
func (p *push) contents(ctx context.Context) (*plan, error) {
	usable, err := p.usable(ctx)
	if err != nil {
		return nil, err
	}
	ctx, k := newPacker(ctx, p)
	defer k.stop()
	of := map[int]int{} // by the index of a pack in the record
	for o := range p.bundle.Outputs() {
		if k.place(o, usable, of) {
			p.watch.Moved(o.Size())
			continue
		}
		if err := k.add(ctx, o); err != nil {
			return nil, cmp.Or(k.failure(), err)
		}
	}
	if err := k.finish(ctx); err != nil {
		return nil, err
	}
	k.plan.runID = p.bundle.RunID()
	return k.plan, k.checkLimits()
}

// usable finds the packs of the record with contents of this run that can be relied on, by their index
// in it.
func (p *push) usable(ctx context.Context) ([]bool, error) {
	wanted := make([]bool, len(p.record.packs))
	for o := range p.bundle.Outputs() {
		for _, e := range p.record.find(id(o.Digest())) {
			wanted[e.pack] = true
		}
	}
	var packs []pack
	for i, is := range wanted {
		if is {
			packs = append(packs, p.record.packs[i])
		}
	}
	lost, err := p.unsafe(ctx, packs)
	for _, one := range lost {
		wanted[p.record.known[one]] = false
	}
	return wanted, err
}

// publish writes the run, which makes it visible. Another one in its place may be a good one: it is replaced
// only when the packs of the record are read and found right. If one is not, it is forgotten, and nothing
// is published.
func (p *push) publish(ctx context.Context, at *plan) (bool, error) {
	artifacts := map[string]verify.Artifact{}
	for a := range p.bundle.Artifacts() {
		artifacts[a.Name()] = a
	}
	raw, err := writeRun(func(name string) ([]byte, error) {
		switch name {
		case mapFile:
			return at.appendMap(nil), nil
		case bundle.ChangesFile, blocksFile:
			return metadataOf(p.bundle, name), nil
		}
		return readArtifact(artifacts[name])
	})
	if err != nil {
		return false, err
	}
	key := runsPrefix + p.bundle.Root()
	err = p.putIfAbsent(ctx, key, raw)
	if !errors.Is(err, fs.ErrExist) {
		return true, err
	}
	if p.isThere(ctx, key, raw) {
		p.done.Existed = true
		return true, nil
	}
	if areRight, err := p.distrust(ctx, at); err != nil || !areRight {
		return false, err
	}
	return true, p.put(ctx, key, raw)
}

func readArtifact(a verify.Artifact) ([]byte, error) {
	source, err := a.Open()
	if err != nil {
		return nil, err
	}
	defer source.Close()
	raw := make([]byte, a.Size())
	if n, err := source.ReadAt(raw, 0); n < len(raw) {
		return nil, fmt.Errorf("%s: %w", a.Name(), err)
	}
	return raw, nil
}
