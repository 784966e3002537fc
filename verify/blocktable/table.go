package blocktable

// This file is law: the form of BLOCKS.

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"strings"
)

// The limits of a table.
const (
	MinBlock = 64 << 10 // the smallest block, in bytes
	MaxBlock = 4 << 20  // the largest
	MaxSize  = 256 << 20

	// Times are limited to those that RFC 3339 can represent, in the years 0000 to 9999.
	minSec, maxSec = -62_167_219_200, 253_402_300_799

	// DefaultBlock is the size of a block, unless a table of such blocks would be too large:
	// reading a byte hashes the whole block, and a chaining value has 32 bytes.
	DefaultBlock = 256 << 10
)

// magic is the beginning of a table of form 1.
const magic = "spectrum blocks 1\n"

// The lengths of the parts of a table, in bytes. All numbers are big endian.
const (
	headLen  = len(magic) + 4 // magic, block size
	lenLen   = 4              // the length of a path
	modeLen  = 2
	attrLen  = 8 + modeLen + 8 + 4 // size, mode, seconds, nanoseconds
	valueLen = sha256.Size
)

// A Table is a block table whose form was checked. Only [Parse] and [New] make one, and it is
// immutable; the zero Table describes no file.
type Table struct {
	raw   []byte
	block int64
	at    []uint32 // offsets of the attributes of each file in raw
	first []uint32 // the number of the first block of each file, and of all blocks
	bytes int64    // the sizes of all files
}

// Attributes are the properties of a file in a table, besides its blocks.
type Attributes struct {
	Size int64
	Perm fs.FileMode // permission bits only
	Sec  int64       // with Nsec, the time of last modification since 1970
	Nsec int32
}

// Entry is a file of a table to be made.
type Entry struct {
	Path string
	Attributes
	Values []byte // the chaining values at the block boundaries between blocks
}

// ValidBlock reports whether a block may have so many bytes.
func ValidBlock(block int64) bool {
	return block >= MinBlock && block <= MaxBlock && block&(block-1) == 0
}

// ValidTime reports whether a table may have this time, in seconds since 1970.
func ValidTime(sec int64) bool { return sec >= minSec && sec <= maxSec }

// Blocks returns how many blocks a file of this size has: 1 for an empty file.
func Blocks(size, block int64) int64 {
	if size == 0 {
		return 1
	}
	return (size-1)/block + 1
}

// ValuesLen returns the number of bytes of the chaining values of a file of this size.
func ValuesLen(size, block int64) int64 { return (Blocks(size, block) - 1) * valueLen }

// Draft is a table to be made.
type Draft struct {
	Block   int64
	DirPerm func(dir string) fs.FileMode // of a parent directory of a file, beneath the project root
	Entries iter.Seq[Entry]              // in ascending order of the path's bytes
}

// BlockFor returns the smallest block size from [DefaultBlock] with which a table of these files,
// by path and size, is not too large, or 0 if there is none.
func BlockFor(files iter.Seq2[string, int64]) int64 {
	for block := int64(DefaultBlock); block <= MaxBlock; block *= 2 {
		room, last := int64(headLen), ""
		for path, size := range files {
			room += recordLen(last, path)
			if size > math.MaxInt64/2 || ValuesLen(size, block) > MaxSize {
				room = MaxSize
			}
			if room += ValuesLen(size, block); room > MaxSize {
				break
			}
			last = path
		}
		if room <= MaxSize {
			return block
		}
	}
	return 0
}

// recordLen is the length of a record without its chaining values.
func recordLen(last, path string) int64 {
	return int64(lenLen + len(path) + modeLen*newDirs(last, path) + attrLen)
}

