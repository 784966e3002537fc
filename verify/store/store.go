package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Patience is how long a server may be silent unless a caller says otherwise.
const Patience = 30 * time.Second

const (
	// attempts is how often a request is done at most, and firstPause how long is waited before the
	// second: twice as long before each further one.
	attempts   = 6
	firstPause = 500 * time.Millisecond
	// workers is how many transfers there are at once.
	workers = 8
)

// A Store is access to one store. It is safe for concurrent use.
type Store struct {
	address  string
	driver   Driver
	patience time.Duration
	pause    time.Duration // before the second attempt
	target   int           // bytes of a pack
	piece    int64         // bytes of an output that are requested at once
}

// Open opens the store of an address. A server that is silent for longer than patience, or slower
// than 256 KiB/s in a transfer, has failed. A request that may succeed later is repeated, five times at
// most.
func Open(a Address, patience time.Duration) (*Store, error) {
	driver, err := open(a, patience)
	if err != nil {
		return nil, &FaultError{a.store, "", "open", err}
	}
	return New(a.store, driver, patience), nil
}

func open(a Address, patience time.Duration) (Driver, error) {
	switch a.scheme {
	case "file":
		return newAside(&files{path: "/" + a.dir}), nil
	case "s3":
		return openBucket(a, patience)
	}
	return openSite(a, patience), nil
}

// New returns a store that is reached by a driver. The address is for messages.
func New(address string, driver Driver, patience time.Duration) *Store {
	return &Store{address, driver, patience, firstPause, packTarget, pieceSize}
}

func (s *Store) isDirectory() bool {
	_, is := s.driver.(*aside)
	return is
}

// Address is the address of the store.
func (s *Store) Address() string { return s.address }

// errStalled is the reason of a server that is too slow.
var errStalled = errors.New("the server is silent or too slow")

// IsSilent reports whether an error is that of a store that did not answer in time.
func IsSilent(err error) bool { return errors.Is(err, errStalled) }

// stalled is errStalled for this store.
func (s *Store) stalled() error {
	if s.isDirectory() {
		return hungError{}
	}
	return errStalled
}

// again does a request until it succeeds, as often as is useful. size is the number of bytes that it
// sends. Those of answers are counted when they arrive.
func (s *Store) again(ctx context.Context, op, key string, size int64, do func(ctx context.Context) error) error {
	pause := s.pause
	for n := 1; ; n++ {
		err := s.once(ctx, size, do)
		switch {
		case err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist):
			return err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case n == attempts || !isPassing(err):
			if n > 1 {
				err = fmt.Errorf("%w (%d attempts)", err, n)
			}
			return &FaultError{s.address, key, op, err}
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2+1)):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		pause *= 2
	}
}

// once does a request within its deadline.
func (s *Store) once(ctx context.Context, size int64, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := withPace(ctx, newPace(time.Now(), s.patience, size), func() { cancel(errStalled) })
	defer stop()
	err := do(ctx)
	if err == nil || !errors.Is(context.Cause(ctx), errStalled) {
		return err
	}
	if s.isDirectory() {
		return s.stalled()
	}
	return Passing(s.stalled())
}

// read fills dst with the bytes of an object from an offset.
func (s *Store) read(ctx context.Context, key string, off int64, dst []byte) error {
	n := int64(len(dst))
	return s.again(ctx, "get", key, 0, func(ctx context.Context) error {
		body, err := s.driver.Get(ctx, key, off, n)
		if err != nil {
			return err
		}
		defer body.Close()
		if _, err := io.ReadFull(body, dst); err != nil {
			return Passing(fmt.Errorf("the answer is too short: %w", err))
		}
		return atEnd(body)
	})
}

// whole reads an object of at most limit bytes.
func (s *Store) whole(ctx context.Context, key string, limit int64) ([]byte, error) {
	var content []byte
	err := s.again(ctx, "get", key, 0, func(ctx context.Context) error {
		body, err := s.driver.Get(ctx, key, 0, -1)
		if err != nil {
			return err
		}
		defer body.Close()
		content, err = io.ReadAll(io.LimitReader(body, limit+1))
		if err != nil {
			return Passing(err)
		}
		if int64(len(content)) > limit {
			return longError(limit)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return content, nil
}

// A longError is an object with more bytes than it may have.
type longError int64

func (e longError) Error() string { return fmt.Sprintf("it has more than %d bytes", int64(e)) }

// atEnd requires that a body has no more bytes.
func atEnd(body io.Reader) error {
	var more [1]byte
	if n, _ := io.ReadFull(body, more[:]); n > 0 {
		return Passing(errors.New("the answer is too long"))
	}
	return nil
}

func (s *Store) putIfAbsent(ctx context.Context, key string, content []byte) error {
	tried := false
	return s.again(ctx, "put", key, 2*int64(len(content)), func(ctx context.Context) error {
		err := s.driver.PutIfAbsent(ctx, key, content)
		if errors.Is(err, fs.ErrExist) && tried && s.has(ctx, key, content) {
			return nil // an attempt whose answer was lost
		}
		tried = true
		return err
	})
}

// has reports whether an object has this content; false where that cannot be seen.
func (s *Store) has(ctx context.Context, key string, content []byte) bool {
	body, err := s.driver.Get(ctx, key, 0, -1)
	if err != nil {
		return false
	}
	defer body.Close()
	found, err := io.ReadAll(io.LimitReader(body, int64(len(content))+1))
	return err == nil && bytes.Equal(found, content)
}

// isThere is has, repeated where that can help.
func (s *Store) isThere(ctx context.Context, key string, content []byte) bool {
	found, err := s.whole(ctx, key, int64(len(content)))
	return err == nil && bytes.Equal(found, content)
}

func (s *Store) put(ctx context.Context, key string, content []byte) error {
	return s.again(ctx, "put", key, int64(len(content)), func(ctx context.Context) error {
		return s.driver.Put(ctx, key, content)
	})
}

func (s *Store) stat(ctx context.Context, key string) (o Object, err error) {
	err = s.again(ctx, "stat", key, 0, func(ctx context.Context) error {
		o, err = s.driver.Stat(ctx, key)
		return err
	})
	return o, err
}

func (s *Store) delete(ctx context.Context, key string) error {
	return s.again(ctx, "delete", key, 0, func(ctx context.Context) error { return s.driver.Delete(ctx, key) })
}

// listed is how many objects of a listing are kept at most: a server could go on for ever.
const listed = 8 << 20

// list returns the objects below a prefix, in the order of their keys, each once.
func (s *Store) list(ctx context.Context, prefix string) ([]Object, error) {
	var all []Object
	err := s.again(ctx, "list", prefix, 0, func(ctx context.Context) error {
		all = all[:0]
		for o, err := range s.driver.List(ctx, prefix) {
			if err != nil {
				return err
			}
			if all = append(all, o); len(all) > listed {
				return fmt.Errorf("it lists more than %d objects", listed)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(x, y Object) int { return strings.Compare(x.Key, y.Key) })
	return slices.CompactFunc(all, func(x, y Object) bool { return x.Key == y.Key }), nil
}
