package snapshot

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
)

// The entries of a whole root, behind that of the root itself, are in parts: runs of neighbours,
// each in an object of its own, of which the manifest has the SHA-256. Snapshots share the parts
// in which nothing has changed.

// A part is a run of entries in an object.
type part struct {
	digest Digest
	names  int   // how many entries it has
	size   int64 // bytes
}

// A division decides where parts end. Readers accept any.
type division struct {
	inline int    // up to so many entries are in the manifest itself
	least  int    // names of a part, but for the last one
	every  uint32 // of so many further names one ends the part, by the hash of its path
	most   int    // names of a part
}

// usualDivision makes parts of about 40 names and 10 KiB: a change anywhere costs that much, and
// each snapshot has a line of 110 bytes for each part.
var usualDivision = division{inline: 128, least: 8, every: 32, most: maxPartNames}

// The bounds of a part. One ends behind the entry with which it has about endPart bytes; a line
// has a multiple of that at most.
const (
	maxPartNames = 128
	maxPart      = 8 << 20
	endPart      = 256 << 10
)

// groups divides entries. Whether a name ends a part depends on its path, so that names that come
// and go change their own part only.
func (d division) groups(entries []Entry) (all [][]Entry) {
	start, size := 0, 0
	for i := range entries {
		e := &entries[i]
		size += len(e.Path) + len(e.Hard) + len(e.Target) + len(e.Err)
		for _, x := range e.xattrs {
			size += len(x.Name) + 2*len(x.Value)
		}
		n := i + 1 - start
		if n >= d.most || size >= endPart || n >= d.least && pathHash(e.Path)%d.every == 0 {
			all, start, size = append(all, entries[start:i+1]), i+1, 0
		}
	}
	if start < len(entries) {
		all = append(all, entries[start:])
	}
	return all
}

// pathHash is FNV-1a.
func pathHash(path string) uint32 {
	h := uint32(2166136261)
	for i := range len(path) {
		h = (h ^ uint32(path[i])) * 16777619
	}
	return h
}

// isDivided reports whether entries after the first one go into parts. What a snapshot of some
// names has is rarely in another one.
func (d division) isDivided(h *Header, entries []Entry) bool {
	return h.Whole && len(entries) > d.inline
}

// makeParts makes the objects of the parts that the store lacks. Those of the snapshot that this
// one was compared with have been read.
func (t *take) makeParts(ctx context.Context, entries []Entry) ([]part, error) {
	known := map[Digest]bool{}
	if b := t.base(); b != nil {
		known = b.parts
	}
	var mu sync.Mutex
	workers := 0
	start := func() *reader {
		mu.Lock()
		defer mu.Unlock()
		workers++
		return &reader{take: t, name: "parts" + strconv.Itoa(workers)}
	}
	return t.eachPart(ctx, entries, start, func(r *reader, p part, lines []byte) error {
		if known[p.digest] {
			return nil
		}
		r.buf = lines
		e := &Entry{Digest: p.digest, Size: p.size}
		return r.bring(e, func(name string) error { return r.small(name, e) })
	})
}

// eachPart prints the parts of entries, several at a time, and returns them in their order.
func (s *Store) eachPart(ctx context.Context, entries []Entry, start func() *reader, do func(*reader, part, []byte) error) ([]part, error) {
	groups := s.division.groups(entries)
	parts := make([]part, len(groups))
	type printer struct {
		*reader
		line object
	}
	worker := func() *printer { return &printer{reader: start()} }
	err := inorder.Each(ctx, 0, len(groups), worker, func(p *printer, i int) error {
		p.line.b = p.line.b[:0]
		for j := range groups[i] {
			p.line.entry(&groups[i][j])
		}
		parts[i] = part{Digest(sha256.Sum256(p.line.b)), len(groups[i]), int64(len(p.line.b))}
		return do(p.reader, parts[i], p.line.b)
	})
	return parts, err
}

// lackedParts returns the parts of entries that the store does not have, and how many parts there
// are.
func (s *Store) lackedParts(entries []Entry) (lacked []part, all int, err error) {
	known := shardDirs{objects: s.objects}
	defer known.close()
	var mu sync.Mutex
	none := func() *reader { return nil }
	parts, err := s.eachPart(context.Background(), entries, none, func(_ *reader, p part, _ []byte) error {
		there, err := known.has(p.digest, p.size)
		if !there {
			mu.Lock()
			defer mu.Unlock()
			lacked = append(lacked, p)
		}
		return err
	})
	return lacked, len(parts), err
}

