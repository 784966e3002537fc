package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// An Object is what a store reports of one.
type Object struct {
	Key  string
	Size int64
	Time time.Time // of its last modification, by the clock of the store
}

// A Driver does the requests of one kind of store. A key is made of names of ASCII letters, digits,
// "-", "_" and ".", separated by slashes. A missing object is fs.ErrNotExist, and an existing one
// where there should be none is fs.ErrExist. An error that may not happen again is wrapped by
// [Passing]. A driver counts the bytes of answers when they arrive. Drivers are safe for concurrent use.
type Driver interface {
	// Get returns a reader of n bytes of an object from the offset off, or of all bytes from there
	// if n is negative. The caller counts them.
	Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, error)

	// PutIfAbsent makes an object, in one step, unless there is one. A store that cannot do this in
	// one step looks first.
	PutIfAbsent(ctx context.Context, key string, content []byte) error

	// Put makes or replaces an object, in one step.
	Put(ctx context.Context, key string, content []byte) error

	// Stat describes an object.
	Stat(ctx context.Context, key string) (Object, error)

	// List yields the objects whose keys begin with a prefix that ends in a slash, in any order.
	List(ctx context.Context, prefix string) iter.Seq2[Object, error]

	// Delete removes an object. A missing one is not an error.
	Delete(ctx context.Context, key string) error
}

// Reasons why a request cannot be done on a kind of store.
var (
	ErrReadOnly = errors.New("a store by https can only be read")
	ErrUnlisted = errors.New("a store by https has no list of its objects")
)

// A passing error may not happen again.
type passing struct{ error }

func (p passing) Unwrap() error { return p.error }

// Passing marks an error of a request that may succeed when it is repeated.
func Passing(err error) error {
	if err == nil {
		return nil
	}
	return passing{err}
}

func isPassing(err error) bool {
	_, is := errors.AsType[passing](err)
	return is
}

// A FaultError is a request that failed: the network, the server, or what this user may do there. It
// says nothing about the run.
type FaultError struct {
	Store string
	Key   string
	Op    string
	Err   error
}

// Error names the request.
func (e *FaultError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("store %s: %s: %v", e.Store, e.Op, e.Err)
	}
	return fmt.Sprintf("store %s: %s %s: %v", e.Store, e.Op, e.Key, e.Err)
}

// Unwrap returns the reason.
func (e *FaultError) Unwrap() error { return e.Err }

// Unavailable reports whether what was requested may be in the store: a view reports a missing pack as it
// does a missing file.
func (e *FaultError) Unavailable() bool { return !errors.Is(e.Err, ErrMissing) }

// A WrongError is an object whose bytes are not those that were signed, or that has not the form of
// the layout.
type WrongError struct {
	Store string
	Key   string
	Err   error
}

// Error names the object.
func (e *WrongError) Error() string { return fmt.Sprintf("store %s: %s: %v", e.Store, e.Key, e.Err) }

// Unwrap returns what is wrong.
func (e *WrongError) Unwrap() error { return e.Err }

// A NoRunError is a run that is not in the store.
type NoRunError struct{ Store, Root string }

// Error names the run.
func (e *NoRunError) Error() string { return fmt.Sprintf("store %s has no run %s", e.Store, e.Root) }
