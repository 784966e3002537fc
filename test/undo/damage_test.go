package undo

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
)

// damaging is a fixture for damage in the state directory: one commit, and a snapshot of the
// whole root before it and after it.
func damaging() *command {
	return &command{name: "damage", stands: true, prepare: func(t testing.TB, w *fixture) {
		w.clear(t)
		w.take(t)
		harness.CopyAll(t, w.site.Project.State, olderState(w.site.Project.State))
		w.commitIt(t)
		w.take(t)
		w.goOn(t)
	}}
}

// olderState is where an older copy of a state directory is.
func olderState(state string) string { return filepath.Join(filepath.Dir(state), "older state") }

// A damage is what becomes of a file of the state directory.
type damage struct {
	name string
	do   func(path string, raw []byte) error
}

func damages() []damage {
	write := func(path string, raw []byte) error {
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		owner := info.Sys().(*syscall.Stat_t)
		return errors.Join(os.Remove(path), os.WriteFile(path, raw, info.Mode().Perm()), os.Lchown(path, int(owner.Uid), int(owner.Gid)))
	}
	return []damage{
		{"missing", func(path string, _ []byte) error { return os.Remove(path) }},
		{"empty", func(path string, _ []byte) error { return write(path, nil) }},
		{"cut", func(path string, raw []byte) error { return write(path, raw[:len(raw)-min(7, len(raw))]) }},
		{"changed", func(path string, raw []byte) error {
			if len(raw) > 0 {
				raw[len(raw)/2] ^= 1
			}
			return write(path, raw)
		}},
		{"older", func(path string, raw []byte) error {
			state, name, _ := strings.Cut(path, "/state/")
			old, err := os.ReadFile(filepath.Join(olderState(state+"/state"), name))
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it is as old as the rest
			}
			return errors.Join(err, write(path, old))
		}},
		{"copied beside", func(path string, raw []byte) error { return os.WriteFile(path+".orig", raw, 0o600) }},
	}
}

// A damaged is a file of the state directory, and what becomes of it.
type damaged struct {
	path string // beneath the state directory
	damage
}

// TestDamagedState: whatever becomes of one file of the state directory, every undo operation
// does all of its work, or none and names the file and what to do; no root is halted by it, and
// one undo operation is always possible. recover and the doctor find what damages a snapshot or
// savepoint.
func TestDamagedState(t *testing.T) {
	var sum harness.Tally
	turns := turnsOf(damaging())
	s := sample.Thin(t, 1, 5) // damages come by sixes: each kind has its turn
	for i, g := range turns {
		t.Run(g.Name, func(t *testing.T) {
			w := borrowOn(t, damaging(), g)
			w.reset(t)
			w.damage(t, &sum, func(n int) bool { return sample.Now() == sample.Long || s.Has(n+1) && (n+n/len(turns))%len(turns) == i })
		})
	}
	sum.DemandKinds(t, 2)
}

// damage tries the damages with these numbers, in a sample a few of them.
func (w *fixture) damage(t *testing.T, sum *harness.Tally, has func(n int) bool) {
	t.Helper()
	pictures := w.restorable(t)
	var all []damaged
	n := 0
	for _, path := range w.stateFiles(t) {
		for _, d := range damages() {
			if has(n) {
				all = append(all, damaged{path, d})
			}
			n++
		}
	}
	for _, d := range sample.Pick(t, 5, all) {
		t.Run(d.name+" "+d.path, func(t *testing.T) {
			done := 0
			for _, args := range w.waysBack(t, pictures) {
				w.reset(t)
				d.inflict(t, w)
				r := w.site.Project.Run(t, nil, args...)
				sum.Add(fmt.Sprint(args[0], " exit ", r.Status))
				if err := w.judge(t, d, r, args, pictures); err != nil {
					t.Errorf("%v\n%v", r, err)
				}
				if r.Status == 0 {
					done++
				}
			}
			if done == 0 && d.path != "journal.key" {
				t.Error("no undo operation is possible")
			}
			w.isFound(t, d)
		})
	}
}

// restorable are the trees of the snapshots of the whole root that were taken by hand, by their
// ids: each is restored once.
func (w *fixture) restorable(t *testing.T) map[string]harness.Tree {
	t.Helper()
	pictures := map[string]harness.Tree{}
	for _, s := range w.list(t) {
		if s.Kind == "manual" {
			w.run(t, nil, "snapshot", "restore", s.ID)
			pictures[s.ID] = anew(w.picture(t))
			w.reset(t)
		}
	}
	return pictures
}

