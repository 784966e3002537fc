package verify

import (
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
)

// TestChangedFileIsNoticed: a replaced or changed file is noticed, even one with the size and all
// the times of the artifact.
func TestChangedFileIsNoticed(t *testing.T) {
	st := pathsafe.Stat{Size: 5, ModTime: time.Unix(1, 2), ChangeTime: time.Unix(3, 4), ID: pathsafe.ID{Dev: 1, Ino: 2, Mount: 3}}
	if !untouchedBy(st, func(*pathsafe.Stat) {}) {
		t.Error("nothing differs")
	}
	for what, change := range map[string]func(*pathsafe.Stat){
		"device":      func(st *pathsafe.Stat) { st.ID.Dev++ },
		"inode":       func(st *pathsafe.Stat) { st.ID.Ino++ },
		"mount":       func(st *pathsafe.Stat) { st.ID.Mount++ },
		"size":        func(st *pathsafe.Stat) { st.Size++ },
		"change time": func(st *pathsafe.Stat) { st.ChangeTime = st.ChangeTime.Add(1) },
		"time":        func(st *pathsafe.Stat) { st.ModTime = st.ModTime.Add(-1) },
	} {
		if untouchedBy(st, change) {
			t.Errorf("another %s is not noticed", what)
		}
	}
}

func untouchedBy(st pathsafe.Stat, change func(*pathsafe.Stat)) bool {
	other := st
	change(&other)
	return untouched(st, other)
}
