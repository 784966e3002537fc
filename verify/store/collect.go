package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"
)

// Grace is the default grace period of a collection.
const Grace = 7 * 24 * time.Hour

// Collected is what a collection did.
type Collected struct {
	Runs    int   // that were read
	Packs   int   // that are in use
	Marked  int   // packs that no run refers to, marked now: a later collection removes them
	Waiting int   // packs that no run refers to, which are too new to be marked or removed
	Removed int   // packs
	Freed   int64 // bytes
}

// A LockedError is a store that another collection is at work in, or one that was killed.
type LockedError struct {
	Store string
	Since time.Time // by the clock of the store
}

// Error has the time.
func (e *LockedError) Error() string {
	return fmt.Sprintf("store %s: a collection is at work, or was killed, since %s", e.Store, e.Since.UTC().Format(time.RFC3339))
}

// Collect removes the packs that no run refers to, in two phases: a pack older than the grace period is
// marked, and removed by the first collection that begins later than the grace period after that. All
// times are those of the clock of the store. A push never relies on a marked pack, and looks for marks
// once more when its run is visible, so no order of a push and a collection loses a byte. One collection
// works in a store at a time; unlock has it take over from one that was killed longer ago than the grace
// period. If any run cannot be read, no pack is removed.
func (s *Store) Collect(ctx context.Context, grace time.Duration, unlock bool) (Collected, error) {
	return s.collect(ctx, grace, unlock, func() time.Time { return time.Now().Round(0) }) // with the time of a sleep
}

func (s *Store) collect(ctx context.Context, grace time.Duration, unlock bool, clock func() time.Time) (done Collected, err error) {
	c := &collection{Store: s, token: []byte(rand.Text()), grace: grace, clock: clock}
	if err := c.lock(ctx, unlock); err != nil {
		return Collected{}, err
	}
	defer func() { err = errors.Join(err, c.release(context.WithoutCancel(ctx))) }()
	if d, ok := s.driver.(*aside); ok {
		d.tidy(ctx)
	}
	now, err := c.now(ctx)
	if err != nil {
		return Collected{}, err
	}
	packs, err := s.list(ctx, packsPrefix)
	if err != nil {
		return Collected{}, err
	}
	marks, err := s.marks(ctx)
	if err != nil {
		return Collected{}, err
	}
	used, err := c.used(ctx)
	if err != nil {
		return Collected{}, err
	}
	for _, o := range packs {
		of, ok := parseID(path.Base(o.Key))
		if !ok || of.key() != o.Key {
			continue // not ours
		}
		mark, isMarked := marks[of]
		delete(marks, of)
		if err := c.judge(ctx, of, o, used[of], mark, isMarked, now); err != nil {
			return c.done, err
		}
	}
	for _, of := range slices.SortedFunc(maps.Keys(marks), func(a, b id) int { return bytes.Compare(a[:], b[:]) }) { // of packs that are gone
		if err := c.delete(ctx, of.mark()); err != nil {
			return c.done, err
		}
	}
	return c.done, nil
}

// judge marks or removes a pack, or leaves it.
func (c *collection) judge(ctx context.Context, of id, o Object, isUsed bool, mark Object, isMarked bool, now time.Time) error {
	switch {
	case isUsed:
		c.done.Packs++
		if isMarked {
			return c.delete(ctx, of.mark())
		}
	case !isMarked && o.Time.Add(c.grace).Before(now):
		c.done.Marked++
		return c.ignoreExisting(c.putIfAbsent(ctx, of.mark(), nil))
	case !isMarked:
		c.done.Waiting++
	case !o.Time.Before(mark.Time): // uploaded again since
		c.done.Waiting++
		return c.delete(ctx, of.mark())
	case !mark.Time.Add(c.grace).Before(now):
		c.done.Waiting++
	default:
		return c.remove(ctx, of, o)
	}
	return nil
}

// collection is one call of Collect.
type collection struct {
	*Store
	token []byte
	grace time.Duration
	clock func() time.Time // of this machine
	kept  time.Time        // by clock: the lock was made, or made new, after it
	done  Collected
}

// lockTries is how often a lock is made that others make and remove at the same moment.
const lockTries = 5

// lock makes the lock of the store.
func (c *collection) lock(ctx context.Context, unlock bool) error {
	for range lockTries {
		c.kept = c.clock()
		err := c.putIfAbsent(ctx, lockKey, c.token)
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		held, err := c.stat(ctx, lockKey)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed just now
		}
		if err != nil {
			return err
		}
		now, err := c.now(ctx)
		if err != nil {
			return err
		}
		if !unlock || !held.Time.Add(c.grace).Before(now) {
			return &LockedError{c.address, held.Time}
		}
		if again, err := c.stat(ctx, lockKey); err != nil || !again.Time.Equal(held.Time) {
			continue // others took it over
		}
		if err := c.Store.delete(ctx, lockKey); err != nil {
			return err
		}
	}
	now, err := c.now(ctx)
	if err != nil {
		return err
	}
	return &LockedError{c.address, now}
}

