package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
)

// A flight is a request for neighbouring cells of one pack.
type flight struct {
	pack, first uint32
	cells       []*cell
	isWide      bool          // it has more than its reader needs
	place       chan struct{} // that it has taken; nil until it has
	ahead       chan struct{} // the same if no reader waits for it

	// Under cells.mu.
	readers int // that wait for its cells, for each cell
	end     context.CancelFunc
}

// fly begins a flight, under mu. The context is done when the flight has ended or its last reader has given up.
func (cs *cells) fly(f *flight) context.Context {
	ctx, end := context.WithCancel(context.Background())
	f.end = end
	cs.flying[f] = struct{}{}
	if cs.closed {
		end()
	}
	return ctx
}

// landed ends a flight.
func (cs *cells) landed(f *flight) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	f.end()
	f.cells = nil // a cell that is kept must not keep the others
	delete(cs.flying, f)
}

// leave is called by a reader at the end of its wait. If it has gone before its cells are here, those of
// its flights that have no other reader end, and the next reader of their cells requests them again.
func (cs *cells) leave(w wait, isGone bool) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for _, c := range w.needed {
		c.of.readers--
		if isGone {
			w.flights = append(w.flights, c.of)
		}
	}
	if !isGone {
		return
	}
	for _, f := range w.flights {
		if _, flies := cs.flying[f]; !flies || f.readers > 0 {
			continue
		}
		f.end()
		for _, lost := range f.cells {
			if cs.all[lost.key] == lost && lost.place == nil {
				delete(cs.all, lost.key)
			}
		}
	}
}

// close ends all flights, also those that begin later.
func (cs *cells) close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
	for f := range cs.flying {
		f.end()
	}
}

// release gives back what the flight has taken.
func (f *flight) release() {
	for _, place := range []chan struct{}{f.place, f.ahead} {
		if place != nil {
			<-place
		}
	}
}

// launch collects the flights of one read; under cells.mu.
type launch struct {
	of      *Ranges
	flights []*flight
}

// extend puts a cell at the end of the last flight, if it is the next one there.
func (l *launch) extend(key cellKey) (*cell, bool) {
	if len(l.flights) == 0 {
		return nil, false
	}
	f := l.flights[len(l.flights)-1]
	if f.pack != key.pack || uint64(key.n) != uint64(f.first)+uint64(len(f.cells)) || len(f.cells) == largestRange/cellSize {
		return nil, false
	}
	return l.of.cells.begin(key, f), true
}

// add requests a cell that a reader waits for.
func (l *launch) add(key cellKey) *cell {
	if c, ok := l.extend(key); ok {
		return c
	}
	f := &flight{pack: key.pack, first: key.n}
	l.flights = append(l.flights, f)
	return l.of.cells.begin(key, f)
}

// goAhead requests what no reader waits for, from one place to another in the row of all extents, as far
// as there is room for it.
func (l *launch) goAhead(s *stream, from, to int64) {
	at := from
	defer func() { s.ahead = max(s.ahead, at) }()
	for p := range l.of.parts(from, to) {
		for key := range p.cells() {
			if l.of.cells.use(key) != nil {
				continue
			}
			if (l.of.cells.coming+1)*cellSize > aheadBytes || !l.addAhead(key) {
				return
			}
		}
		at += p.n
	}
}

// addAhead requests one more cell, unless that takes a request for which there is no place now.
func (l *launch) addAhead(key cellKey) bool {
	if _, ok := l.extend(key); ok {
		l.flights[len(l.flights)-1].isWide = true
		return true
	}
	f := &flight{pack: key.pack, first: key.n, isWide: true}
	select {
	case l.of.ahead <- struct{}{}:
		f.ahead = l.of.ahead
	default:
		return false
	}
	select {
	case l.of.flights <- struct{}{}:
		f.place = l.of.flights
	default:
		<-l.of.ahead
		return false
	}
	l.of.cells.begin(key, f)
	l.flights = append(l.flights, f)
	return true
}

// fly does the request of a flight.
func (g *Ranges) fly(ctx context.Context, f *flight) {
	defer g.cells.landed(f)
	defer f.release()
	if f.place == nil {
		select {
		case g.flights <- struct{}{}:
			f.place = g.flights
		case <-ctx.Done():
		}
	}
	key := g.plan.packs[f.pack].id.key()
	begin := int64(f.first) * cellSize
	end := min(begin+int64(len(f.cells))*cellSize, int64(g.plan.packs[f.pack].size))
	got := 0
	ctx, cancel := context.WithTimeoutCause(ctx, g.patience()+timeOf(end-begin), g.store.stalled())
	defer cancel()
	err := g.store.again(ctx, "get", key, 0, func(ctx context.Context) error {
		at := begin + int64(got)*cellSize
		if at >= end {
			return nil
		}
		body, err := g.store.driver.Get(ctx, key, at, end-at)
		if err != nil {
			return err
		}
		defer body.Close()
		for ; at < end; at += cellSize {
			buf := make([]byte, min(cellSize, end-at))
			if _, err := io.ReadFull(body, buf); err != nil {
				return Passing(errors.New("the answer is too short: " + err.Error())) // and no end of an output
			}
			g.cells.arrived(f.cells[got], buf)
			got++
		}
		_ = atEnd(body) // more than was requested is not read
		return nil
	})
	if _, isFault := errors.AsType[*FaultError](err); err != nil && !isFault {
		if errors.Is(err, fs.ErrNotExist) {
			err = ErrMissing
		}
		err = &FaultError{g.store.address, key, "get", err}
	}
	for _, c := range f.cells[got:] {
		g.cells.failed(c, err, f.isWide)
	}
}
