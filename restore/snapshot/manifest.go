package snapshot

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// A manifest is a line of the header, a line of each entry or of each part after some entries,
// one that counts the entries, and a last line that signs all others. Its bounds, in bytes:
const (
	maxLine     = 2 << 20
	maxManifest = 16 << 30
	writeChunk  = 1 << 20
)

// signature is what a manifest of a version is signed as.
func signature(version int) string { return fmt.Sprintf("snapshot manifest %d", version) }

// signedLine is the last line: the public key, and its signature of all lines before.
func signedLine(public, signed []byte) []byte {
	var line object
	line.hex("key", public)
	line.hex("signature", signed)
	line.end()
	return line.b
}

// signedSize is the length of the last line.
var signedSize = int64(len(signedLine(make([]byte, ed25519.PublicKeySize), make([]byte, ed25519.SignatureSize))))

// writeManifest writes the entries, or the first of them and the parts that have the others, to f,
// and completes the header with the ID and the signer. It prints on one goroutine, and hashes and
// writes on another.
func writeManifest(s *sysHook, f *os.File, h *Header, entries []Entry, parts []part, key bundle.Key) error {
	chunks := make(chan []byte, 2)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(chunks)
		printManifest(h, entries, parts, chunks, stop)
	}()
	sum := sha256.New()
	for chunk := range chunks {
		sum.Write(chunk)
		if err := s.Write(f, chunk); err != nil {
			return err
		}
	}
	public, signed, err := key.SignDigest(signature(h.Version), [sha256.Size]byte(sum.Sum(nil)))
	if err != nil {
		return err
	}
	last := signedLine(public, signed)
	sum.Write(last)
	if err := s.Write(f, last); err != nil {
		return err
	}
	h.ID, h.Signer = hex.EncodeToString(sum.Sum(nil)), key.ValidatorID()
	return nil
}

func printManifest(h *Header, entries []Entry, parts []part, chunks chan<- []byte, stop <-chan struct{}) {
	var line object
	line.header(h)
	count := int64(len(entries))
	if len(parts) > 0 {
		entries = entries[:1]
	}
	for i := range len(entries) + len(parts) {
		if i < len(entries) {
			line.entry(&entries[i])
		} else {
			line.part(parts[i-len(entries)])
		}
		if len(line.b) < writeChunk {
			continue
		}
		select {
		case chunks <- line.b:
		case <-stop:
			return
		}
		line.b = make([]byte, 0, writeChunk+writeChunk/8)
	}
	line.number("entries", count)
	line.end()
	select {
	case chunks <- line.b:
	case <-stop:
	}
}

func isID(id string) bool { return hexdigits.Are(id, 2*sha256.Size) }

// readHeader reads the first line only.
func readHeader(d dir, name string) (Header, error) {
	if _, _, err := parseName(name); err != nil {
		return Header{}, err
	}
	f, st, err := d.OpenFile(name)
	if err != nil {
		return Header{}, err
	}
	defer f.Close()
	lines, err := readLines(d, f, 1)
	if err != nil {
		return Header{}, err
	}
	if st.Size > maxManifest {
		return Header{}, errors.New("too large")
	}
	return headerOf(name, lines[0])
}

// readLines reads the first n lines.
func readLines(d dir, f *os.File, n int) ([]string, error) {
	const usual = 4 << 10
	var all []byte
	for bytes.Count(all, []byte("\n")) < n {
		grown := make([]byte, max(usual, 2*len(all)))
		had := copy(grown, all)
		more, err := d.s.read(f, grown[had:])
		if err != nil {
			return nil, err
		}
		all = grown[:had+more]
		if more == 0 || len(all) > 2*n*maxLine {
			return nil, errLine
		}
	}
	return strings.SplitAfterN(string(all), "\n", n+1)[:n], nil
}

// headerOf reads the header of the manifest that has this name.
func headerOf(name, line string) (Header, error) {
	sequence, id, err := parseName(name)
	if err != nil {
		return Header{}, err
	}
	h, err := parseHeader(line)
	if err != nil {
		return Header{}, err
	}
	if h.Sequence != sequence {
		return Header{}, errors.New("its name has another sequence number")
	}
	h.ID = id
	return h, nil
}

// A manifest was read, but for its parts.
type manifest struct {
	header Header
	check  treeCheck // of the entries that are in it
	parts  []part
}

