package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// plainChunk is how much the plain restore reads at a time.
const plainChunk = 8 * kib

// plainRestore is what a careful program does in one thread, file after file: it hashes the
// source, copies it beside its place, hashes the copy, moves it, and hashes it once more.
// It syncs nothing, so that it is not durable, and it undoes nothing.
func plainRestore(_ context.Context, s set, root string) error {
	staged := filepath.Join(root, "staged")
	return filepath.WalkDir(s.data(), func(source string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.project, source)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return errors.Join(os.MkdirAll(filepath.Join(staged, rel), 0o755), os.MkdirAll(filepath.Join(root, rel), 0o755))
		}
		return plainFile(source, filepath.Join(staged, rel), filepath.Join(root, rel))
	})
}

func plainFile(source, staged, target string) error {
	want, err := plainHash(source)
	if err != nil {
		return err
	}
	if err := plainCopy(source, staged); err != nil {
		return err
	}
	if err := plainCheck(staged, want); err != nil {
		return err
	}
	if err := os.Rename(staged, target); err != nil {
		return err
	}
	return plainCheck(target, want)
}

func plainHash(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	err = plainLoop(f, h)
	return h.Sum(nil), err
}

func plainCheck(path string, want []byte) error {
	got, err := plainHash(path)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("%q is not what was copied", path)
	}
	return err
}

func plainCopy(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.Create(to)
	if err != nil {
		return err
	}
	return errors.Join(plainLoop(source, target), target.Close())
}

// plainLoop hides what source and target could do beyond reading and writing: io.Copy would
// copy in the kernel.
func plainLoop(source io.Reader, target io.Writer) error {
	buf := make([]byte, plainChunk)
	for {
		n, err := source.Read(buf)
		if _, writeErr := target.Write(buf[:n]); writeErr != nil {
			return writeErr
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
