package gitbase

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"golang.org/x/sys/unix"
)

// This file finds FIFOs and devices where git reads a file. git opens them like any file, and waits for
// another process to write.

// A WaitError is a FIFO or a device where git would read a file.
type WaitError struct{ Path string }

func (e *WaitError) Error() string {
	return fmt.Sprintf("%q is a FIFO or a device, and git would wait for it", e.Path)
}

// readByName are the files that git reads in each directory of a work tree.
var readByName = []string{".gitattributes", ".gitignore", ".gitmodules"}

// waits holds the git directories that were looked at.
type waits map[string]bool

// checkAbove looks at what git reads to find the repository of a project.
func (w waits) checkAbove(ctx context.Context, root string) error {
	for up := root; ; up = filepath.Dir(up) {
		bare := []string{"HEAD", "commondir"} // of a bare repository, as which git tries each directory
		for _, name := range slices.Concat(bare, readByName) {
			if err := checkFile(filepath.Join(up, name)); err != nil {
				return err
			}
		}
		at := filepath.Join(up, ".git")
		if _, err := os.Lstat(at); err == nil {
			return w.checkGit(ctx, at)
		}
		if up == filepath.Dir(up) {
			return nil
		}
	}
}

// checkTree looks at what git reads in a work tree, and in the repositories in it.
func (w waits) checkTree(ctx context.Context, root string) error {
	return filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil: // git does not enter it either
			return nil
		case entry.Name() == ".git":
			if err := w.checkGit(ctx, path); err != nil || !entry.IsDir() {
				return err
			}
			return fs.SkipDir
		case slices.Contains(readByName, entry.Name()) && !entry.Type().IsRegular():
			return checkFile(path)
		}
		return nil
	})
}

// checkGit looks at all files of a git directory, or of that which a file .git names.
func (w waits) checkGit(ctx context.Context, at string) error {
	if err := checkFile(at); err != nil {
		return err
	}
	if named, ok := strings.CutPrefix(firstLine(at), "gitdir: "); ok {
		at = from(filepath.Dir(at), named)
	}
	at, err := filepath.EvalSymlinks(at)
	if err != nil || w[at] {
		return nil // git reports the error
	}
	w[at] = true
	err = filepath.WalkDir(at, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil || entry.IsDir() || entry.Type().IsRegular() {
			return nil
		}
		return checkFile(path)
	})
	if common := firstLine(filepath.Join(at, "commondir")); err == nil && common != "" {
		return w.checkGit(ctx, from(at, common))
	}
	return err
}

// checkFile rejects a FIFO or a device, and a link to one.
func checkFile(path string) error {
	if info, err := os.Stat(path); err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeDevice) != 0 {
		return &WaitError{path}
	}
	return nil
}

// from is a path that is named in a directory.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// firstLine returns the beginning of a small regular file, "" for what is none.
func firstLine(path string) string {
	in, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	raw, err := io.ReadAll(io.LimitReader(in, 2*pathsafe.MaxPath))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	return line
}
