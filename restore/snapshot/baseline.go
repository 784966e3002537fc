package snapshot

import (
	"slices"
	"time"
)

// A baseline is the snapshot that a take compares with.
type baseline struct {
	start   time.Time
	entries map[string]*Entry
	objects map[Digest]bool // those that it needs are durable
}

// baseline loads the newest snapshot of the root, of the whole root if there is
// one. Without one that can be read everything is read.
func (t *take) baseline() *baseline {
	p, ok, err := t.enter(keyOf(t.req.Root))
	if err != nil || !ok {
		return nil
	}
	defer p.close()
	headers, err := p.headers()
	if err != nil || len(headers) == 0 {
		return nil
	}
	slices.Reverse(headers)
	newest := headers[max(0, slices.IndexFunc(headers, func(h Header) bool { return h.Whole }))]
	snap, err := p.load(newest.fileName())
	if err != nil {
		return nil
	}
	return makeBaseline(snap)
}

func makeBaseline(snap *Snapshot) *baseline {
	b := &baseline{
		start:   snap.header.Time,
		entries: make(map[string]*Entry, len(snap.entries)),
		objects: make(map[Digest]bool, len(snap.entries)),
	}
	for i := range snap.entries {
		e := &snap.entries[i]
		b.entries[e.Path] = e
		if e.Type == File {
			b.objects[e.Digest] = true
		}
	}
	return b
}

// find returns the entry of what is still the very same, nil when there is none.
func (b *baseline) find(e *Entry) *Entry {
	if b == nil {
		return nil
	}
	old := b.entries[e.Path]
	if old == nil || !old.same(e) || b.racy(old) {
		return nil
	}
	return old
}

// A file that was changed, read and changed again within one tick of the clock
// of its file system has the same times twice. Which ticks there are: a second
// or two where the times have no fractions, else some milliseconds.
const (
	fineTick   = 100 * time.Millisecond
	coarseTick = 2500 * time.Millisecond
)

// racy tells whether an entry was changed so shortly before it was read that it
// may have changed since without showing it.
func (b *baseline) racy(e *Entry) bool {
	tick := fineTick
	if e.ChangeTime.Nanosecond() == 0 {
		tick = coarseTick
	}
	return !e.ChangeTime.Add(tick).Before(b.start)
}

func (b *baseline) needs(d Digest) bool { return b != nil && b.objects[d] }
