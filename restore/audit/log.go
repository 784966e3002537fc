package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"time"

	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// Log is an open log that can be appended to. Several may be open on one file,
// in one process or in many.
type Log struct {
	f        *os.File
	patience time.Duration
}

// patience is how long a locked log is waited for. The holder adds one line; a stopped holder
// must not block all others forever.
const patience = time.Minute

// New is the log in f, which is open for reading and for appending. The log
// closes it.
func New(f *os.File) *Log { return &Log{f, patience} }

// Close closes the file.
func (l *Log) Close() error { return l.f.Close() }

// Append adds an event and syncs it. On an error the event is not logged, or
// may be; what was to follow from it must not be done.
func (l *Log) Append(event Event) error {
	return l.add(event, func(tail) (bool, error) { return true, nil })
}

// End adds an event that ends an action, unless the action is not open.
func (l *Log) End(event Event) error {
	return l.add(event, func(at tail) (bool, error) {
		_, open := at.last.Open[event.Action]
		return open, nil
	})
}

// Once adds an event, unless the last one of its action is of the same kind, or the last end,
// if it is an end. An end is also added to an action that has another one: the session that
// logged that lacked information.
func (l *Log) Once(event Event) error {
	return l.add(event, func(at tail) (bool, error) {
		if _, open := at.last.Open[event.Action]; open && event.Kind.ends() {
			return true, nil
		}
		last, err := l.last(event.Action, event.Kind.ends())
		return last.Kind != event.Kind, err
	})
}

// Ended returns the last event that ends an action; the zero Event if there is none.
func (l *Log) Ended(action string) (Event, error) { return l.last(action, true) }

// last is the last event of an action, or its last end; the zero Event if there is none.
func (l *Log) last(action string, end bool) (last Event, err error) {
	info, err := l.f.Stat()
	if err != nil {
		return Event{}, err
	}
	for s := newScan(io.NewSectionReader(l.f, 0, info.Size())); ; {
		raw, err := s.read()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return Event{}, err
		}
		if !bytes.Contains(raw, []byte(action)) {
			continue
		}
		if e, err := parse(bytes.TrimSuffix(raw, []byte("\n"))); err == nil && e.Action == action && (!end || e.Kind.ends()) {
			last = e.Event
		}
	}
}

func (l *Log) add(event Event, wanted func(tail) (bool, error)) error {
	event.Root, event.Reason = RootText(event.Root), reasonText(event.Reason)
	if err := event.check(); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return l.locked(func(at tail) error {
		if ok, err := wanted(at); err != nil || !ok {
			return err
		}
		return l.append(at, event)
	})
}

// HasSnapshot reports whether the log names a snapshot. The newest entries are read first.
func (l *Log) HasSnapshot(id string) (has bool, err error) {
	err = l.locked(func(tail) error {
		info, err := l.f.Stat()
		if err != nil {
			return err
		}
		for end := info.Size(); end > 0 && !has; {
			begin := max(0, end-tailWindow)
			raw := make([]byte, min(info.Size(), end+int64(len(id)))-begin) // one ID may lie across
			if _, err := l.f.ReadAt(raw, begin); err != nil {
				return err
			}
			has, end = bytes.Contains(raw, []byte(id)), begin
		}
		return nil
	})
	return has, err
}

// Open returns the ids of the actions in a root that have begun and not ended, sorted.
func (l *Log) Open(root string) ([]string, error) {
	var ids []string
	err := l.locked(func(at tail) error {
		for id, in := range at.last.Open {
			if in == RootText(root) {
				ids = append(ids, id)
			}
		}
		return nil
	})
	slices.Sort(ids)
	return ids, err
}

// Read is the function [Read] over the log as it is now.
func (l *Log) Read(each func(Entry) error) (Head, error) {
	info, err := l.f.Stat()
	if err != nil {
		return Head{}, err
	}
	return Read(io.NewSectionReader(l.f, 0, info.Size()), each)
}

// locked runs do with the end of the log, under a lock that excludes other writers.
func (l *Log) locked(do func(tail) error) error {
	if err := l.lock(); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = unix.Flock(int(l.f.Fd()), unix.LOCK_UN) }()
	at, err := l.tail()
	if err == nil {
		err = do(at)
	}
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	return nil
}

func (l *Log) lock() error {
	return sys.Await(context.Background(), l.patience, func() error { return sys.Lock(l.f) })
}

func (l *Log) append(at tail, event Event) error {
	e := Entry{Event: event, Sequence: at.last.Sequence + 1, Time: time.Now().UTC(), Previous: at.last.Hash}
	e.UID, e.Operator = operator()
	e.Open = e.after(at.last.Open)
	var b []byte
	switch {
	case at.unended:
		b = []byte("\n")
	case len(at.rest) > 0:
		if !bytes.HasSuffix(at.rest, []byte("\n")) {
			b = []byte(tornEnd)
		}
		region := newRegion()
		region.add(append(at.rest, b...))
		e.Torn = region.torn()
	}
	line, err := e.line()
	if err != nil {
		return err
	}
	if _, err := l.f.Write(append(append(b, line...), '\n')); err != nil {
		return pathsafe.NoSpace(l.f, len(line), err)
	}
	return l.f.Sync()
}

// operator is the user that runs this program.
func operator() (uid int, name string) {
	uid = os.Getuid()
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		name = u.Username
	}
	return uid, name
}

// tail is the end of a log.
type tail struct {
	last    Entry
	unended bool   // the last entry lacks its newline, and nothing else
	rest    []byte // the text after the last entry
}

// tailWindow is how much of the end is read at first, in bytes.
const tailWindow = 64 << 10

// tail finds the last entry. It reads more than the end of the log only where
// there is none in it.
func (l *Log) tail() (tail, error) {
	info, err := l.f.Stat()
	if err != nil {
		return tail{}, err
	}
	size := info.Size()
	for window := min(size, tailWindow); ; window = min(size, 4*window) {
		raw := make([]byte, window)
		if _, err := l.f.ReadAt(raw, size-window); err != nil {
			return tail{}, err
		}
		if at, ok := findLast(raw); ok {
			return at, nil
		}
		if window == size {
			return tail{last: Entry{Hash: genesis}, rest: raw}, nil
		}
	}
}

// findLast finds the last entry in the end of a log.
func findLast(raw []byte) (tail, bool) {
	for end := len(raw); end > 0; {
		begin := bytes.LastIndexByte(raw[:end], '\n') + 1
		if e, err := parse(raw[begin:end]); err == nil {
			if end == len(raw) {
				return tail{last: e, unended: true}, true
			}
			return tail{last: e, rest: raw[end+1:]}, true
		}
		end = begin - 1
	}
	return tail{}, false
}