// New makes a table. The error names the first rule that the draft breaks.
func New(d Draft) (*Table, error) {
	size, last := int64(headLen), ""
	var paths []string
	for e := range d.Entries {
		size += recordLen(last, e.Path) + int64(len(e.Values))
		if size > MaxSize {
			return nil, errTooLong
		}
		last, paths = e.Path, append(paths, e.Path)
	}
	raw := append(make([]byte, 0, size), magic...)
	raw = binary.BigEndian.AppendUint32(raw, uint32(d.Block))
	last = ""
	for e := range d.Entries {
		raw = binary.BigEndian.AppendUint32(raw, uint32(len(e.Path)))
		raw = append(raw, e.Path...)
		for dir := range newDirsOf(last, e.Path) {
			raw = binary.BigEndian.AppendUint16(raw, uint16(d.DirPerm(dir).Perm()))
		}
		raw = binary.BigEndian.AppendUint64(raw, uint64(e.Size))
		raw = binary.BigEndian.AppendUint16(raw, uint16(e.Perm.Perm()))
		raw = binary.BigEndian.AppendUint64(raw, uint64(e.Sec))
		raw = binary.BigEndian.AppendUint32(raw, uint32(e.Nsec))
		raw = append(raw, e.Values...)
		last = e.Path
	}
	return Parse(raw, func(yield func(string) bool) {
		for _, path := range paths {
			if !yield(path) {
				return
			}
		}
	})
}

var errTooLong = fmt.Errorf("it has more than the limit of %d bytes", MaxSize)

// Parse reads a table of exactly these files, which are in ascending order of their bytes. The
// table keeps raw. The error names the first rule that it breaks.
func Parse(raw []byte, files iter.Seq[string]) (*Table, error) {
	if int64(len(raw)) > MaxSize {
		return nil, errTooLong
	}
	p := parser{rest: raw}
	if head := p.take(len(magic)); string(head) != magic {
		return nil, fmt.Errorf("it does not begin with %q", magic)
	}
	t := &Table{raw: raw, block: int64(p.uint32())}
	switch {
	case p.short:
		return nil, errors.New("its head is cut off")
	case !ValidBlock(t.block):
		return nil, fmt.Errorf("its blocks have %d bytes, which is not a power of two from %d to %d", t.block, MinBlock, MaxBlock)
	}
	last, blocks := "", int64(0)
	for path := range files {
		if len(t.at) > 0 && path <= last {
			return nil, fmt.Errorf("%q is a duplicate or not in ascending order", path)
		}
		if len(p.rest) == 0 {
			return nil, fmt.Errorf("it ends before %q", path)
		}
		if named := p.take(int(p.uint32())); string(named) != path && !p.short {
			return nil, fmt.Errorf("it has %q where %q belongs", shortened(named), path)
		}
		if p.modes(newDirs(last, path)); p.badMode {
			return nil, fmt.Errorf("the mode of a directory on the way to %q has more than permission bits", path)
		}
		t.at = append(t.at, uint32(len(raw)-len(p.rest)))
		size, _ := p.uint64(), p.mode()
		sec, nsec := int64(p.uint64()), p.uint32()
		switch {
		case p.short:
			return nil, fmt.Errorf("it is cut off in %q", path)
		case p.badMode:
			return nil, fmt.Errorf("the mode of %q has more than permission bits", path)
		case nsec > 999_999_999:
			return nil, fmt.Errorf("the time of %q has %d nanoseconds", path, nsec)
		case !ValidTime(sec):
			return nil, fmt.Errorf("the time of %q, %d seconds since 1970, is not in the years 0000 to 9999", path, sec)
		case size > math.MaxInt64 || ValuesLen(int64(size), t.block) > int64(len(p.rest)):
			return nil, fmt.Errorf("it ends before the chaining values of %q of %d bytes", path, size)
		}
		p.take(int(ValuesLen(int64(size), t.block)))
		t.first = append(t.first, uint32(blocks))
		blocks += Blocks(int64(size), t.block)
		if t.bytes += int64(size); t.bytes < 0 {
			return nil, fmt.Errorf("the sizes up to %q are too many bytes", path)
		}
		last = path
	}
	if len(p.rest) > 0 {
		return nil, fmt.Errorf("it has %d bytes after the last output", len(p.rest))
	}
	t.first = append(t.first, uint32(blocks))
	return t, nil
}

// shortened is the beginning of a path in an error.
func shortened(path []byte) string {
	const most = 256
	return string(path[:min(len(path), most)])
}

// parser reads numbers from the beginning of a text.
type parser struct {
	rest    []byte
	short   bool // the text ended too early; everything is 0 then
	badMode bool // a mode had further bits
}

func (p *parser) take(n int) []byte {
	if p.short || n > len(p.rest) {
		p.short = true
		return nil
	}
	taken := p.rest[:n]
	p.rest = p.rest[n:]
	return taken
}

func (p *parser) uint32() uint32 {
	if b := p.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}
	return 0
}

