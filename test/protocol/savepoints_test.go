package protocol

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestSavepointChain: after each commit there is one more, whose parent is the one
// before, and the next preview names it.
func TestSavepointChain(t *testing.T) {
	w := newFixture(t).pin(t, 1)
	parent := "unknown"
	for n := 1; n <= 3; n++ {
		w.runs = nil
		w.forge(t, fmt.Sprintf("run-%d", n), forgery{files: harness.Files{fmt.Sprintf("%d.txt", n): "x\n"}, completed: fmt.Sprintf("2026-01-0%dT00:00:00Z", n)})
		b := w.preview(t)
		if b.Current != parent {
			t.Errorf("active is %s, want %s", b.Current, parent)
		}
		if r := w.commit(t, b.ID, exactly); r.Status != 0 {
			t.Fatal(r)
		}
		all := w.savepoints(t)
		last := all[len(all)-1]
		if len(all) != n || last.Sequence != n || n > 1 && *last.Parent != parent || n == 1 && last.Parent != nil {
			t.Fatalf("%+v", all)
		}
		if o, _ := w.latest(t); o.Parent != parent {
			t.Errorf("%+v", o)
		}
		parent = last.ID
		w.Must(t, "savepoint", "verify", "latest")
		harness.Must(t, os.Remove(w.root+"/RESTORE_MANIFEST.json"))
		harness.Must(t, os.Remove(w.root+"/RESTORE_REPORT.json"))
	}
}

