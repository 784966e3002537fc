package snapshot

import (
	"errors"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// A path inside of the package is a string of bytes: names joined by slashes,
// "" for the root. Unlike a pathsafe.Path it may hold a backslash.

func join(dir, name string) string {
	switch {
	case dir == "":
		return name
	case name == "":
		return dir
	}
	return dir + "/" + name
}

// split returns the directory and the name.
func split(path string) (dir, name string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// beneath reports whether path is below dir.
func beneath(path, dir string) bool {
	return dir == "" && path != "" || len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir
}

// comparePaths orders paths so that a directory comes right before what is in
// it: by the bytes of one name after the other.
func comparePaths(a, b string) int {
	n := min(len(a), len(b))
	i := 0
	for i < n && a[i] == b[i] {
		i++
	}
	switch {
	case i == n:
		return len(a) - len(b)
	case a[i] == '/':
		return -1
	case b[i] == '/':
		return 1
	}
	return int(a[i]) - int(b[i])
}

// checkPath rejects a path that cannot exist in a root.
func checkPath(path string) error {
	if path == "" {
		return nil
	}
	if len(path) > pathsafe.MaxPath {
		return pathsafe.ErrTooLong
	}
	for name := range strings.SplitSeq(path, "/") {
		if len(name) > pathsafe.MaxName {
			return pathsafe.ErrTooLong
		}
		if name == "" || name == "." || name == ".." || strings.IndexByte(name, 0) >= 0 {
			return errors.New("not a valid path")
		}
	}
	return nil
}

// maxFollow is how many links one way may lead through.
const maxFollow = 40

// A way is a walk along names, through links as long as they stay beneath the
// root.
type way struct {
	done, todo []string
	followed   int
}

func (w *way) path() string { return strings.Join(w.done, "/") }

// next takes the next name, false at the end.
func (w *way) next() (string, bool, error) {
	for len(w.todo) > 0 {
		name := w.todo[0]
		w.todo = w.todo[1:]
		switch {
		case name == "" || name == ".":
		case name != "..":
			return name, true, nil
		case len(w.done) == 0:
			return "", false, pathsafe.ErrEscape
		default:
			w.done = w.done[:len(w.done)-1]
		}
	}
	return "", false, nil
}

func (w *way) enter(name string) { w.done = append(w.done, name) }

// follow goes on along the target of a link in the directory reached.
func (w *way) follow(target string) error {
	if w.followed++; w.followed > maxFollow || strings.HasPrefix(target, "/") {
		return pathsafe.ErrEscape
	}
	w.todo = slices.Concat(strings.Split(target, "/"), w.todo)
	return nil
}