func (p *parser) uint64() uint64 {
	if b := p.take(8); b != nil {
		return binary.BigEndian.Uint64(b)
	}
	return 0
}

func (p *parser) mode() fs.FileMode {
	b := p.take(modeLen)
	if p.badMode = false; b == nil {
		return 0
	}
	mode := fs.FileMode(binary.BigEndian.Uint16(b))
	p.badMode = mode > fs.ModePerm
	return mode
}

// modes reads n modes.
func (p *parser) modes(n int) {
	bad := false
	for range n {
		p.mode()
		bad = bad || p.badMode
	}
	p.badMode = bad
}

// newDirs returns the number of parent directories of a path that are not parents of the path
// before it. With sorted paths each directory is new once.
func newDirs(last, path string) int {
	return strings.Count(path[SharedDirs(last, path):], "/")
}

// SharedDirs is the length of the directories that two paths have in common, with their slashes.
func SharedDirs(last, path string) int {
	n := 0
	for i := range min(len(last), len(path)) {
		if last[i] != path[i] {
			break
		}
		if path[i] == '/' {
			n = i + 1
		}
	}
	return n
}

// newDirsOf yields these directories, each before those in it.
func newDirsOf(last, path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for at := SharedDirs(last, path); ; {
			n := strings.IndexByte(path[at:], '/')
			if n < 0 || !yield(path[:at+n]) {
				return
			}
			at += n + 1
		}
	}
}

// Bytes returns the content of BLOCKS.
func (t *Table) Bytes() []byte { return bytes.Clone(t.raw) }

// Sum returns the SHA-256 of the content of BLOCKS.
func (t *Table) Sum() [sha256.Size]byte { return sha256.Sum256(t.raw) }

// Block is the number of bytes in every block but the last of a file.
func (t *Table) Block() int64 { return t.block }

// Len is the number of files.
func (t *Table) Len() int { return len(t.at) }

// Size is the number of bytes of all files.
func (t *Table) Size() int64 { return t.bytes }

// Attributes returns those of file i, in the order in which the files were parsed.
func (t *Table) Attributes(i int) Attributes {
	p := parser{rest: t.raw[t.at[i]:]}
	size, mode, sec, nsec := p.uint64(), p.mode(), p.uint64(), p.uint32()
	return Attributes{int64(size), mode, int64(sec), int32(nsec)}
}

// HasValues reports whether these are the chaining values between the blocks of file i.
func (t *Table) HasValues(i int, values []byte) bool { return bytes.Equal(t.values(i), values) }

func (t *Table) values(i int) []byte {
	begin := int64(t.at[i]) + attrLen
	return t.raw[begin : begin+ValuesLen(t.Attributes(i).Size, t.block)]
}

// path returns the path of file i.
func (t *Table) path(i int) string {
	begin := headLen
	if i > 0 {
		begin = int(t.at[i-1]) + attrLen + len(t.values(i-1))
	}
	n := int(binary.BigEndian.Uint32(t.raw[begin:]))
	return string(t.raw[begin+lenLen:][:n])
}

// Dirs yields the parent directories of the files beneath the project root, each after its own
// parent, with their permission bits.
func (t *Table) Dirs() iter.Seq2[string, fs.FileMode] {
	return func(yield func(string, fs.FileMode) bool) {
		last := ""
		for i := range t.at {
			path := t.path(i)
			modes := t.raw[int(t.at[i])-modeLen*newDirs(last, path) : t.at[i]]
			for dir := range newDirsOf(last, path) {
				if !yield(dir, fs.FileMode(binary.BigEndian.Uint16(modes))) {
					return
				}
				modes = modes[modeLen:]
			}
			last = path
		}
	}
}

// Only returns the part of a table that is about some of its files, by their number.
func (t *Table) Only(keep func(i int) bool) (*Table, error) {
	perms := make(map[string]fs.FileMode)
	for dir, perm := range t.Dirs() {
		perms[dir] = perm
	}
	return New(Draft{Block: t.block, DirPerm: func(dir string) fs.FileMode { return perms[dir] }, Entries: func(yield func(Entry) bool) {
		for i := range t.at {
			if keep(i) && !yield(Entry{t.path(i), t.Attributes(i), t.values(i)}) {
				return
			}
		}
	}})
}
