package store

import (
	"bufio"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
)

// This file is the MAP of form 1 of the layout: docs/stores.md.

// An extent is a part of a pack.
type extent struct{ pack, off, n uint32 }

// A pack is named by its content.
type pack struct {
	id   id
	size uint32
}

// A plan says where the bytes of the outputs of a run are. It is what a MAP says, and nothing of it is
// trusted.
type plan struct {
	runID   string
	packs   []pack
	ends    []uint32 // of each output, the end of its extents
	extents []extent
}

// of returns the extents of an output.
func (p *plan) of(output int) []extent {
	first := uint32(0)
	if output > 0 {
		first = p.ends[output-1]
	}
	return p.extents[first:p.ends[output]]
}

// add appends an output.
func (p *plan) add(extents []extent) {
	p.extents = append(p.extents, extents...)
	p.ends = append(p.ends, uint32(len(p.extents)))
}

func sizeOf(extents []extent) int64 {
	var all int64
	for _, e := range extents {
		all += int64(e.n)
	}
	return all
}

// What the outputs of a run can claim to have, beside the bytes of its packs: the same bytes can stand for
// many outputs, and for all of a sparse one. A push rejects what a reader would.
const (
	maxRepeats = 16
	spareBytes = 256 << 30
)

// checkClaims bounds the bytes that are fetched and hashed for the outputs, which have these digests. At
// no output they are more than maxRepeats times those of the packs that were needed until then, and
// spareBytes. A content counts once.
func (p *plan) checkClaims(digests iter.Seq[[sha256.Size]byte]) error {
	first := map[id]uint32{} // the index of a pack, which can have several
	same := make([]uint32, len(p.packs))
	for i, pack := range p.packs {
		if _, ok := first[pack.id]; !ok {
			first[pack.id] = uint32(i)
		}
		same[i] = first[pack.id]
	}
	used := make([]int64, len(p.packs))
	placed := map[id]int{} // the first output with a content
	claimed, needed, output := int64(0), int64(0), -1
	for digest := range digests {
		output++
		extents := p.of(output)
		if sizeOf(extents) > minExtent { // all the smaller ones together are fewer than the spare bytes
			if at, ok := placed[digest]; ok && slices.Equal(extents, p.of(at)) {
				continue
			}
			placed[digest] = output
		}
		for _, e := range extents {
			in := same[e.pack]
			more := min(int64(e.n), int64(p.packs[in].size)-used[in])
			used[in] += more
			claimed, needed = claimed+int64(e.n), needed+more
			if claimed > spareBytes+maxRepeats*needed {
				return fmt.Errorf("its outputs have more than %d bytes of %d bytes in packs", claimed, needed)
			}
		}
	}
	return nil
}

const mapHead = "spectrum-map 1\n"

// appendMap is the MAP of a plan.
func (p *plan) appendMap(b []byte) []byte {
	b = append(b, mapHead...)
	b = fmt.Appendf(b, "run %s\npacks %d\n", p.runID, len(p.packs))
	for _, pack := range p.packs {
		b = hex.AppendEncode(b, pack.id[:])
		b = append(b, ' ')
		b = append(strconv.AppendUint(b, uint64(pack.size), 10), '\n')
	}
	b = fmt.Appendf(b, "files %d\n", len(p.ends))
	for output := range p.ends {
		for i, e := range p.of(output) {
			if i > 0 {
				b = append(b, ' ')
			}
			b = append(strconv.AppendUint(b, uint64(e.pack), 10), ':')
			b = append(strconv.AppendUint(b, uint64(e.off), 10), ':')
			b = strconv.AppendUint(b, uint64(e.n), 10)
		}
		b = append(b, '\n')
	}
	return b
}

// parseMap reads a MAP. Only what appendMap writes is one: a number has one form, and so has a
// line. Its packs, files and extents are bounded, and so is the memory that they take.
func parseMap(raw io.Reader) (*plan, error) {
	p, err := (&mapReader{in: bufio.NewReaderSize(raw, longestLine)}).plan()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mapFile, err)
	}
	return p, nil
}

// longestLine is more than a line of a MAP can have, but for those of outputs.
const longestLine = 4096

type mapReader struct {
	in      *bufio.Reader
	scratch []byte
}

