package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30

	bigFiles  = 4
	viewFiles = 2 // one for each of two readers
	smallSize = 8 * kib
	tinySize  = 1 * kib
	speckSize = 100
	perDir    = 200 // files in one directory of a set
)

// sizes is how much data the sections use.
type sizes struct {
	bigMiB  int
	small   int
	viewMiB int
	tiny    int
	million int
}

// need returns the bytes that the largest section takes: its set, what both sides restore in
// each round of two measurements, and as much again for what file systems add. Some 22 GiB
// by default. The sections that restore nothing keep at most a second copy.
func (s sizes) need(rounds int) int64 {
	const block = 4 * kib
	restored := max(int64(s.bigMiB)*mib*bigFiles, int64(s.small)*smallSize)
	kept := max(int64(s.viewMiB)*mib*viewFiles, int64(max(s.tiny, s.million))*block)
	return max(int64(4*rounds+2)*restored, 2*kept)
}

// files returns the files that the section with the most of them has at once.
func (s sizes) files(rounds int) int64 {
	return max(int64(4*rounds+2)*int64(s.small), int64(s.tiny), int64(s.million))
}

func checkSpace(dir string, need, files int64) error {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return fmt.Errorf("statfs %q: %w", dir, err)
	}
	if free := int64(st.Bavail) * st.Bsize; free < need {
		return fmt.Errorf("too little space in %q: %.1f GiB free, %.1f GiB needed",
			dir, float64(free)/gib, float64(need)/gib)
	}
	if st.Files > 0 && int64(st.Ffree) < files { // 0: it makes inodes as they are needed
		return fmt.Errorf("too few inodes in %q: %d free, %d needed", dir, st.Ffree, files)
	}
	return nil
}

// set is a project with one run, whose outputs are the files below data.
type set struct {
	name    string
	project string // absolute
	n       int    // files
	size    int    // bytes of each
	perDir  int    // files in one directory; 0 is the usual number
}

func (s set) data() string   { return filepath.Join(s.project, "data") }
func (s set) runDir() string { return filepath.Join(s.project, "CONTRACTS", "_runs", s.name) }

// file returns the path of file i, relative to the project.
func (s set) file(i int) string {
	return filepath.Join("data", strconv.Itoa(i/cmp.Or(s.perDir, perDir)), fmt.Sprintf("%06d.bin", i))
}

// write makes the files. They differ from each other and do not compress.
func (s set) write(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(s.runDir()), 0o755); err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{})
	buf := make([]byte, min(s.size, mib))
	for i := range s.n {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := writeFile(filepath.Join(s.project, s.file(i)), s.size, random, buf); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(path string, size int, random *rand.ChaCha8, buf []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for left := size; left > 0; {
		part := buf[:min(left, len(buf))]
		_, _ = random.Read(part) // never fails
		if _, err := f.Write(part); err != nil {
			return err
		}
		left -= len(part)
	}
	return f.Close()
}