// readManifest reads all of it, but for its parts. What does not hash to the ID in the name, or is
// not signed by the key that it names, is rejected.
func readManifest(d dir, name string) (*manifest, error) {
	f, st, err := d.OpenFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size > maxManifest {
		return nil, errors.New("too large")
	}
	var p manifestParser
	p.name = name
	p.check.all = make([]Entry, 0, st.Size/400) // too many where there are parts: they have few lines
	sums := sums{body: st.Size - signedSize}
	if err := p.parse(d.s, f, int(min(st.Size+1, maxLine)), &sums); err != nil {
		return nil, err
	}
	if sums.all != p.header.ID {
		return nil, fmt.Errorf("its SHA-256 is %s", sums.all)
	}
	if !bundle.DigestSigned(signature(p.header.Version), sums.signed, p.public, p.signed) {
		return nil, errors.New("its signature does not fit")
	}
	p.header.Signer = bundle.ValidatorID(p.public)
	if len(p.parts) > 0 {
		all := make([]Entry, 0, min(p.count, likelyEntries))
		p.check.all = append(all, p.check.all...)
	}
	return &p.manifest, nil
}

// likelyEntries bounds the memory that a manifest gets for what it only says that its parts have.
const likelyEntries = 1 << 20

type manifestParser struct {
	manifest
	name   string
	count  int64 // entries, with those of the parts
	lines  int
	ended  bool // the line that counts the entries was read
	public []byte
	signed []byte // the signature
	buf    []byte
}

// sums are the hashes of a manifest.
type sums struct {
	body   int64 // how many bytes are signed
	signed [sha256.Size]byte
	all    string
}

// parse reads and hashes on one goroutine, and parses on another.
func (p *manifestParser) parse(s *sysHook, f *os.File, size int, sums *sums) error {
	chunks := make(chan []byte, 4)
	stop := make(chan struct{})
	var readErr error
	go func() {
		defer close(chunks)
		readErr = sums.readChunks(s, f, size, chunks, stop)
	}()
	var err error
	for chunk := range chunks {
		if err == nil {
			if err = p.chunk(string(chunk)); err != nil {
				close(stop)
			}
		}
	}
	switch {
	case err != nil:
		return err
	case readErr != nil:
		return readErr
	case p.signed == nil:
		return errors.New("its end is missing")
	}
	return nil
}

// readChunks sends whole lines, read size bytes at a time, and hashes them.
func (all *sums) readChunks(s *sysHook, f *os.File, size int, chunks chan<- []byte, stop <-chan struct{}) error {
	sum := sha256.New()
	var rest []byte
	for left := all.body; ; {
		buf := make([]byte, len(rest)+size)
		n := copy(buf, rest)
		more, err := s.read(f, buf[n:])
		if err != nil {
			return err
		}
		body := max(0, min(left, int64(more)))
		sum.Write(buf[n : n+int(body)])
		if left -= body; left == 0 && body > 0 {
			all.signed = [sha256.Size]byte(sum.Sum(nil))
		}
		sum.Write(buf[n+int(body) : n+more])
		buf = buf[:n+more]
		end := bytes.LastIndexByte(buf, '\n') + 1
		switch {
		case more == 0 && len(buf) == 0:
			all.all = hex.EncodeToString(sum.Sum(nil))
			return nil
		case end == 0:
			return errLine
		}
		rest = bytes.Clone(buf[end:])
		select {
		case chunks <- buf[:end]:
		case <-stop:
			return nil
		}
	}
}

func (p *manifestParser) chunk(chunk string) error {
	for chunk != "" {
		end := strings.IndexByte(chunk, '\n') + 1
		if err := p.line(chunk[:end]); err != nil {
			return fmt.Errorf("line %d: %w", p.lines, err)
		}
		chunk = chunk[end:]
	}
	return nil
}

func (p *manifestParser) line(line string) (err error) {
	p.lines++
	switch {
	case p.signed != nil:
		return errors.New("it has trailing data")
	case p.ended:
		return p.signature(line)
	case p.lines == 1:
		p.header, err = headerOf(p.name, line)
		return err
	case strings.HasPrefix(line, `{"entries":`):
		return p.last(line)
	case strings.HasPrefix(line, partLine) && p.header.Version >= withParts:
		next, err := parsePart(line)
		p.parts = append(p.parts, next)
		p.count += int64(next.names)
		return err
	case len(p.parts) > 0:
		return errors.New("there is an entry after the parts")
	}
	p.count++
	var e Entry
	e, p.buf, err = parseEntry(line, p.buf)
	if err != nil {
		return err
	}
	return p.check.see(&e)
}

func (p *manifestParser) last(line string) error {
	var want object
	want.number("entries", p.count)
	want.end()
	if line != string(want.b) {
		return errors.New("its number of entries is wrong")
	}
	p.ended = true
	return nil
}

// signature reads the line that signs the others.
func (p *manifestParser) signature(line string) error {
	r := &lineReader{s: line}
	r.requires("key", func() { p.public = r.bytes(ed25519.PublicKeySize) })
	r.requires("signature", func() { p.signed = r.bytes(ed25519.SignatureSize) })
	if r.bad || string(signedLine(p.public, p.signed)) != line {
		return errLine
	}
	return nil
}