func (m *mapReader) plan() (*plan, error) {
	if head, err := m.line(); err != nil || head+"\n" != mapHead {
		return nil, cmp.Or(err, errors.New("it is of another form"))
	}
	runID, err := m.after("run ")
	if err == nil {
		err = checkRunID(runID)
	}
	if err != nil {
		return nil, err
	}
	p := &plan{runID: runID}
	packs, err := m.count("packs ", maxPacks)
	if err != nil {
		return nil, err
	}
	for range packs {
		line, err := m.line()
		if err != nil {
			return nil, err
		}
		name, size, _ := strings.Cut(line, " ")
		of, ok := parseID(name)
		n, err := number(size, maxPack)
		if err != nil || !ok || n == 0 {
			return nil, fmt.Errorf("bad pack %.100q", line)
		}
		p.packs = append(p.packs, pack{of, n})
	}
	files, err := m.count("files ", maxFiles)
	if err != nil {
		return nil, err
	}
	for range files {
		if err := m.output(p); err != nil {
			return nil, err
		}
	}
	if _, err := m.in.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, cmp.Or(err, errors.New("something follows its last line"))
	}
	return p, nil
}

// output reads the line of an output, an extent at a time: a line can be long.
func (m *mapReader) output(p *plan) error {
	out := output{plan: p}
	m.scratch = m.scratch[:0]
	for {
		b, err := m.in.ReadByte()
		if err != nil {
			return noEnd(err)
		}
		if b != ' ' && b != '\n' {
			if m.scratch = append(m.scratch, b); len(m.scratch) > longestExtent {
				return errors.New("bad extent")
			}
			continue
		}
		if b == ' ' || len(m.scratch) > 0 || out.n > 0 {
			if err := out.add(string(m.scratch)); err != nil {
				return err
			}
			m.scratch = m.scratch[:0]
		}
		if b == '\n' {
			p.ends = append(p.ends, uint32(len(p.extents)))
			return nil
		}
	}
}

// longestExtent is more than an extent has as text.
const longestExtent = 32

// An output is a line of a MAP that is read.
type output struct {
	plan *plan
	n    int   // extents
	size int64 // their bytes
}

// add reads one more extent. Only the first and the last of an output can be smaller than minExtent, so
// a few bytes do not take many requests.
func (o *output) add(text string) error {
	p := o.plan
	var e extent
	rest := text
	for i, to := range []*uint32{&e.pack, &e.off, &e.n} {
		var digits string
		var more bool
		digits, rest, more = strings.Cut(rest, ":")
		var err error
		if *to, err = number(digits, maxPack); err != nil || more == (i == 2) {
			return errors.New("bad extent")
		}
	}
	if int(e.pack) >= len(p.packs) || e.n == 0 || uint64(e.off)+uint64(e.n) > uint64(p.packs[e.pack].size) {
		return errors.New("an extent is not in its pack")
	}
	if len(p.extents) == maxExtents {
		return fmt.Errorf("it has more than %d extents", maxExtents)
	}
	if o.n, o.size = o.n+1, o.size+int64(e.n); int64(o.n) > 2+o.size/minExtent {
		return fmt.Errorf("an output of it has %d extents for %d bytes", o.n, o.size)
	}
	p.extents = append(p.extents, e)
	return nil
}

// addLine appends the extents of a line.
func (p *plan) addLine(line string) error {
	out := output{plan: p}
	if line != "" {
		for part := range strings.SplitSeq(line, " ") {
			if err := out.add(part); err != nil {
				return err
			}
		}
	}
	p.ends = append(p.ends, uint32(len(p.extents)))
	return nil
}

// line reads a line and returns it without its end.
func (m *mapReader) line() (string, error) {
	line, err := m.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return "", errors.New("a line is too long")
	}
	if err != nil {
		return "", noEnd(err)
	}
	return string(line[:len(line)-1]), nil
}

func noEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("it ends too early")
	}
	return err
}

func (m *mapReader) after(prefix string) (string, error) {
	line, err := m.line()
	if err != nil {
		return "", err
	}
	text, ok := strings.CutPrefix(line, prefix)
	if !ok {
		return "", fmt.Errorf("%.100q where a line %q is expected", line, prefix)
	}
	return text, nil
}

func (m *mapReader) count(prefix string, limit uint32) (uint32, error) {
	text, err := m.after(prefix)
	if err != nil {
		return 0, err
	}
	return number(text, limit)
}

// number reads a decimal number of at most limit, in the one way to write it.
func number(text string, limit uint32) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > uint64(limit) || strconv.FormatUint(n, 10) != text {
		return 0, fmt.Errorf("%.20q is not a number of at most %d", text, limit)
	}
	return uint32(n), nil
}

// checkRunID requires a name that is safe as a directory and on a terminal.
func checkRunID(name string) error {
	p, err := pathsafe.Parse(name)
	switch {
	case err != nil || len(p.Components()) != 1 || len(name) > pathsafe.MaxName:
		return fmt.Errorf("run id %.100q is not a name", name)
	case !utf8.ValidString(name) || visible.Escape(name) != name:
		return fmt.Errorf("run id %.100q has characters that cannot be seen", name)
	case strings.HasPrefix(name, "."):
		return fmt.Errorf("run id %.100q begins with a dot", name)
	}
	return nil
}
