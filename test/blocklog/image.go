package blocklog

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

const blockSize = 4096

// An Image is a disk in memory; blocks that are not there are zeros.
type Image struct {
	size   int64
	blocks map[int64]*[blockSize]byte // by their number
}

// LoadImage reads a file, its holes quickly.
func LoadImage(path string) (*Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	img := &Image{info.Size(), map[int64]*[blockSize]byte{}}
	var zero, block [blockSize]byte
	for at := int64(0); at < img.size; {
		start, err := f.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break
		}
		if err != nil {
			return nil, err
		}
		at = start - start%blockSize
		n, err := f.ReadAt(block[:], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if !bytes.Equal(block[:n], zero[:n]) {
			img.write(block[:n], at)
		}
		at += blockSize
	}
	return img, nil
}

func (img *Image) write(data []byte, off int64) {
	for len(data) > 0 {
		number, inside := off/blockSize, off%blockSize
		block := img.blocks[number]
		if block == nil {
			block = new([blockSize]byte)
			img.blocks[number] = block
		}
		n := copy(block[inside:], data)
		data, off = data[n:], off+int64(n)
	}
}

// read fills dest as far as the disk goes.
func (img *Image) read(dest []byte, off int64) []byte {
	dest = dest[:max(0, min(int64(len(dest)), img.size-off))]
	for rest := dest; len(rest) > 0; {
		inside := off % blockSize
		part := rest[:min(int64(len(rest)), blockSize-inside)]
		if block := img.blocks[off/blockSize]; block != nil {
			copy(part, block[inside:])
		} else {
			clear(part)
		}
		rest, off = rest[len(part):], off+int64(len(part))
	}
	return dest
}

// Save writes the image into a file, with holes where there is nothing.
func (img *Image) Save(path string) error {
	f, err := img.save(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// save writes the image into a file, which keeps its inode but nothing else.
func (img *Image) save(path string) (*os.File, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := img.saveTo(f); err != nil {
		f.Close() //nolint:errcheck // the first error is the one to tell
		return nil, err
	}
	return f, nil
}

func (img *Image) saveTo(f *os.File) error {
	if err := f.Truncate(img.size); err != nil {
		return err
	}
	const atOnce = 256
	run := make([]byte, 0, atOnce*blockSize)
	start := int64(0)
	flush := func() error {
		_, err := f.WriteAt(run, start*blockSize)
		run = run[:0]
		return err
	}
	for _, number := range slices.Sorted(maps.Keys(img.blocks)) {
		if number != start+int64(len(run)/blockSize) || len(run) == cap(run) {
			if err := flush(); err != nil {
				return err
			}
			start = number
		}
		run = append(run, img.blocks[number][:]...)
	}
	return flush()
}
