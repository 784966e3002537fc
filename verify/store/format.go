package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/verify/bundle"
)

// This file is form 1 of the layout: docs/stores.md.

// The names in a store.
const (
	runsPrefix  = "runs/"
	packsPrefix = "packs/"
	gcPrefix    = "gc/"
	marksPrefix = gcPrefix + "marks/"
	lockKey     = gcPrefix + "lock"
	clockKey    = gcPrefix + "clock"
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
	maxExtents = 8 << 20   // extents of a run
	minExtent  = 64 << 10  // bytes of an extent that is neither the first nor the last of its output
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

// unpacking is what is decompressed of a run, up to a number of bytes. An archive reader looks for extended
// headers on its own, any number of them; with room for one plain header it finds none.
type unpacking struct {
	ended func() error // of the reading
	in    io.Reader
	left  int64
}

func (u *unpacking) Read(p []byte) (int, error) {
	if err := u.ended(); err != nil {
		return 0, err
	}
	if u.left == 0 {
		return 0, errors.New("it has extended headers, or more than the layout allows")
	}
	n, err := u.in.Read(p[:min(int64(len(p)), u.left)])
	u.left -= int64(n)
	return n, err
}

const tarBlock = 512

// paddingOf is what follows a file in an archive.
func paddingOf(size int64) int64 { return -size & (tarBlock - 1) }

// readRun calls member for each file of a run, in order, with its content, all of which it must read.
// Limits hold while it is decompressed.
func readRun(ctx context.Context, raw []byte, member func(name string, content io.Reader) error) error {
	source := bytes.NewReader(raw)
	packed, err := gzip.NewReader(source)
	if err != nil {
		return err
	}
	packed.Multistream(false)
	unpacked := &unpacking{ended: func() error { return context.Cause(ctx) }, in: packed}
	archive := tar.NewReader(unpacked)
	padding := int64(0)
	next := 0
	for {
		unpacked.left = padding + 2*tarBlock // a header, or the two blocks at the end
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
		unpacked.left, padding = header.Size, paddingOf(header.Size)
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
func nothingAfter(unpacked *unpacking, source *bytes.Reader) error {
	const most = 64 << 10
	unpacked.left = most + 1
	rest, err := io.ReadAll(io.LimitReader(unpacked, most+1))
	if err != nil {
		return err
	}
	if len(rest) > most || len(bytes.Trim(rest, "\x00")) > 0 || source.Len() > 0 {
		return errors.New("something follows the archive")
	}
	return nil
}