// holds requires that the lock is still that of this collection.
func (c *collection) holds(ctx context.Context) error {
	if !c.isThere(ctx, lockKey, c.token) {
		return &FaultError{c.address, lockKey, "get", errors.New("the lock of this collection was removed")}
	}
	return nil
}

// keep makes the lock new before others may take it over.
func (c *collection) keep(ctx context.Context) error {
	now := c.clock()
	if now.Sub(c.kept) < c.grace/2 {
		return nil
	}
	if err := c.holds(ctx); err != nil {
		return err
	}
	if err := c.inTime(ctx, "put", lockKey, func(ctx context.Context) error { return c.driver.Put(ctx, lockKey, c.token) }); err != nil {
		return err
	}
	c.kept = now
	return nil
}

// inTime does a request, unless so much time has passed that others may have taken the lock over: then they
// may have removed what this collection is about to remove, and a push may have sent it again.
func (c *collection) inTime(ctx context.Context, op, key string, do func(ctx context.Context) error) error {
	return c.again(ctx, op, key, 0, func(ctx context.Context) error {
		if c.clock().Sub(c.kept) >= c.grace {
			return errors.New("this collection was stopped for longer than the grace period: run it again")
		}
		return do(ctx)
	})
}

// delete removes an object. The lock, and the time, are looked at right before.
func (c *collection) delete(ctx context.Context, key string) error {
	if err := c.keep(ctx); err != nil {
		return err
	}
	if err := c.holds(ctx); err != nil {
		return err
	}
	return c.inTime(ctx, "delete", key, func(ctx context.Context) error { return c.driver.Delete(ctx, key) })
}

// release removes the lock if it is that of this collection.
func (c *collection) release(ctx context.Context) error {
	c.kept = c.clock()
	if c.holds(ctx) != nil {
		return nil
	}
	return c.inTime(ctx, "delete", lockKey, func(ctx context.Context) error { return c.driver.Delete(ctx, lockKey) })
}

// now is the time by the clock of the store.
func (c *collection) now(ctx context.Context) (time.Time, error) {
	if err := c.put(ctx, clockKey, c.token); err != nil {
		return time.Time{}, err
	}
	o, err := c.stat(ctx, clockKey)
	return o.Time, err
}

func (c *collection) ignoreExisting(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// used reads which packs the runs refer to.
func (c *collection) used(ctx context.Context) (map[id]bool, error) {
	runs, err := c.Runs(ctx)
	if err != nil {
		return nil, err
	}
	used := map[id]bool{}
	for _, run := range runs {
		if err := c.keep(ctx); err != nil {
			return nil, err
		}
		plan, err := c.planOf(ctx, run.Key)
		if err != nil {
			return nil, err
		}
		for _, p := range plan.packs {
			used[p.id] = true
		}
	}
	c.done.Runs = len(runs)
	return used, nil
}

// planOf reads the MAP of a run. Nothing else of it is read.
func (s *Store) planOf(ctx context.Context, root string) (*plan, error) {
	key := runsPrefix + root
	raw, err := s.whole(ctx, key, maxRun)
	if errors.Is(err, fs.ErrNotExist) {
		return &plan{}, nil // removed since the listing
	}
	if err != nil {
		return nil, err
	}
	var found *plan
	err = readRun(ctx, raw, func(_ string, content io.Reader) (err error) {
		if found, err = parseMap(content); err == nil {
			err = errStop
		}
		return err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, &WrongError{s.address, key, err}
	}
	return found, nil
}

// remove removes a pack, then its mark.
func (c *collection) remove(ctx context.Context, of id, o Object) error {
	if err := c.delete(ctx, of.key()); err != nil {
		return err
	}
	c.done.Removed++
	c.done.Freed += o.Size
	return c.delete(ctx, of.mark())
}

// Packs lists the sizes of the packs of the store, by the names of their objects.
func (s *Store) Packs(ctx context.Context) (map[string]int64, error) {
	listed, err := s.list(ctx, packsPrefix)
	sizes := make(map[string]int64, len(listed))
	for _, o := range listed {
		sizes[o.Key] = o.Size
	}
	return sizes, err
}

// Lacks names the packs of the run that are missing, or too short, among those of its store.
func (r *Run) Lacks(packs map[string]int64) []string {
	var lacks []string
	for _, p := range r.plan.packs {
		if size, ok := packs[p.id.key()]; !ok || size != int64(p.size) {
			lacks = append(lacks, p.id.key())
		}
	}
	return lacks
}
