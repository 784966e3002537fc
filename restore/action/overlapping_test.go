package action_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/restore/action"
	"github.com/spectrumfs/spectrum/staging"
)

// barsOf bars the roots of these names.
type barsOf map[string]bool

func (b barsOf) Bar(string, string, string, string) error { return nil }
func (b barsOf) Barred(name string) (bool, error)         { return b[name], nil }
func (b barsOf) Unbar(string) error                       { return nil }
func (b barsOf) Unbarrable(string) error                  { return nil }

// haltsOf are marks of attempts.
type haltsOf map[string]bool

func (h haltsOf) Halt(string) error                   { return nil }
func (h haltsOf) Halted(attempt string) (bool, error) { return h[attempt], nil }
func (h haltsOf) Release(string) error                { return nil }

// TestRelatedRoots: a root shares directories with those above and beneath it and with itself by another
// name, and not with its neighbours, with what is gone, or with what has the beginning of its name.
func TestRelatedRoots(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{"a/root/in", "a/root-2", "b"} {
		must(t, os.MkdirAll(filepath.Join(top, dir), 0o755))
	}
	root := filepath.Join(top, "a/root")
	dir, err := pathsafe.OpenRoot(root)
	must(t, err)
	defer dir.Close()
	id, err := dir.Identity()
	must(t, err)
	var known []action.Known
	for name, path := range map[string]string{"above": "a", "beneath": "a/root/in", "beside": "a/root-2", "elsewhere": "b", "gone": "a/root/deleted"} {
		known = append(known, action.Known{RootRef: action.RootRef{Name: name, Path: filepath.Join(top, path)}, ID: name})
	}
	known = append(known, action.Known{RootRef: action.RootRef{Name: "moved", Path: filepath.Join(top, "was/here")}, ID: id},
		action.Known{RootRef: action.RootRef{Name: "root", Path: root}, ID: id})
	found := map[string]bool{}
	for _, other := range action.OverlappingRoots(known, "root", root, dir) {
		found[other.Name] = true
	}
	if diff := cmp.Diff(map[string]bool{"above": true, "beneath": true, "moved": true}, found); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFindHalt: what halts a root is found in this order: attempts that left something in it, a rollback
// that could not be carried out, a root that shares directories with it.
func TestFindHalt(t *testing.T) {
	top := t.TempDir()
	const attempt, other = "11111111-2222-4333-8444-555555555555", "aaaaaaaa-2222-4333-8444-555555555555"
	inner := filepath.Join(top, "other")
	must(t, os.Mkdir(inner, 0o755))
	self := action.RootRef{Name: "self", Path: top}
	known := []action.Known{{RootRef: self}, {RootRef: action.RootRef{Name: "other", Path: inner}}}
	bars, halts := barsOf{}, haltsOf{}
	find := func() error { return action.FindHalt(self, known, bars, halts, nil) }
	if err := find(); err != nil {
		t.Errorf("of a root that is not halted: %v", err)
	}
	bars["other"] = true
	var beside *action.OverlapError
	if err := find(); !errors.As(err, &beside) || beside.Other.Name != "other" {
		t.Errorf("of a root that has a halted one in it: %v", err)
	}
	bars["self"] = true
	var barred *action.BarredError
	if err := find(); !errors.As(err, &barred) || barred.Root != "self" {
		t.Errorf("of a root in which a rollback could not be carried out: %v", err)
	}
	for _, id := range []string{attempt, other} {
		must(t, os.Mkdir(filepath.Join(top, ".spectrum06_staging_"+id), 0o700))
		halts[id] = true
	}
	err := find()
	all := action.HaltsOf(err)
	if len(all) != 2 || all[0].Attempt != attempt || all[1].Attempt != other || !errors.Is(err, staging.ErrHalted) || err.Error() != all[0].Error() {
		t.Errorf("of a root with two attempts: %v", err)
	}
}