// waysBack are the commands that go back, and the one that ends what is unfinished.
func (w *fixture) waysBack(t *testing.T, pictures map[string]harness.Tree) [][]string {
	t.Helper()
	all := [][]string{{"rollback", "--json", w.commit}, {"rollback", "--json", "--emergency", w.site.Root}, {"recover", "--json", w.site.Root}}
	for id := range pictures {
		all = append(all, []string{"snapshot", "restore", "--json", id})
	}
	return all
}

// stateFiles are the files beneath the state directory, sorted.
func (w *fixture) stateFiles(t *testing.T) []string {
	t.Helper()
	var all []string
	state := w.site.Project.State
	harness.Must(t, filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			all = append(all, strings.TrimPrefix(path, state+"/"))
		}
		return err
	}))
	slices.Sort(all)
	if len(all) < 20 {
		t.Fatalf("only %q", all)
	}
	return all
}

func (d *damaged) inflict(t *testing.T, w *fixture) {
	t.Helper()
	path := filepath.Join(w.site.Project.State, d.path)
	raw, err := os.ReadFile(path)
	harness.Must(t, err)
	harness.Must(t, d.do(path, raw))
}

// idIn is the id of the snapshot or attempt in the name of a file or directory.
func idIn(path string) string {
	name := filepath.Base(path)
	return name[strings.IndexByte(name, '-')+1:]
}

// judge checks that the root is what the answer says, and that a refusal names the file.
func (w *fixture) judge(t *testing.T, d damaged, r harness.Reply, args []string, pictures map[string]harness.Tree) error {
	t.Helper()
	if left, err := filepath.Glob(w.path(".spectrum06_*")); err != nil || len(left) > 0 {
		return fmt.Errorf("%q is left in the root: %w", left, err)
	}
	is := w.picture(t)
	if r.Status != 0 {
		named := strings.Contains(r.Stderr, filepath.Base(d.path)) || strings.Contains(r.Stderr, filepath.Dir(d.path)) ||
			d.name == "missing" && (strings.Contains(filepath.Base(d.path), args[len(args)-1]) || strings.Contains(r.Stderr, "no snapshot from before it") || strings.Contains(r.Stderr, idIn(d.path)))
		if r.Status != 1 || r.Answer.OK || !named || !strings.Contains(r.Stderr, "\nhint: ") {
			return errors.New("it does not refuse, naming the file and what to do")
		}
		if diff := harness.Diff(w.site.Before, is); diff != "" {
			return fmt.Errorf("it fails, and the root has changed:\n%s", diff)
		}
		return nil
	}
	want := w.site.Before
	var said struct{ Target *string }
	if err := json.Unmarshal([]byte(r.Stdout), &said); err != nil {
		return err
	}
	switch {
	case said.Target != nil:
		want = pictures[*said.Target]
	case args[0] == "rollback":
		want = w.without(w.site.Before)
	}
	if diff := harness.Diff(want, is); want == nil || diff != "" {
		return fmt.Errorf("the root is not as it says:\n%s", diff)
	}
	return w.lost(t)
}

// isFound checks that recover and the doctor find damage, and name a way out.
func (w *fixture) isFound(t *testing.T, d damaged) {
	t.Helper()
	isKept := strings.HasPrefix(d.path, "snapshots/") || strings.HasPrefix(d.path, "savepoints/")
	isLog := d.path == "audit.log" && (d.name == "changed" || d.name == "older")
	w.reset(t)
	info, err := os.Stat(filepath.Join(w.site.Project.State, d.path))
	harness.Must(t, err)
	isSame := info.Size() == 0 && d.name != "missing" || d.name == "copied beside" || isKept && d.name == "older" // which none of those is
	if isSame || !isKept && !isLog {
		return
	}
	d.inflict(t, w)
	recovered := w.site.Project.Run(t, nil, "recover", w.site.Root)
	if recovered.Status != 1 || !strings.Contains(recovered.Stdout, "damaged ") || !strings.Contains(recovered.Stderr, "hint: ") {
		t.Errorf("recover does not find it: %v", recovered)
	}
	doctor := w.site.Project.Run(t, nil, "doctor", "-q")
	if doctor.Status != 1 || !strings.Contains(doctor.Stdout, "fail ") || !strings.Contains(doctor.Stdout, "hint: ") {
		t.Errorf("the doctor does not find it: %v", doctor)
	}
}