// part writes the line of a part.
func (o *object) part(p part) {
	o.number("names", int64(p.names))
	o.hex("part", p.digest[:])
	o.number("size", p.size)
	o.end()
}

// partLine is how the line of a part begins, and no other line.
const partLine = `{"names":`

func parsePart(line string) (p part, err error) {
	r := &lineReader{s: line}
	r.requires("names", func() { p.names = int(r.number()) })
	r.requires("part", func() { p.digest = r.digest() })
	r.requires("size", func() { p.size = r.number() })
	var again object
	again.part(p)
	if r.bad || string(again.b) != line {
		return part{}, errLine
	}
	if p.names < 1 || p.names > maxPartNames || p.size < 1 || p.size > maxPart {
		return part{}, errors.New("the size of a part makes no sense")
	}
	return p, nil
}

// A partError is what is wrong with the object of a part.
type partError struct {
	path string
	err  error
}

func (e *partError) Error() string { return fmt.Sprintf("its part %q: %v", e.path, e.err) }
func (e *partError) Unwrap() error { return e.err }

// A partReader is a worker that reads parts.
type partReader struct {
	s        *sysHook
	shards   *shardDirs
	buf, tmp []byte
}

func (r *partReader) read(p part) (entries []Entry, err error) {
	lines, err := r.lines(p)
	if err == nil {
		entries, err = r.parse(p, string(lines))
	}
	if err != nil {
		return nil, &partError{p.digest.path(), err}
	}
	return entries, nil
}

// lines reads the object of a part, which must have its digest.
func (r *partReader) lines(p part) ([]byte, error) {
	f, err := r.shards.object(&Entry{Digest: p.digest, Size: p.size})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errGonePart
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if int64(len(r.buf)) < p.size {
		r.buf = make([]byte, 2*p.size)
	}
	n, err := r.s.read(f, r.buf[:p.size])
	if err != nil {
		return nil, err
	}
	if sum := Digest(sha256.Sum256(r.buf[:n])); sum != p.digest {
		return nil, fmt.Errorf("its SHA-256 is %s", sum.name())
	}
	return r.buf[:n], nil
}

// errGonePart is not an [fs.ErrNotExist]: the snapshot is there.
var errGonePart = errors.New("it is missing")

func (r *partReader) parse(p part, lines string) ([]Entry, error) {
	entries := make([]Entry, 0, p.names)
	for lines != "" {
		end := strings.IndexByte(lines, '\n') + 1
		if end == 0 || len(entries) == p.names {
			return nil, errLine
		}
		e, tmp, err := parseEntry(lines[:end], r.tmp)
		if r.tmp = tmp; err != nil {
			return nil, fmt.Errorf("line %d: %w", len(entries)+1, err)
		}
		entries, lines = append(entries, e), lines[end:]
	}
	if len(entries) != p.names {
		return nil, fmt.Errorf("it has %d names, not %d", len(entries), p.names)
	}
	return entries, nil
}

// partsAtOnce is how many parts are read before their entries are checked.
const partsAtOnce = 256

// complete reads the parts of a manifest, and checks all of its entries.
func (s *Store) complete(m *manifest) (*Snapshot, error) {
	shards := shardDirs{objects: s.objects}
	defer shards.close()
	j := m.check
	for parts := m.parts; len(parts) > 0; {
		now := parts[:min(partsAtOnce, len(parts))]
		parts = parts[len(now):]
		read := make([][]Entry, len(now))
		start := func() *partReader { return &partReader{s: s.sysHook, shards: &shards} }
		err := inorder.Each(context.Background(), 0, len(now), start, func(r *partReader, i int) (err error) {
			read[i], err = r.read(now[i])
			return err
		})
		if err != nil {
			return nil, err
		}
		for i, entries := range read {
			for k := range entries {
				if err := j.see(&entries[k]); err != nil {
					return nil, &partError{now[i].digest.path(), err}
				}
			}
		}
	}
	if err := j.end(&m.header); err != nil {
		return nil, err
	}
	return &Snapshot{header: m.header, entries: j.all, parts: m.parts}, nil
}

// bytes is how many bytes the parts have.
func (m *manifest) bytes() (n int64) {
	for _, p := range m.parts {
		n += p.size
	}
	return n
}
