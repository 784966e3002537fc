package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/visible"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// This file is form 1 of the layout: docs/stores.md.

// The names in a store.
const (
	runsPrefix  = "runs/"
	packsPrefix = "packs/"
	marksPrefix = "gc/marks/"
	lockKey     = "gc/lock"
	clockKey    = "gc/clock"
)

// The files of a run beside its artifacts.
const (
	mapFile    = "MAP"
	blocksFile = "BLOCKS"
)

// The limits of a run.
const (
	maxRun     = 1 << 30   // bytes of the compressed file
	maxMap     = 256 << 20 // bytes of the MAP, and of BLOCKS
	maxPack    = 64 << 20  // bytes of a pack
	maxFiles   = 4 << 20   // outputs
	maxPacks   = 1 << 20   // packs of a run
	maxExtents = 16 << 20  // extents of a run
)

// members are the files of a run in their order. The last ones may be missing.
var members = []string{
	mapFile, bundle.TaskSpec, bundle.Status, bundle.OutputHashes, bundle.Proof, bundle.Identity, bundle.SignedPayload, bundle.Signature,
	bundle.ChangesFile, blocksFile,
}

const required = 8 // of the members

func limitOf(name string) int64 {
	if name == mapFile || name == blocksFile {
		return maxMap
	}
	return bundle.MaxSize(name)
}

// id is the SHA-256 of a pack.
type id [32]byte

func (p id) String() string { return hex.EncodeToString(p[:]) }
func (p id) key() string    { return packsPrefix + p.String()[:2] + "/" + p.String() }
func (p id) mark() string   { return marksPrefix + p.String() }

func parseID(text string) (p id, ok bool) {
	if len(text) != 2*len(p) || strings.ToLower(text) != text {
		return p, false
	}
	_, err := hex.Decode(p[:], []byte(text))
	return p, err == nil
}

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

// parseMap reads a MAP. Only what appendMap writes is one.
func parseMap(raw []byte) (*plan, error) {
	m := mapReader{rest: raw}
	p, err := m.plan()
	if err == nil && !bytes.Equal(p.appendMap(make([]byte, 0, len(raw))), raw) {
		err = errors.New("it is not written in the one form")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", mapFile, err)
	}
	return p, nil
}

type mapReader struct{ rest []byte }

func (m *mapReader) plan() (*plan, error) {
	rest, ok := bytes.CutPrefix(m.rest, []byte(mapHead))
	if !ok {
		return nil, errors.New("it is of another form")
	}
	m.rest = rest
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
		line, _ := m.line()
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
		line, ok := m.line()
		if !ok {
			return nil, errors.New("it ends too early")
		}
		if err := p.addLine(line); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// addLine appends the extents of a line.
func (p *plan) addLine(line string) error {
	for line != "" {
		var part string
		part, line, _ = strings.Cut(line, " ")
		var e extent
		for i, to := range []*uint32{&e.pack, &e.off, &e.n} {
			var digits string
			var more bool
			digits, part, more = strings.Cut(part, ":")
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
		p.extents = append(p.extents, e)
	}
	p.ends = append(p.ends, uint32(len(p.extents)))
	return nil
}

func (m *mapReader) line() (string, bool) {
	line, rest, ok := bytes.Cut(m.rest, []byte{'\n'})
	m.rest = rest
	return string(line), ok
}

func (m *mapReader) after(prefix string) (string, error) {
	line, _ := m.line()
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

// number reads a decimal number of at most limit.
func number(text string, limit uint32) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > uint64(limit) {
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

// writeRun is the object of a run: its members, compressed.
func writeRun(content func(name string) ([]byte, error)) ([]byte, error) {
	var out bytes.Buffer
	packed, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(packed)
	for i, name := range members {
		raw, err := content(name)
		if err != nil {
			return nil, err
		}
		if raw == nil && i >= required {
			continue
		}
		if int64(len(raw)) > limitOf(name) {
			return nil, fmt.Errorf("%s has more than %d bytes", name, limitOf(name))
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(raw)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(raw); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return nil, err
	}
	if out.Len() > maxRun {
		return nil, fmt.Errorf("the run has more than %d bytes", maxRun)
	}
	return out.Bytes(), nil
}

// errStop ends readRun early.
var errStop = errors.New("no more members are needed")

// readRun calls member for each file of a run, in order, with its content, all of which it must read.
// Limits hold while it is decompressed.
func readRun(raw []byte, member func(name string, content io.Reader) error) error {
	source := bytes.NewReader(raw)
	unpacked, err := gzip.NewReader(source)
	if err != nil {
		return err
	}
	unpacked.Multistream(false)
	archive := tar.NewReader(unpacked)
	next := 0
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		at := next
		for at < len(members) && members[at] != header.Name && at >= required {
			at++
		}
		switch {
		case at >= len(members) || members[at] != header.Name:
			return fmt.Errorf("file %.100q is not expected here", header.Name)
		case header.Typeflag != tar.TypeReg || header.Format != tar.FormatUSTAR || len(header.PAXRecords) > 0:
			return fmt.Errorf("%s is not a regular file of the form ustar", header.Name)
		case header.Size > limitOf(header.Name):
			return fmt.Errorf("%s has %d bytes; at most %d are read", header.Name, header.Size, limitOf(header.Name))
		}
		next = at + 1
		if err := member(header.Name, archive); err != nil {
			if errors.Is(err, errStop) {
				return nil
			}
			return err
		}
	}
	if next < required {
		return fmt.Errorf("file %s is missing", members[next])
	}
	return nothingAfter(unpacked, source)
}

// nothingAfter requires that nothing follows the archive: the padding of tar is zeros.
func nothingAfter(unpacked io.Reader, source *bytes.Reader) error {
	const most = 64 << 10
	rest, err := io.ReadAll(io.LimitReader(unpacked, most+1))
	if err != nil {
		return err
	}
	if len(rest) > most || len(bytes.Trim(rest, "\x00")) > 0 || source.Len() > 0 {
		return errors.New("something follows the archive")
	}
	return nil
}
