package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sort"
	"time"
)

// The sizes of reading by ranges.
const (
	// smallestRange is requested for a read at random, and largestRange in the end for a reader that goes
	// on and on.
	smallestRange = 256 << 10
	largestRange  = 8 << 20

	// flightsAtOnce are the requests of a Ranges at a time, and aheadAtOnce those of them that no reader
	// waits for.
	flightsAtOnce = 8
	aheadAtOnce   = 4

	// keptBytes bounds what is kept of answers, and aheadBytes what is on its way before no reader has to
	// wait for it.
	keptBytes  = 16 << 20
	aheadBytes = 8 << 20

	// tries is how often a request that has no answer is done within the patience of a reader.
	tries = 3
)

// Ranges reads the outputs of a run by ranges of its packs. Nothing of what it returns is checked: the
// reader of a signed block table does that. It is safe for concurrent use: readers of the same bytes share
// one request. A read that has no answer within the patience of the store, or is slower than its pace, is
// a [FaultError].
type Ranges struct {
	store   *Store
	key     string // of the run
	plan    *plan
	begins  []int64       // where each extent begins if all are put in a row, and where the last one ends
	flights chan struct{} // a place for each request at a time
	ahead   chan struct{} // a place for each of those that no reader waits for

	cells cells
}

// Ranges returns a reader of the outputs, which have these signed sizes. It ends when it is closed. The
// Run is not needed any more.
func (r *Run) Ranges(sizes iter.Seq[int64]) (*Ranges, error) {
	g := &Ranges{
		store: r.store.impatient(), key: r.runKey(), plan: r.plan, begins: make([]int64, 1, len(r.plan.extents)+1),
		flights: make(chan struct{}, flightsAtOnce), ahead: make(chan struct{}, aheadAtOnce),
	}
	output := 0
	for size := range sizes {
		if output == len(r.plan.ends) || sizeOf(r.plan.of(output)) != size {
			return nil, &WrongError{r.store.address, g.key, fmt.Errorf("%s: output %d does not have the %d bytes that are signed", mapFile, output, size)}
		}
		output++
	}
	for _, e := range r.plan.extents {
		g.begins = append(g.begins, g.begins[len(g.begins)-1]+int64(e.n))
	}
	g.cells.all, g.cells.flying = map[cellKey]*cell{}, map[*flight]struct{}{}
	return g, nil
}

// impatient is the store with less patience for one request, so that a reader has a second one if there
// is no answer to the first. A directory is not asked again.
func (s *Store) impatient() *Store {
	less := *s
	if _, isDirectory := s.driver.(*aside); !isDirectory {
		less.patience = s.patience / tries
	}
	return &less
}

// Close ends all requests. Reads are errors from then on.
func (g *Ranges) Close() error {
	g.cells.close()
	return nil
}

// Open returns the content of an output.
func (g *Ranges) Open(output int) *Content {
	first := uint32(0)
	if output > 0 {
		first = g.plan.ends[output-1]
	}
	return &Content{g, g.begins[first], g.begins[g.plan.ends[output]]}
}

// Wrong is the error of an output whose bytes are not those that were signed, also when they are requested
// once more.
func (g *Ranges) Wrong(output int, name string, err error) error {
	key := g.key
	if extents := g.plan.of(output); len(extents) > 0 {
		key = g.plan.packs[extents[0].pack].id.key()
	}
	return &WrongError{g.store.address, key, fmt.Errorf("output %q is not what was signed: %w", name, err)}
}

// Content is the content of an output, unchecked.
type Content struct {
	of         *Ranges
	begin, end int64 // in the row of all extents
}

// ReadAt is [Content.ReadContext] that is never interrupted.
func (c *Content) ReadAt(p []byte, off int64) (int, error) {
	return c.ReadContext(context.Background(), p, off)
}

// Limit returns the context of one read of n bytes in all: when that takes longer than the patience with
// the store and the time of the bytes at the slowest rate, it is done, with a [FaultError] as its cause.
func (c *Content) Limit(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	return c.of.limit(ctx, c.begin, n)
}

// ReadContext fills p with bytes from off on. When ctx is done it returns the cause of that. It takes no
// longer than [Content.Limit] allows.
func (c *Content) ReadContext(ctx context.Context, p []byte, off int64) (int, error) {
	return c.read(ctx, p, off, false)
}

// ReadAgain requests bytes once more that were wrong.
func (c *Content) ReadAgain(ctx context.Context, p []byte, off int64) (int, error) {
	return c.read(ctx, p, off, true)
}

// Close does nothing: a content holds nothing.
func (c *Content) Close() error { return nil }

func (c *Content) read(ctx context.Context, p []byte, off int64, again bool) (int, error) {
	if off < 0 {
		return 0, errors.New("negative offset")
	}
	want := p[:min(int64(len(p)), max(0, c.end-c.begin-off))]
	if len(want) > 0 {
		if err := c.of.read(ctx, want, c.begin+off, again); err != nil {
			return 0, err
		}
	}
	if len(want) < len(p) {
		return len(want), io.EOF
	}
	return len(p), nil
}

