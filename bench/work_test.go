package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestReadsMissNothing changes what is read; every reader must fail.
func TestReadsMissNothing(t *testing.T) {
	s := set{project: t.TempDir(), name: "reads", n: 3, size: 3 * pageSize, perDir: 2}
	if err := s.write(t.Context()); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(s.project, s.file(2))
	readers := map[string]func() error{
		"one after the other": func() error { return readAll(s.project, s) },
		"at once":             func() error { return readAtOnce(s.project, s) },
		"pages":               func() error { return readPages(big, []int{2, 0, 1}) },
		"tar":                 func() error { return tarAll(t.Context(), s.project, s) },
		"find":                func() error { return list(t.Context(), 3+3, "find", s.project) },
	}
	for name, read := range readers {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := os.Truncate(big, 2*pageSize); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one after the other", "at once", "pages"} {
		if err := readers[name](); err == nil {
			t.Errorf("%s: a file that was cut was read as a whole", name)
		}
	}
	if err := os.RemoveAll(filepath.Join(s.project, "data")); err != nil {
		t.Fatal(err)
	}
	for name, read := range readers {
		if err := read(); err == nil {
			t.Errorf("%s: files that are not there were read", name)
		}
	}
}

// TestDirectoriesOfSet counts files in directories of the usual and of another size.
func TestDirectoriesOfSet(t *testing.T) {
	for perDir, want := range map[int][]string{0: {"0", "1"}, 100: {"0", "1", "2"}} {
		s := set{project: t.TempDir(), name: "dirs", n: 201, size: 1, perDir: perDir}
		if err := s.write(t.Context()); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(s.data())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d in one directory: %v, want %v", perDir, got, want)
		}
	}
}

func TestWriteEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := set{project: t.TempDir(), name: "cancelled", n: 1, size: 1}
	if err := s.write(ctx); err == nil {
		t.Error("written after all")
	}
}

// TestWithoutRestic leaves the section out, and fails nothing.
func TestWithoutRestic(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	rows, err := new(bench).restic(t.Context())
	if len(rows) > 0 || err != nil {
		t.Errorf("got %v, %v", rows, err)
	}
}
