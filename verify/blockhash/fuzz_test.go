package blockhash_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// FuzzReadRange reads any ranges of a file of any size, cached and not, while
// its bytes change and its end moves: what follows is what was hashed, or an
// error that names the block that is bad.
func FuzzReadRange(f *testing.F) {
	for _, text := range []string{
		"", "\x00\x01\x00\x00r\x00\x00\x00\x01", "\x01\x02\x80\x01r\x00\x00\xff\xff\xff", "\x00\x03\x01\x02t\x01\x00\x05r\x01\x00\x00\x00\x10r\x00\x00\x00\xff\xff",
		"\x01\x03\x7f\x03r\x01\x00\x05\x00\x05t\x01\x00\x06r\x01\x00\x00\x00\x20t\x01\x00\x06r\x01\x00\x00\xff\xff", "\x00\x02\x05\x01c\x01\x00\x00r\x00\x80\x00\xff\xff",
		"\x01\x07\x05\x02t\x06\x00\x00r\x00\x00\x00\xff\xffr\x05\xff\xff\x00\x02", "\x00\x00\x80\x00r\x00\x00\x00\x00\x01",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) { newRanges(t, text).run() })
}

// maxFuzzed is more than one goroutine reads at a time.
const maxFuzzed = 6 * bs

// everything is what all files of FuzzReadRange begin with.
var everything = random(maxFuzzed)

// tables are those of files that were read before.
var tables = map[tableOf]*blockhash.Table{}

type tableOf struct{ block, size int }

// ranges is a program that reads ranges of a file.
type ranges struct {
	t    *testing.T
	rest []byte

	k      kind
	whole  []byte // what was hashed
	now    []byte // the present content of the file
	reader *blockhash.Reader
	kept   map[int]bool // blocks that a cache may hold
	cached bool
}

func newRanges(t *testing.T, text []byte) *ranges {
	r := &ranges{t: t, rest: text, k: kind{blockhash.NewHasher, blockhash.BlockSize}, kept: map[int]bool{}}
	if r.next()%2 == 1 {
		r.k = kind{blockhash.NewTagger, blockhash.TagBlockSize}
	}
	size := r.next()%(maxFuzzed/r.k.block)*r.k.block + int(int8(r.next()))
	r.whole = everything[:max(0, size)]
	r.now = bytes.Clone(r.whole)
	made := tableOf{r.k.block, len(r.whole)}
	if tables[made] == nil {
		tables[made] = r.k.table(t, r.whole)
	}
	r.reader = blockhash.NewReader(r, tables[made])
	if room := r.next() % 4; room > 0 {
		r.cached = true
		r.reader = r.reader.Cached(blockhash.NewCache(room * r.k.block))
	}
	return r
}

// ReadAt makes the file as it is now a source.
func (r *ranges) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(r.now).ReadAt(p, off)
}

func (r *ranges) next() int {
	if len(r.rest) == 0 {
		return 0
	}
	n := r.rest[0]
	r.rest = r.rest[1:]
	return int(n)
}

// offset is a block, and a place in it or a little before it.
func (r *ranges) offset() int {
	return max(0, r.next()%(maxFuzzed/r.k.block)*r.k.block+(r.next()<<8+r.next())-1<<14)
}

func (r *ranges) run() {
	for step := 0; len(r.rest) > 0 && step < 10; step++ {
		switch r.next() % 8 {
		case 't' % 8: // tamper, or repair
			if at := r.offset(); at < len(r.now) {
				r.now[at] ^= 0x10
			}
		case 'c' % 8: // cut, or let it grow
			n := min(r.offset(), len(everything))
			r.now = append(r.now[:min(n, len(r.now))], everything[min(n, len(r.now)):n]...)
		default:
			r.read(r.offset(), r.next()<<8+r.next()+(r.next()%4)<<16)
		}
	}
}

// bad reports whether a block differs from what was hashed.
func (r *ranges) bad(block int) bool {
	from, to := block*r.k.block, min((block+1)*r.k.block, len(r.whole))
	return to > len(r.now) || !bytes.Equal(r.now[from:to], r.whole[from:to])
}

// mustFail reports whether a range has a bad block that no cache can hold.
func (r *ranges) mustFail(off, end int) bool {
	for block := off / r.k.block; off < end && block*r.k.block < end; block++ {
		if r.bad(block) && !r.kept[block] {
			return true
		}
	}
	return false
}

func (r *ranges) read(off, n int) {
	r.t.Helper()
	p := buffer(n)
	got, err := r.reader.ReadAt(p, int64(off))
	end := max(off, min(off+n, len(r.whole)))
	r.checkBytes(p, off, off+got, end, err)
	var mismatch *blockhash.MismatchError
	switch {
	case errors.As(err, &mismatch):
		r.checkMismatch(off, p, got, mismatch)
	case r.mustFail(off, end):
		r.t.Fatalf("%d bytes at %d of %d, a block of which is bad: %d bytes, %v", n, off, len(r.whole), got, err)
	case got != end-off || (err == io.EOF) != (n > end-off) || err != nil && err != io.EOF:
		r.t.Fatalf("%d bytes at %d of %d: %d bytes, %v", n, off, len(r.whole), got, err)
	}
	for block := off / r.k.block; r.cached && off < end && block*r.k.block < end; block++ {
		r.kept[block] = r.kept[block] || !r.bad(block)
	}
}

// checkBytes requires each block's part of a buffer to be what was hashed, or untouched if it was
// not counted.
func (r *ranges) checkBytes(p []byte, off, counted, end int, err error) {
	r.t.Helper()
	for at := off; at < off+len(p); {
		next := min((at/r.k.block+1)*r.k.block, off+len(p))
		if at < end {
			next = min(next, end)
		}
		part := p[at-off : next-off]
		right := at < end && bytes.Equal(part, r.whole[at:next])
		if !right && (at < counted || !bytes.Equal(part, canaries[:len(part)])) {
			r.t.Fatalf("bytes %d to %d were never hashed (counted up to %d, %v)", at, next, counted, err)
		}
		at = next
	}
}

var canaries = buffer(blockhash.BlockSize)

// checkMismatch requires the block to be bad, and none of it to be returned.
func (r *ranges) checkMismatch(off int, p []byte, got int, e *blockhash.MismatchError) {
	r.t.Helper()
	begin := int(e.Block) * r.k.block
	if !r.bad(int(e.Block)) || int(e.Off) != begin || e.Len != min(r.k.block, len(r.whole)-begin) {
		r.t.Fatalf("block %d of %d bytes is good: %+v", e.Block, len(r.whole), e)
	}
	if got != max(0, begin-off) {
		r.t.Fatalf("%d bytes before block %d, read from %d", got, e.Block, off)
	}
	of := p[got:min(len(p), begin+e.Len-off)]
	if !bytes.Equal(of, buffer(len(of))) {
		r.t.Fatalf("bytes of block %d were given, which is bad", e.Block)
	}
}
