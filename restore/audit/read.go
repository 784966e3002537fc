package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
)

// Head is where a log stands after its last entry.
type Head struct {
	Sequence int64             // 0 if there is no entry
	Hash     string            // of the last entry; 64 zeros if there is none
	Open     map[string]string // id to root of what has begun and not ended
	Tears    int64             // how many torn lines there are
	Tail     int64             // bytes after the last entry: torn lines that the next one will name
}

// DamageError reports where a log is not as it was written.
type DamageError struct {
	Line  int64 // the first is 1
	After int64 // the sequence number of the last good entry
	Err   error
}

// Error names the line.
func (e *DamageError) Error() string {
	return fmt.Sprintf("line %d of the audit log, after entry %d: %v", e.Line, e.After, e.Err)
}

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }

// Read reads a log from its beginning, hands each entry to each as soon as it is
// known to follow from the one before, and returns where the log stands. The
// error is a [*DamageError], what each returned, or the reader's; there is no
// head then.
func Read(r io.Reader, each func(Entry) error) (Head, error) {
	s := newScan(r)
	for {
		err := s.next(each)
		if errors.Is(err, io.EOF) {
			return s.end()
		}
		if err != nil {
			return Head{}, err
		}
	}
}

// scan is a log that is being read.
type scan struct {
	head   Head
	in     *bufio.Reader
	buf    []byte // the line
	lines  int64  // the number of the line that is being read
	region region // what was read since the last entry
}

func newScan(r io.Reader) *scan {
	return &scan{lines: 1, head: Head{Hash: genesis, Open: map[string]string{}}, in: bufio.NewReader(r), region: newRegion()}
}

// region is text after an entry that is not an entry.
type region struct {
	line         int64 // where it begins
	bytes, lines int64
	foreign      bool // a line in it has an end that no torn one is given
	last         byte
	hash         hash.Hash
}

func newRegion() region { return region{hash: sha256.New()} }

// add takes a line, or a piece of one.
func (r *region) add(b []byte) {
	for _, c := range b {
		if c == '\n' {
			r.lines++
			r.foreign = r.foreign || r.last != tornEnd[0]
		}
		r.last = c
	}
	r.bytes += int64(len(b))
	r.hash.Write(b)
}

// torn describes a region as the entry after it does; nil if it is empty.
func (r *region) torn() *Torn {
	if r.bytes == 0 {
		return nil
	}
	return &Torn{r.bytes, fmt.Sprintf("%x", r.hash.Sum(nil))}
}

// next takes one line.
func (s *scan) next(each func(Entry) error) error {
	raw, err := s.read()
	if err != nil {
		return err
	}
	line, ended := bytes.CutSuffix(raw, []byte("\n"))
	e, err := parse(line)
	if err != nil {
		s.strange(raw)
	} else if err = s.follows(&e); err != nil {
		return err
	} else if err = each(e); err != nil {
		return err
	}
	if ended {
		s.lines++
	}
	return nil
}

// read returns the next line with its newline, or a piece of one that is too
// long for an entry.
func (s *scan) read() ([]byte, error) {
	s.buf = s.buf[:0]
	for {
		piece, err := s.in.ReadSlice('\n')
		s.buf = append(s.buf, piece...)
		switch {
		case errors.Is(err, io.EOF) && len(s.buf) > 0:
			return s.buf, nil
		case !errors.Is(err, bufio.ErrBufferFull) || len(s.buf) > maxLine:
			return s.buf, ignoreFull(err)
		}
	}
}

func ignoreFull(err error) error {
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil
	}
	return err
}

// strange takes a line that is not an entry.
func (s *scan) strange(raw []byte) {
	if s.region.bytes == 0 {
		s.region.line = s.lines
	}
	s.region.add(raw)
}

func (s *scan) damage(line int64, format string, args ...any) error {
	return &DamageError{line, s.head.Sequence, fmt.Errorf(format, args...)}
}

// follows requires an entry to be the next one, and makes it the head.
func (s *scan) follows(e *Entry) error {
	h := &s.head
	torn := s.region.torn()
	switch {
	case e.Sequence != h.Sequence+1:
		return s.damage(s.lines, "found entry %d, want entry %d", e.Sequence, h.Sequence+1)
	case e.Previous != h.Hash:
		return s.damage(s.lines, "entry %d does not match the hash of the entry before it: one of them was changed or replaced", e.Sequence)
	case (torn == nil) != (e.Torn == nil) || torn != nil && *torn != *e.Torn || s.region.foreign:
		return s.damage(max(s.region.line, 1), "the line before entry %d is not a torn line named by it", e.Sequence)
	case !maps.Equal(e.Open, e.after(h.Open)):
		return s.damage(s.lines, "entry %d has a wrong list of open attempts", e.Sequence)
	}
	h.Tears += s.region.lines
	h.Sequence, h.Hash, h.Open = e.Sequence, e.Hash, e.Open
	s.region = newRegion()
	return nil
}

// end is the end of the log: at most torn lines are left over.
func (s *scan) end() (Head, error) {
	if s.region.foreign {
		return Head{}, s.damage(s.region.line, "%w", errForm)
	}
	s.head.Tail = s.region.bytes
	return s.head, nil
}
