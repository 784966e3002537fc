package served

import (
	"iter"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// PathDirs returns the directories of PATH that may be searched for a program: the absolute ones
// that can be opened and that no other user serves.
func PathDirs() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
			if filepath.IsAbs(dir) && isSafe(dir) && !yield(dir) {
				return
			}
		}
	}
}

func isSafe(dir string) bool {
	fd, err := OpenDir(dir)
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	return Check(fd) == nil
}
