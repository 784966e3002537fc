package view

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// sizes are the files of a tree whose content follows from name and place, so that a reader of
// any part of it can check that part.
type sizes map[string]int64

// content is what stands at [off, off+n) of a file.
func content(name string, off int64, n int) []byte {
	seed := fnv.New64a()
	_, _ = seed.Write([]byte(name))
	first := off / 8
	words := make([]byte, 0, n+16)
	for i := first; int64(len(words)) < off-first*8+int64(n); i++ {
		words = binary.LittleEndian.AppendUint64(words, mix(seed.Sum64()+uint64(i)*0x9e3779b97f4a7c15))
	}
	return words[off-first*8:][:n]
}

// mix makes a word of which no part looks like that of its neighbours.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (s sizes) files() harness.Files {
	files := harness.Files{}
	for name, size := range s {
		files[name] = string(content(name, 0, int(size)))
	}
	return files
}

// unit is more than a block can be: a tampered byte may spoil what stands in
// the same unit, and nothing else.
const unit = 1 << 20

// mixed is a tree of files of many sizes, and the bytes in it that are to be
// tampered with: never two in one unit.
func mixed() (sizes, map[string][]int64) {
	s := sizes{"good/large": 6<<20 + 17, "bad/large": 6<<20 + 17, "bad/last": 2<<20 + 1, "bad/small": 3000}
	for i, size := range []int64{0, 1, 4095, 4096, 4097, 65535, 65536, 65537, 300_000, 1 << 20, 1<<20 + 1} {
		s[fmt.Sprintf("good/%02d", i)] = size
	}
	return s, map[string][]int64{"bad/large": {5, 3 << 20, 6<<20 + 16}, "bad/last": {2 << 20}, "bad/small": {1234}}
}

// tamper changes bytes of sources.
func tamper(t *testing.T, p *harness.Project, bad map[string][]int64) {
	t.Helper()
	for name, offsets := range bad {
		f, err := os.OpenFile(p.Source(name), os.O_RDWR, 0)
		harness.Must(t, err)
		for _, off := range offsets {
			_, err := f.WriteAt([]byte{^content(name, off, 1)[0]}, off)
			harness.Must(t, err)
		}
		harness.Must(t, f.Close())
	}
}

// An expectation is what readers may see of a tree.
type expectation struct {
	Sizes sizes
	Bad   map[string][]int64 // tampered bytes: EIO for every read of one
	Loose map[string]bool    // files that may be right or EIO, as a whole
}

// judge says what is wrong with a read: got stands at off of the file, where n
// bytes were wanted and are there, and then came err.
func (e *expectation) judge(name string, off int64, n int, got []byte, err error) error {
	if want := content(name, off, len(got)); string(got) != string(want) {
		return fmt.Errorf("%s: wrong bytes in %d bytes at %d", name, len(got), off)
	}
	for _, bad := range e.Bad[name] {
		if off <= bad && bad < off+int64(len(got)) {
			return fmt.Errorf("%s: the tampered byte %d was served", name, bad)
		}
	}
	switch {
	case err == nil && len(got) == n:
		return nil
	case err == nil:
		return fmt.Errorf("%s: %d of %d bytes at %d", name, len(got), n, off)
	case !errors.Is(err, errIO):
		return fmt.Errorf("%s: at %d: %w", name, off, err)
	case e.Loose[name] || e.near(name, off+int64(len(got)), off+int64(n)):
		return nil
	}
	return fmt.Errorf("%s: %d bytes at %d have nothing wrong, but: %w", name, n, off, err)
}

// near reports whether a tampered byte is in a unit of [from, to).
func (e *expectation) near(name string, from, to int64) bool {
	for _, bad := range e.Bad[name] {
		if from/unit <= bad/unit && bad/unit <= (to-1)/unit {
			return true
		}
	}
	return false
}