// TestSavepointOfOthers: savepoints of two roots are two chains.
func TestSavepointOfOthers(t *testing.T) {
	w := newFour(t)
	w.committed(t, exactly)
	other := *w
	other.root = t.TempDir()
	if b := other.preview(t); b.Current != "unknown" {
		t.Errorf("%s", b.Current)
	}
	other.committed(t, exactly)
	if a, b := w.savepoints(t), other.savepoints(t); len(a) != 1 || len(b) != 1 || a[0].ID == b[0].ID || b[0].Parent != nil {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestNoSavepoint: what restores nothing leaves none.
func TestNoSavepoint(t *testing.T) {
	for name, act := range map[string]func(w *fixture){
		"a preview": func(w *fixture) { w.preview(t) },
		"vague":     func(w *fixture) { w.refused(t, w.preview(t).ID, "Sure.", 4, "APPROVAL_VAGUE") },
		"stale": func(w *fixture) {
			b := w.preview(t)
			put(t, w.root+"/a", "")
			w.refused(t, b.ID, exactly, 4, "APPROVAL_STALE")
		},
		"a target exists": func(w *fixture) {
			put(t, w.root+"/a", "")
			w.refused(t, w.preview(t).ID, exactly, 1, "RESTORE_TARGET_PATH_EXISTS")
		},
		"rolled back": func(w *fixture) {
			r := w.Run(t, &sysfault.Plan{N: 1, Match: moves(w), Errno: syscall.ENOSPC}, harness.CommitArgs(w.preview(t).ID)...)
			if r.Status != 74 {
				t.Error(r)
			}
		},
	} {
		w := newFour(t)
		act(w)
		if all := w.savepoints(t); len(all) > 0 {
			t.Errorf("%s: %+v", name, all)
		}
		if left, _ := filepath.Glob(w.State + "/savepoints/*/*/*"); len(left) > 0 {
			t.Errorf("%s: %q is left", name, left)
		}
	}
}

// TestSavepointAsCandidate: a savepoint is a candidate as any other, for another
// root, and says which one came before it.
func TestSavepointAsCandidate(t *testing.T) {
	w := newLate(t)
	w.committed(t, "Approved: restore item R-004 only. Acknowledge C-001.")
	all := w.savepoints(t)
	w.Dir, w.root, w.runs = w.root, t.TempDir(), []string{all[1].RunDir}
	w.Must(t, "trust", "remove", validator(1))
	s := w.show(t, "--project-root", w.Dir)
	field(t, s, "Save Point ID", all[1].ID)
	field(t, s, "Parent Save Point ID", all[0].ID)
	if r := w.commit(t, s.ID, exactly); r.Status != 0 || w.files(t)["state/2.txt"] != "old\n" {
		t.Error(r)
	}
}

// TestDrift: a savepoint says what became of each file that was restored, and
// nothing of others.
func TestDrift(t *testing.T) {
	w := newFour(t)
	w.committed(t, exactly)
	put(t, w.root+"/else", "")
	w.Must(t, "savepoint", "verify", "latest")
	harness.Must(t, os.WriteFile(w.root+"/a", []byte("A\n"), 0o644))
	harness.Must(t, os.Remove(w.root+"/b"))
	relink(t, w.root+"/c")
	r := w.Run(t, nil, "savepoint", "verify", "--json", "latest")
	var answer struct {
		Details struct {
			Files []struct{ Path, State string } `json:"files"`
			Total int                            `json:"total"`
		} `json:"details"`
	}
	harness.Must(t, json.Unmarshal([]byte(r.Stdout), &answer))
	if r.Status != 1 || r.Answer.Code != "SAVEPOINT_DRIFTED" || answer.Details.Total != 4 || len(answer.Details.Files) != 3 {
		t.Fatal(r)
	}
	for n, want := range []string{"a changed", "b missing", "c "} {
		if got := answer.Details.Files[n].Path + " " + answer.Details.Files[n].State; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if r := w.Run(t, nil, "verify", "--project-root", w.root, w.savepoints(t)[0].RunDir); r.Status != 1 {
		t.Error(r)
	}
	w.preview(t, "--scope", "decisions") // what has drifted is not a reason not to look
}

// changing matches what can change the disk, in the state directory and in the
// root. A commit that is killed before any of them has a savepoint after recovery
// if all of it is there, and else has none.
func changing(w *fixture) func(sysfault.Call) bool {
	return func(c sysfault.Call) bool {
		inside := func(path string) bool { return strings.HasPrefix(path, w.root) || strings.HasPrefix(path, w.State) }
		return c.Name != "close" && c.Name != "fsync" && sysfault.Mutating(c) && (inside(c.Path) || inside(c.To))
	}
}

func TestSavepointOrNothing(t *testing.T) { killed(t, exactly) }

// TestSavepointOrNothingOfPart is the same with a derived bundle.
func TestSavepointOrNothingOfPart(t *testing.T) {
	killed(t, "Approved: restore items R-001 and R-003 only.")
}

// killed kills the commit before each call that changes something; in the sample before
// some of them.
func killed(t *testing.T, statement string) {
	t.Helper()
	w := newFour(t)
	first := w.root
	done, undone := 0, 0
	stride := sample.Thin(t, 27, 3)
	for i := 0; ; i++ {
		n := stride.At(i)
		w.root = fmt.Sprintf("%s %d", first, n)
		harness.Must(t, os.Mkdir(w.root, 0o755))
		b := w.preview(t)
		r := w.Run(t, &sysfault.Plan{N: n, Match: changing(w), Kill: true}, "commit", "--json", "--preview", b.ID, "--approve", statement)
		if !r.Killed() {
			break
		}
		w.Must(t, "recover", w.root)
		files, all := w.files(t), w.savepoints(t)
		switch {
		case len(files) == 0 && len(all) == 0:
			undone++
			if again := w.preview(t); w.commit(t, again.ID, statement).Status != 0 || len(w.savepoints(t)) != 1 {
				t.Errorf("killed at call %d, and then it cannot be committed", n)
			}
		case files["RESTORE_REPORT.json"] != "" && len(all) == 1:
			done++
			w.Must(t, "savepoint", "verify", all[0].ID)
			w.Must(t, "verify", "--project-root", w.root, all[0].RunDir)
		default:
			t.Errorf("killed at call %d: %q, and savepoints %+v", n, files.Names(), all)
		}
	}
	t.Logf("%d undone, %d done", undone, done)
	if undone+done == 0 || stride == sample.All && (undone == 0 || done == 0) {
		t.Errorf("%d undone, %d done", undone, done)
	}
}