// read fills dst with the bytes at a place in the row of all extents, within the patience with the store.
// A request can be that of another reader, or for more than is needed, and fail or be late because of
// that: then what is needed is requested alone.
func (g *Ranges) read(ctx context.Context, dst []byte, at int64, again bool) error {
	ctx, cancel := g.limit(ctx, at, len(dst))
	defer cancel()
	parts := slices.Collect(g.parts(at, at+int64(len(dst))))
	if again {
		return g.copy(ctx, ctx, dst, parts, g.take(parts, at, dropRight))
	}
	joined, stop := context.WithTimeoutCause(ctx, g.patience()/2, errLate)
	defer stop()
	err := g.copy(ctx, joined, dst, parts, g.take(parts, at, goAhead))
	if failed, is := errors.AsType[*cellError](err); is && failed.mayPass {
		err = g.copy(ctx, ctx, dst, parts, g.take(parts, at, joinNone))
	}
	return err
}

// patience is how long a read may wait for the store.
func (g *Ranges) patience() time.Duration {
	if g.store.isDirectory() {
		return g.store.patience
	}
	return tries * g.store.patience
}

// limit is [Content.Limit] for bytes at a place in the row of all extents.
func (g *Ranges) limit(ctx context.Context, at int64, n int) (context.Context, context.CancelFunc) {
	key := g.key
	for p := range g.parts(at, at+1) {
		key = g.plan.packs[p.pack].id.key()
	}
	late := &FaultError{g.store.address, key, "get", g.store.stalled()}
	return context.WithTimeoutCause(ctx, g.patience()+timeOf(int64(n)), late)
}

// errLate is the reason to wait no longer for the request of another reader.
var errLate = errors.New("the request of another reader is late")

// taking is how cells are taken.
type taking int

const (
	goAhead   taking = iota // request also what the reader probably needs next
	joinNone                // wait for no request of another reader
	dropRight               // drop what is here before
)

// A cellError is the error of a cell that did not come.
type cellError struct {
	err     error
	mayPass bool // a request of the reader alone may succeed
}

func (e *cellError) Error() string { return e.err.Error() }
func (e *cellError) Unwrap() error { return e.err }

// A part is a part of a pack.
type part struct {
	pack uint32
	off  int64
	n    int64
}

// parts yields where the bytes from one place to another in the row of all extents are.
func (g *Ranges) parts(from, to int64) iter.Seq[part] {
	return func(yield func(part) bool) {
		i := sort.Search(len(g.plan.extents), func(i int) bool { return g.begins[i+1] > from })
		for ; i < len(g.plan.extents) && g.begins[i] < to; i++ {
			e := g.plan.extents[i]
			skip := max(0, from-g.begins[i])
			if !yield(part{e.pack, int64(e.off) + skip, min(int64(e.n), to-g.begins[i]) - skip}) {
				return
			}
		}
	}
}

// A taken cell is one that a reader waits for.
type taken struct {
	*cell
	isOwn bool // the reader has requested it
}

// A wait is what a reader waits for.
type wait struct {
	needed  []taken
	flights []*flight // that the reader began, also of what it needs next
}

// take returns the cells of some parts. Those that are neither here nor on their way are requested. The
// caller leaves them.
func (g *Ranges) take(parts []part, at int64, how taking) wait {
	g.cells.mu.Lock()
	defer g.cells.mu.Unlock()
	l := launch{of: g}
	var w wait
	size := int64(0)
	for _, p := range parts {
		size += p.n
		for key := range p.cells() {
			if how == dropRight {
				g.cells.drop(key)
			}
			c := g.cells.use(key)
			isOwn := c == nil || how == joinNone && c.place == nil
			if isOwn {
				c = l.add(key)
			}
			c.of.readers++
			w.needed = append(w.needed, taken{c, isOwn})
		}
	}
	if how == goAhead {
		l.goAhead(g.cells.streams.next(at, size))
	}
	for _, f := range l.flights {
		go g.fly(g.cells.fly(f), f)
	}
	w.flights = l.flights
	return w
}

// copy waits for cells, for those of other readers until joined is done, and fills dst with the parts that
// they are of. At the end it leaves them.
func (g *Ranges) copy(ctx, joined context.Context, dst []byte, parts []part, w wait) error {
	isGone := false
	defer func() { g.cells.leave(w, isGone) }()
	next := 0
	for _, p := range parts {
		for key := range p.cells() {
			c := w.needed[next]
			next++
			until := joined
			if c.isOwn {
				until = ctx
			}
			select {
			case <-c.ready:
			default:
				select {
				case <-c.ready:
				case <-until.Done():
					isGone = true
					if ctx.Err() != nil {
						return context.Cause(ctx)
					}
					return &cellError{context.Cause(until), true}
				}
			}
			if c.err != nil {
				return &cellError{c.err, !c.isOwn || c.isWide && !errors.Is(c.err, errStalled)}
			}
			begin := int64(key.n) * cellSize
			from := max(p.off, begin)
			n := min(p.off+p.n, begin+int64(len(c.buf))) - from
			if n < min(p.off+p.n, begin+cellSize)-from {
				return io.ErrUnexpectedEOF
			}
			dst = dst[copy(dst, c.buf[from-begin:][:n]):]
		}
	}
	return nil
}
