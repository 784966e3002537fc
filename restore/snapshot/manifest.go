package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// A manifest is a line of the header, a line of each entry and a last line that
// counts them. Its bounds, in bytes:
const (
	maxLine     = 2 << 20
	maxManifest = 16 << 30
	writeChunk  = 1 << 20
)

// writeManifest writes to f and returns the ID. It prints on one goroutine, and
// hashes and writes on another.
func writeManifest(s *seam, f *os.File, h *Header, entries []Entry) (string, error) {
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
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
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

// parseName returns the time and the ID that the name of a manifest's file
// tells.
func parseName(name string) (time.Time, string, error) {
	at, id, _ := strings.Cut(name, "-")
	t, err := time.Parse(nameLayout, at)
	if err != nil || !isID(id) || stamp(t)+"-"+id != name {
		return time.Time{}, "", errors.New("not the name of a snapshot")
	}
	return t, id, nil
}

func isID(id string) bool { return len(id) == 2*sha256.Size && isHex(id) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// readHeader reads the first line only.
func readHeader(d dir, name string) (Header, error) {
	f, st, err := d.openFile(name)
	if err != nil {
		return Header{}, err
	}
	defer f.Close()
	const usual = 4 << 10
	var line []byte
	for end := -1; end < 0; end = bytes.IndexByte(line, '\n') {
		grown := make([]byte, max(usual, 2*len(line)))
		n := copy(grown, line)
		more, err := d.s.read(f, grown[n:])
		if err != nil {
			return Header{}, err
		}
		line = grown[:n+more]
		if more == 0 || len(line) > 2*maxLine {
			return Header{}, errLine
		}
	}
	if st.Size > maxManifest {
		return Header{}, errors.New("too large")
	}
	return headerOf(name, string(line[:bytes.IndexByte(line, '\n')+1]))
}

// headerOf reads the header of the manifest that has this name.
func headerOf(name, line string) (Header, error) {
	t, id, err := parseName(name)
	if err != nil {
		return Header{}, err
	}
	h, err := parseHeader(line)
	if err != nil {
		return Header{}, err
	}
	if !h.Time.Equal(t) {
		return Header{}, errors.New("its name tells another time")
	}
	h.ID = id
	return h, nil
}

// readManifest reads all of it. What does not hash to the ID in the name is
// refused.
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
	sum, err := p.parse(d.s, f, int(min(st.Size+1, maxLine)))
	if err != nil {
		return nil, err
	}
	if sum != p.header.ID {
		return nil, fmt.Errorf("its SHA-256 is %s", sum)
	}
	return &Snapshot{header: p.header, entries: p.judge.all}, nil
}

type manifestParser struct {
	name   string
	header Header
	judge  judge
	lines  int
	ended  bool
	buf    []byte
}

// parse reads and hashes on one goroutine, and parses on another.
func (p *manifestParser) parse(s *seam, f *os.File, size int) (string, error) {
	chunks := make(chan []byte, 4)
	stop := make(chan struct{})
	var sum string
	var readErr error
	go func() {
		defer close(chunks)
		sum, readErr = readChunks(s, f, size, chunks, stop)
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
		return "", err
	case readErr != nil:
		return "", readErr
	case !p.ended:
		return "", errors.New("its end is missing")
	}
	return sum, nil
}

// readChunks sends whole lines, read size bytes at a time, and returns the hash
// of all.
func readChunks(s *seam, f *os.File, size int, chunks chan<- []byte, stop <-chan struct{}) (string, error) {
	sum := sha256.New()
	var rest []byte
	for {
		buf := make([]byte, len(rest)+size)
		n := copy(buf, rest)
		more, err := s.read(f, buf[n:])
		if err != nil {
			return "", err
		}
		sum.Write(buf[n : n+more])
		buf = buf[:n+more]
		end := bytes.LastIndexByte(buf, '\n') + 1
		switch {
		case more == 0 && len(buf) == 0:
			return hex.EncodeToString(sum.Sum(nil)), nil
		case end == 0:
			return "", errLine
		}
		rest = bytes.Clone(buf[end:])
		select {
		case chunks <- buf[:end]:
		case <-stop:
			return "", nil
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
	case p.ended:
		return errors.New("there is more after its end")
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
