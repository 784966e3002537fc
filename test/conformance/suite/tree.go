package suite

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spectrumfs/spectrum/test/tree"
)

// plant makes the tree of a case below a directory.
func plant(work string, entries []Entry) error {
	for _, e := range entries {
		if e.After {
			continue
		}
		if err := e.plant(work); err != nil {
			return err
		}
	}
	// Modes come last: a directory may be one in which nothing can be made.
	for _, e := range slices.Backward(entries) {
		if e.Mode == 0 || e.After {
			continue
		}
		if err := os.Chmod(filepath.Join(work, e.Path), e.Mode); err != nil {
			return err
		}
	}
	return nil
}

func (e Entry) plant(work string) error {
	path := filepath.Join(work, e.Path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	switch e.Kind {
	case Dir:
		return os.MkdirAll(path, 0o755)
	case Link:
		return os.Symlink(strings.ReplaceAll(e.Content, "$WORK", work), path)
	case FIFO:
		return syscall.Mkfifo(path, 0o644)
	}
	if err := os.WriteFile(path, []byte(e.padded()), 0o644); err != nil || e.Size == 0 {
		return err
	}
	return os.Truncate(path, e.Size)
}

func (e Entry) padded() string {
	return e.Content + strings.Repeat(" ", max(0, e.Pad-len(e.Content)))
}

// holds reports whether a content, which is not that of a large file, is that of the entry.
func (e Entry) holds(content string) bool {
	want := e.padded()
	zeros, found := strings.CutPrefix(content, want)
	return found && len(content) == max(len(want), int(e.Size)) && strings.Trim(zeros, "\x00") == ""
}

// A thing is what was found at a path.
type thing struct {
	kind    fs.FileMode
	content string // of a file that is not large, or where a link leads

	// Files with a history, which do not change while no process touches them. Of a directory
	// only the permission bits.
	perm        fs.FileMode
	inode, size uint64
	modified    int64
}

// picture is all that is below a directory.
type picture map[string]thing

// large files are distinguished by their history alone.
const large = 1 << 20

func take(work string) (picture, error) {
	p := picture{}
	err := tree.Walk(work, func(path string, n *tree.Node, err error) error {
		if err == nil {
			p[path], err = thingOf(n)
		}
		return err
	})
	return p, err
}

func thingOf(n *tree.Node) (t thing, err error) {
	mode := n.FileMode()
	t.kind, t.perm = mode.Type(), mode&^fs.ModeType
	if !n.IsDir() {
		t.inode, t.size, t.modified = n.Ino, uint64(n.Size), n.Mtim.Nano()
	}
	if t.size <= large {
		t.content, err = n.Content()
	}
	return t, err
}

// kinds of entries, as the file system names them.
var modes = map[Kind]fs.FileMode{File: 0, Dir: fs.ModeDir, Link: fs.ModeSymlink, FIFO: fs.ModeNamedPipe}

// compare says what is not as it must be: all that was there before is there,
// untouched, but for what the restore changes, and beside it what it makes, and nothing else.
func compare(before, after picture, changes []Entry) error {
	want, gone := map[string]Entry{}, map[string]bool{}
	for _, e := range changes {
		if e.Gone {
			gone[filepath.Clean(e.Path)] = true
			continue
		}
		want[filepath.Clean(e.Path)] = e
		for dir := filepath.Dir(e.Path); dir != "."; dir = filepath.Dir(dir) {
			if _, listed := want[dir]; !listed {
				want[dir] = Entry{Path: dir, Kind: Dir}
			}
		}
	}
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(after)) {
		wrong = append(wrong, compareThing(name, before, after, want))
	}
	for name := range before {
		if _, ok := after[name]; ok == gone[name] {
			wrong = append(wrong, fmt.Errorf("%q is gone: %v", name, !ok))
		}
	}
	for name := range want {
		if _, ok := after[name]; !ok {
			wrong = append(wrong, fmt.Errorf("%q was not made", name))
		}
	}
	return errors.Join(wrong...)
}

func compareThing(name string, before, after picture, want map[string]Entry) error {
	is := after[name]
	was, old := before[name]
	e, wanted := want[name]
	switch {
	case old && !e.After && was != is:
		return fmt.Errorf("%q was touched: %.300q, and it was %.300q", name, fmt.Sprint(is), fmt.Sprint(was))
	case old && !e.After:
		return nil
	case !wanted:
		return fmt.Errorf("%q must not be there", name)
	case is.kind != modes[e.Kind]:
		return fmt.Errorf("%q is %v, not %v", name, is.kind, modes[e.Kind])
	case e.Kind != Dir && !e.Any && !e.holds(is.content):
		return fmt.Errorf("%q holds %.300q, not %.300q", name, is.content, e.Content)
	case e.Mode != 0 && (e.Mode^is.perm)&0o100 != 0:
		return fmt.Errorf("%q has mode %v, not %v", name, is.perm, e.Mode)
	}
	return nil
}
