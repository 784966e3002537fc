package snapshot

import (
	"slices"
	"sync"
	"time"
)

// A baseline is the snapshot that a take compares with. A nil one has nothing.
type baseline struct {
	synced  time.Time // when the sync began before its content was read; zero: nothing is taken over
	entries []Entry
	parts   map[Digest]bool        // which were read
	objects func() map[Digest]bool // those that it needs are durable
}

// baseline loads the newest snapshot of the root, of the whole root if there is
// one. Without one that can be read everything is read.
func (t *take) baseline() *baseline {
	p, ok, err := t.enter(keyOf(t.req.Root))
	if err != nil || !ok {
		return nil
	}
	defer p.Close()
	headers, _, err := p.survey()
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
	b := &baseline{synced: snap.header.Synced, entries: snap.entries, parts: make(map[Digest]bool, len(snap.parts))}
	for _, p := range snap.parts {
		b.parts[p.digest] = true
	}
	b.objects = sync.OnceValue(func() map[Digest]bool {
		all := make(map[Digest]bool, len(b.entries))
		for i := range b.entries {
			if e := &b.entries[i]; e.Type == File {
				all[e.Digest] = true
			}
		}
		return all
	})
	return b
}

// versions has a file as it is now, and as the baseline knows it.
type versions struct{ now, then *Entry }

// unchanged finds those files among entries, which are in the order of their
// paths, that are yet to be read and are still the very same.
func (b *baseline) unchanged(entries []Entry) (same []versions) {
	if b == nil {
		return nil
	}
	old := b.entries
	for i := range entries {
		e := &entries[i]
		for len(old) > 0 && comparePaths(old[0].Path, e.Path) < 0 {
			old = old[1:]
		}
		if len(old) == 0 {
			break
		}
		if then := &old[0]; e.unread && then.Path == e.Path && then.same(e) && !b.racy(then) {
			same = append(same, versions{e, then})
		}
	}
	return same
}

// Ticks of the clock that gives the times of change, at most: a second or two where the
// times have no fractions, else 10 ms (CONFIG_HZ=100), with room.
const (
	fineTick   = 30 * time.Millisecond
	coarseTick = 2500 * time.Millisecond
)

// racy reports whether an entry may have changed since it was read without showing it:
// no sync is known that began a tick after its time of change, and ended before it was
// read.
func (b *baseline) racy(e *Entry) bool {
	tick := fineTick
	if e.ChangeTime.Nanosecond() == 0 {
		tick = coarseTick
	}
	return b.synced.IsZero() || !e.ChangeTime.Add(tick).Before(b.synced)
}

func (b *baseline) needs(d Digest) bool { return b != nil && b.objects()[d] }
