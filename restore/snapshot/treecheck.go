package snapshot

import (
	"errors"
	"fmt"
)

// A treeCheck looks at entries one after the other: the manifest must be of a tree.
type treeCheck struct {
	above []string // the directories that the last entry is in, and it if it is one
	all   []Entry  // those before
	asked int
	files int64
	bytes int64
}

func (j *treeCheck) see(e *Entry) error {
	n := len(j.all)
	if n == 0 != (e.Path == "") || n > 0 && comparePaths(j.all[n-1].Path, e.Path) >= 0 {
		return fmt.Errorf("entry %.200q is not in its place", e.Path)
	}
	if err := errors.Join(j.parent(e), j.inode(e)); err != nil {
		return err
	}
	j.all = append(j.all, *e)
	if e.Type == Dir {
		j.above = append(j.above, e.Path)
	}
	if e.Asked {
		j.asked++
	}
	if e.Type == File {
		j.files++
	}
	return nil
}

// parent leaves the directories that e is not in. Only what is absent may be in
// something else than a directory.
func (j *treeCheck) parent(e *Entry) error {
	for len(j.above) > 0 && !beneath(e.Path, j.above[len(j.above)-1]) {
		j.above = j.above[:len(j.above)-1]
	}
	dir, _ := split(e.Path)
	if e.Path == "" || e.Type == Absent || len(j.above) > 0 && j.above[len(j.above)-1] == dir {
		return nil
	}
	return fmt.Errorf("entry %.200q is in no directory", e.Path)
}

// inode requires entries of the same inode to be equal.
func (j *treeCheck) inode(e *Entry) error {
	if e.Hard == "" {
		if e.Type == File {
			j.bytes += e.Size
		}
		return nil
	}
	first, found := (&Snapshot{entries: j.all}).find(e.Hard)
	if !found || first.Hard != "" || !first.same(e) || first.Digest != e.Digest || first.Target != e.Target {
		return fmt.Errorf("entry %.200q is not the same as %.200q", e.Path, e.Hard)
	}
	return nil
}

func (j *treeCheck) end(h *Header) error {
	if len(j.all) == 0 || j.files != h.Files || j.bytes != h.Bytes || j.asked != h.Names {
		return errors.New("its totals do not match its entries")
	}
	return nil
}
