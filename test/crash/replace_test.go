package crash

import (
	"encoding/json"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// replacing are trials of commits that replace files, in the root and in a directory, and leave one
// as it is.
func replacing(t *testing.T, dir string) *trials {
	t.Helper()
	files := harness.Small()
	files["out/same.txt"] = "the same\n"
	tr := newTrials(t, dir, files)
	tr.Replaces, tr.Identical = []string{"top.txt", "out/a.txt"}, []string{"out/same.txt"}
	return tr
}

// changing are trials of commits of a change set that replaces files, leaves one as it is, and removes
// some, one of which was alone in its directory.
func changing(t *testing.T, dir string) *trials {
	t.Helper()
	tr := replacing(t, dir)
	tr.SealChanges(t, "changes", harness.Old("top.txt", "out/a.txt", "out/same.txt", "gone.txt", "out/gone.txt", "lone/gone.txt"))
	return tr
}

// TestReplaceEverywhere commits, and undoes it, on each file system: what was replaced is back.
func TestReplaceEverywhere(t *testing.T) { everywhere(t, replacing) }

// TestChangesEverywhere is the same of a change set: what was removed is back too.
func TestChangesEverywhere(t *testing.T) { everywhere(t, changing) }

func everywhere(t *testing.T, made maker) {
	for _, g := range harness.Grounds() {
		t.Run(g.Name, func(t *testing.T) {
			tr := made(t, g.Dir(t))
			s := tr.site(t, "root")
			r := s.Commit(t, nil)
			if _, err := s.Recovered(t, harness.After); err != nil || r.Status != 0 {
				t.Fatal(r, err)
			}
			if again := s.Commit(t, nil); again.Status != 0 { // its own artifacts are not in the way
				t.Fatal(again)
			}
			if _, err := s.Recovered(t, harness.After); err != nil {
				t.Fatal(err)
			}
			var list struct {
				Savepoints []struct{ Attempt string } `json:"savepoints"`
			}
			harness.Must(t, json.Unmarshal([]byte(s.Project.Must(t, "savepoint", "list", "--json", s.Root).Stdout), &list))
			if len(list.Savepoints) != 2 {
				t.Fatal(list)
			}
			s.Project.Must(t, "rollback", "--json", "--with-later", list.Savepoints[0].Attempt)
			for name, thing := range s.Before { // what is restored from the snapshot is another inode
				thing.Inode = 0
				s.Before[name] = thing
			}
			if _, err := s.Recovered(t, harness.Before); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestKillReplace(t *testing.T) { killAt(t, replacing, sample.Thin(t, 17, 2)) }

// TestKillChanges kills a commit of a change set.
func TestKillChanges(t *testing.T) { killAt(t, changing, sample.Thin(t, 17, 2)) }

func TestErrorsChanges(t *testing.T) {
	failEverywhere(t, changing, sample.Thin(t, 43, 9), sysfault.Mutating, rotating(1))
}

// TestKillChangesTwice kills the recovery of a killed commit of a change set too.
func TestKillChangesTwice(t *testing.T) {
	pairs(t, changing, sample.Of(211, 101, 41), 11, 3)
}

func TestErrorsReplace(t *testing.T) {
	failEverywhere(t, replacing, sample.Thin(t, 43, 9), sysfault.Mutating, rotating(1))
}

// TestKillReplaceTwice kills the recovery of a killed commit too.
func TestKillReplaceTwice(t *testing.T) {
	pairs(t, replacing, sample.Of(211, 101, 41), 11, 3)
}
