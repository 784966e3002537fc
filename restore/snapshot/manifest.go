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

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// A manifest is a line of the header, a line of each entry, one that counts them, and a last
// line that signs all others. Its bounds, in bytes:
const (
	maxLine     = 2 << 20
	maxManifest = 16 << 30
	writeChunk  = 1 << 20
)

// signature is what a manifest is signed as.
const signature = "snapshot manifest 2"

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

// writeManifest writes to f, and completes the header with the ID and the signer. It prints
// on one goroutine, and hashes and writes on another.
func writeManifest(s *seam, f *os.File, h *Header, entries []Entry, key bundle.Key) error {
	chunks := make(chan []byte, 2)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer close(chunks)
		printManifest(h, entries, chunks, stop)
	}()
	sum := sha256.New()
	for chunk := range chunks {
		sum.Write(chunk)
		if err := s.write(f, chunk); err != nil {
			return err
		}
	}
	public, signed, err := key.SignDigest(signature, [sha256.Size]byte(sum.Sum(nil)))
	if err != nil {
		return err
	}
	last := signedLine(public, signed)
	sum.Write(last)
	if err := s.write(f, last); err != nil {
		return err
	}
	h.ID, h.Signer = hex.EncodeToString(sum.Sum(nil)), key.ValidatorID()
	return nil
}

func printManifest(h *Header, entries []Entry, chunks chan<- []byte, stop <-chan struct{}) {
	var line object
	line.header(h)
	for i := range entries {
		line.entry(&entries[i])
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
	line.number("entries", int64(len(entries)))
	line.end()
	select {
	case chunks <- line.b:
	case <-stop:
	}
}

func isID(id string) bool { return len(id) == 2*sha256.Size && isHex(id) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// readHeader reads the first line only.
func readHeader(d dir, name string) (Header, error) {
	if _, _, err := parseName(name); err != nil {
		return Header{}, err
	}
	f, st, err := d.openFile(name)
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

// readManifest reads all of it. What does not hash to the ID in the name, or is not signed
// by the key that it names, is rejected.
func readManifest(d dir, name string) (*Snapshot, error) {
	f, st, err := d.openFile(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if st.Size > maxManifest {
		return nil, errors.New("too large")
	}
	var p manifestParser
	p.name = name
	p.judge.all = make([]Entry, 0, st.Size/400)
	sums := sums{body: st.Size - signedSize}
	if err := p.parse(d.s, f, int(min(st.Size+1, maxLine)), &sums); err != nil {
		return nil, err
	}
	if sums.all != p.header.ID {
		return nil, fmt.Errorf("its SHA-256 is %s", sums.all)
	}
	if !bundle.DigestSigned(signature, sums.signed, p.public, p.signed) {
		return nil, errors.New("its signature does not fit")
	}
	p.header.Signer = bundle.ValidatorID(p.public)
	return &Snapshot{header: p.header, entries: p.judge.all}, nil
}

type manifestParser struct {
	name   string
	header Header
	judge  judge
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
func (p *manifestParser) parse(s *seam, f *os.File, size int, sums *sums) error {
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
func (all *sums) readChunks(s *seam, f *os.File, size int, chunks chan<- []byte, stop <-chan struct{}) error {
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
		return errors.New("there is more after its end")
	case p.ended:
		return p.signature(line)
	case p.lines == 1:
		p.header, err = headerOf(p.name, line)
		return err
	case strings.HasPrefix(line, `{"entries":`):
		return p.last(line)
	}
	var e Entry
	e, p.buf, err = parseEntry(line, p.buf)
	if err != nil {
		return err
	}
	return p.judge.see(&e)
}

func (p *manifestParser) last(line string) error {
	var want object
	want.number("entries", int64(len(p.judge.all)))
	want.end()
	if line != string(want.b) {
		return errors.New("it does not have the number of entries that it says")
	}
	p.ended = true
	return p.judge.end(&p.header)
}

// signature reads the line that signs the others.
func (p *manifestParser) signature(line string) error {
	r := &lineReader{s: line}
	r.wants("key", func() { p.public = r.bytes(ed25519.PublicKeySize) })
	r.wants("signature", func() { p.signed = r.bytes(ed25519.SignatureSize) })
	if r.bad || string(signedLine(p.public, p.signed)) != line {
		return errLine
	}
	return nil
}
