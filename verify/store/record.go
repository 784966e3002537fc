package store

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// A Record is what this user has uploaded to one store: which packs, and which contents are in them.
// A store can say anything about its packs; only the record decides what is not uploaded again. Each
// push appends to a file of its own. Where one is lost or damaged, more is uploaded.
type Record struct {
	dir   *pathsafe.Dir
	store string
	file  *os.File // nil until something is recorded
	out   *bufio.Writer

	packs   []pack
	known   map[id]int   // the index of a pack
	content map[id]spans // by the SHA-256 of a file
	extents []extent
	written map[int]int // the index in the file, by the index here
	lines   int         // packs in the file
	files   []string    // the names of its files
}

// spans are some extents of a record.
type spans struct{ first, n uint32 }

const recordHead = "spectrum-pushed 1 "

// OpenRecord opens the record of a store, which is kept in a private directory of this user.
func OpenRecord(dir *pathsafe.Dir, store string) (*Record, error) {
	sum := sha256.Sum256([]byte(store))
	name := hex.EncodeToString(sum[:16])
	if err := dir.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	of, err := dir.OpenDir(name)
	if err != nil {
		return nil, err
	}
	r := newRecord(of, store)
	r.files, err = of.Names()
	for _, name := range r.files {
		if err == nil {
			err = r.load(name)
		}
	}
	if err != nil {
		return nil, errors.Join(err, of.Close())
	}
	return r, nil
}

func newRecord(dir *pathsafe.Dir, store string) *Record {
	return &Record{dir: dir, store: store, known: map[id]int{}, content: map[id]spans{}, written: map[int]int{}}
}

// load reads a file of the record up to the first line that is damaged.
func (r *Record) load(name string) error {
	f, _, err := r.dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewReader(f)
	if line, err := lines.ReadString('\n'); err != nil || line != recordHead+r.store+"\n" {
		return nil //nolint:nilerr // a file of no use
	}
	var packs []pack
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // also a line without an end, which is torn
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		kind, line, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		name, rest, _ := strings.Cut(line, " ")
		of, ok := parseID(name)
		if !ok {
			return nil
		}
		switch kind {
		case "p":
			size, err := number(rest, maxPack)
			if err != nil {
				return nil //nolint:nilerr // a damaged line
			}
			packs = append(packs, pack{of, size})
			r.addPack(pack{of, size})
		case "f":
			p := plan{packs: packs}
			if p.addLine(rest) != nil {
				return nil
			}
			for i := range p.extents {
				p.extents[i].pack = uint32(r.known[packs[p.extents[i].pack].id])
			}
			r.addContent(of, p.extents)
		default:
			return nil
		}
	}
}

func (r *Record) addPack(p pack) int {
	if at, ok := r.known[p.id]; ok {
		return at
	}
	r.known[p.id] = len(r.packs)
	r.packs = append(r.packs, p)
	return len(r.packs) - 1
}

func (r *Record) addContent(digest id, extents []extent) {
	r.content[digest] = spans{uint32(len(r.extents)), uint32(len(extents))}
	r.extents = append(r.extents, extents...)
}

// find returns where a content is, in packs of the record.
func (r *Record) find(digest id) []extent {
	at := r.content[digest]
	return r.extents[at.first : at.first+at.n]
}

// pushedPack records a pack that was uploaded.
func (r *Record) pushedPack(p pack) error {
	if err := r.open(); err != nil {
		return err
	}
	at := r.addPack(p)
	r.written[at] = r.lines
	r.lines++
	_, err := fmt.Fprintf(r.out, "p %s %d\n", p.id, p.size)
	return errors.Join(err, r.out.Flush())
}

// pushedContent records a content in packs that were recorded before. The extents have the indexes of
// packs in the record.
func (r *Record) pushedContent(digest id, extents []extent) error {
	r.addContent(digest, extents)
	var text strings.Builder
	for i, e := range extents {
		in, ok := r.written[int(e.pack)]
		if !ok {
			return nil // in a pack of an earlier file: known there
		}
		if i > 0 {
			text.WriteByte(' ')
		}
		fmt.Fprintf(&text, "%d:%d:%d", in, e.off, e.n)
	}
	_, err := fmt.Fprintf(r.out, "f %s %s\n", digest, text.String())
	return err
}

// open begins the file of this push.
func (r *Record) open() error {
	if r.file != nil {
		return nil
	}
	name := uuid.NewString()
	f, err := r.dir.Create(name, 0o600)
	if err != nil {
		return err
	}
	r.file, r.out = f, bufio.NewWriter(f)
	r.files = append(r.files, name)
	_, err = fmt.Fprintf(r.out, "%s%s\n", recordHead, r.store)
	return err
}

// forget takes packs out of the record, and the contents in them: a file with the rest takes the place of
// those that were read. What another push adds to these at this moment is lost, and uploaded again.
func (r *Record) forget(packs []id) error {
	isGone := make([]bool, len(r.packs))
	for _, of := range packs {
		if at, ok := r.known[of]; ok {
			isGone[at] = true
		}
	}
	if !slices.Contains(isGone, true) {
		return nil
	}
	rest := newRecord(r.dir, r.store)
	if err := rest.copyOf(r, isGone); err != nil {
		if rest.file != nil {
			err = errors.Join(err, rest.file.Close())
		}
		return err
	}
	for _, name := range r.files {
		if err := r.dir.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, rest.file.Close())
		}
	}
	var err error
	if r.file != nil {
		err = r.file.Close()
	}
	*r = *rest
	return err
}

// copyOf writes what is in another record, without some packs.
func (r *Record) copyOf(of *Record, isGone []bool) error {
	if err := r.open(); err != nil {
		return err
	}
	for i, p := range of.packs {
		if isGone[i] {
			continue
		}
		if err := r.pushedPack(p); err != nil {
			return err
		}
	}
	for digest := range of.content {
		extents := slices.Clone(of.find(digest))
		if slices.ContainsFunc(extents, func(e extent) bool { return isGone[e.pack] }) {
			continue
		}
		for i := range extents {
			extents[i].pack = uint32(r.known[of.packs[extents[i].pack].id])
		}
		if err := r.pushedContent(digest, extents); err != nil {
			return err
		}
	}
	return errors.Join(r.out.Flush(), r.file.Sync())
}

// Close closes the record.
func (r *Record) Close() error {
	var err error
	if r.file != nil {
		err = errors.Join(r.out.Flush(), r.file.Close())
	}
	return errors.Join(err, r.dir.Close())
}
