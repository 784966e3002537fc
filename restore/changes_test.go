package restore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// changeRun is a run that makes dir/out of "old", and new, and removes dir/gone, which was "bye".
func changeRun(t *testing.T, executable ...string) *bundletest.Run {
	t.Helper()
	run := (&bundletest.Project{T: t, Root: t.TempDir()}).Run("run", map[string]string{"dir/out": "new", "new": "fresh"})
	must(t, errors.Join(os.Chmod(filepath.Join(run.Root, "dir/out"), 0o644), os.Chmod(filepath.Join(run.Root, "new"), 0o755)))
	listed := ""
	if len(executable) > 0 {
		listed = `"` + strings.Join(executable, `","`) + `"`
	}
	run.SetChanges(fmt.Sprintf(`{"base":{"dir/gone":%q,"dir/out":%q,"new":null},"executable":[%s],"form":1,"removes":["dir/gone"]}`, bundletest.Hash("bye"), bundletest.Hash("old"), listed))
	return run
}

func planChanges(t *testing.T, run *bundletest.Run, root string) *restore.Restore {
	t.Helper()
	return restoretest.Plan(t, restore.Candidate{Runs: restoretest.OpenRuns(t, run.Root, run.Dir)}, root)
}

// TestChangeSetTargets: what is at a path of a change set is as the producer had it, is as the change
// makes it, has diverged, or blocks.
func TestChangeSetTargets(t *testing.T) {
	put := func(name, content string, mode os.FileMode) func(root string) error {
		return func(root string) error {
			at := filepath.Join(root, name)
			return errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(content), 0o600), os.Chmod(at, mode))
		}
	}
	base := func(root string) error {
		return errors.Join(put("dir/out", "old", 0o644)(root), put("dir/gone", "bye", 0o644)(root))
	}
	for name, c := range map[string]struct {
		make func(root string) error
		path string
		want string
	}{
		"clean":                   {base, "dir/out", "replaced"},
		"clean, removed":          {base, "dir/gone", "removed"},
		"new":                     {base, "new", "nothing"},
		"nothing":                 {func(string) error { return nil }, "dir/out", "diverged: nothing is there"},
		"gone already":            {func(string) error { return nil }, "dir/gone", "nothing"},
		"the same":                {put("dir/out", "new", 0o600), "dir/out", "identical"},
		"the same, executable":    {put("dir/out", "new", 0o755), "dir/out", "replaced, mode only"},
		"the same, for others":    {put("dir/out", "new", 0o611), "dir/out", "identical"},
		"edited":                  {put("dir/out", "mine", 0o644), "dir/out", "diverged: a regular file of 4 bytes"},
		"edited, removed":         {put("dir/gone", "mine", 0o644), "dir/gone", "diverged: a regular file of 4 bytes"},
		"there where nothing was": {put("new", "mine", 0o644), "new", "diverged: a regular file of 4 bytes"},
		"the new one is there":    {put("new", "fresh", 0o644), "new", "identical"},
		"a directory":             {func(root string) error { return os.MkdirAll(filepath.Join(root, "dir/gone"), 0o755) }, "dir/gone", "blocked"},
		"a link": {func(root string) error {
			return errors.Join(os.Mkdir(filepath.Join(root, "dir"), 0o755), os.Symlink("out", filepath.Join(root, "dir/gone")))
		}, "dir/gone", "blocked"},
		"a link leads to it": {func(root string) error {
			return errors.Join(base(root), os.Rename(filepath.Join(root, "dir"), filepath.Join(root, "real")), os.Symlink("real", filepath.Join(root, "dir")))
		}, "dir/gone", "removed"},
		"its directory is a file": {func(root string) error { return os.WriteFile(filepath.Join(root, "dir"), nil, 0o600) }, "dir/gone", "nothing"},
		"the same file as an output": {func(root string) error {
			return errors.Join(put("dir/out", "old", 0o644)(root), os.Link(filepath.Join(root, "dir/out"), filepath.Join(root, "dir/gone")))
		}, "dir/gone", "blocked"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must(t, c.make(root))
			r := planChanges(t, changeRun(t), root)
			if got := standsAt(r, c.path); got != c.want {
				t.Errorf("%s, want %s: %v", got, c.want, r.Conflicts())
			}
		})
	}
}

// TestRemovalEscapes: a link on the way to a removed path that leaves the root is the failure that it is
// on the way to an output.
func TestRemovalEscapes(t *testing.T) {
	run := (&bundletest.Project{T: t, Root: t.TempDir()}).Run("run", map[string]string{"new": "fresh"})
	run.SetChanges(fmt.Sprintf(`{"base":{"dir/gone":%q,"new":null},"executable":[],"form":1,"removes":["dir/gone"]}`, bundletest.Hash("bye")))
	root, outside := t.TempDir(), t.TempDir()
	must(t, errors.Join(os.WriteFile(filepath.Join(outside, "gone"), []byte("bye"), 0o644), os.Symlink(outside, filepath.Join(root, "dir"))))
	r, err := restore.ForRoot(t.Context(), restore.Candidate{Runs: restoretest.OpenRuns(t, run.Root, run.Dir)}, root)
	if err == nil {
		r.Close()
	}
	var failure *restore.Failure
	if !errors.As(err, &failure) || failure.Code != restore.SymlinkEscapeDetected || failure.Path != "dir/gone" {
		t.Errorf("%v", err)
	}
}

// standsAt says what a restore has found at a path.
func standsAt(r *restore.Restore, path string) string {
	for _, c := range r.Conflicts() {
		if c.Path == path {
			return "blocked"
		}
	}
	if d, is := r.Divergence(path); is {
		return "diverged: " + d.State
	}
	switch there := r.Target(path); {
	case there == nil:
		return "nothing"
	case there.Identical:
		return "identical"
	case there.Removed:
		return "removed"
	case there.ModeOnly:
		return "replaced, mode only"
	}
	return "replaced"
}

// TestChangeSetDiverged: what has diverged ends a restore before anything is written, until the
// operator has overruled it.
func TestChangeSetDiverged(t *testing.T) {
	r := planChanges(t, changeRun(t), t.TempDir())
	var failure *restore.Failure
	if err := r.Blocked(); !errors.As(err, &failure) || failure.Code != restore.TargetPathExists || failure.Path != "dir/out" {
		t.Errorf("%v", err)
	}
	r.Overrule("dir/out")
	r.Overrule("new") // which has not diverged
	if err := r.Blocked(); err != nil {
		t.Error(err)
	}
}

// TestChangeSetModes: which outputs are executable is signed, whatever the modes of the sources are.
func TestChangeSetModes(t *testing.T) {
	r := planChanges(t, changeRun(t, "dir/out"), t.TempDir())
	for run := range r.Plan().Runs() {
		for o := range run.Bundle().Outputs() {
			want := map[string]os.FileMode{"dir/out": 0o755, "new": 0o644}[o.Path().String()]
			if got := run.Perm(o); got != want {
				t.Errorf("%s: %v, want %v", o.Path(), got, want)
			}
		}
	}
}

// TestChangeSetFaults: whatever is wrong with a change set changes no verdict, and says why it cannot
// be used; nothing of it is taken for one.
func TestChangeSetFaults(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(run *bundletest.Run)
		want  string
	}{
		"none":    {func(run *bundletest.Run) {}, ""},
		"missing": {func(run *bundletest.Run) { run.Remove(bundle.ChangesFile) }, "is missing"},
		"longer": {func(run *bundletest.Run) {
			run.WriteRaw(bundle.ChangesFile, append(run.Read(bundle.ChangesFile), '\n'))
		}, "its SHA-256 is not"},
		"a directory": {func(run *bundletest.Run) {
			run.Remove(bundle.ChangesFile)
			must(t, os.Mkdir(run.Path(bundle.ChangesFile), 0o755))
		}, "CHANGES: "},
		"a link": {func(run *bundletest.Run) {
			run.Remove(bundle.ChangesFile)
			must(t, os.Symlink(bundle.Status, run.Path(bundle.ChangesFile)))
		}, "CHANGES: "},
		"another form": {func(run *bundletest.Run) { run.SetChanges(`{"base":{},"executable":[],"form":1,"removes":[]}`) }, `"base" has no content for the output "dir/out"`},
		"not named": {func(run *bundletest.Run) {
			run.Edit(bundle.TaskSpec, func(fields map[string]any) { fields["constraints"] = map[string]any{} })
			run.Sign()
		}, "does not name it"},
		"named wrongly": {func(run *bundletest.Run) {
			run.Edit(bundle.TaskSpec, func(fields map[string]any) { fields["constraints"] = map[string]any{"changes": true} })
			run.Sign()
		}, "constraints.changes is not"},
	} {
		for _, chain := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", chain ", chain), func(t *testing.T) {
				run := changeRun(t)
				c.spoil(run)
				candidate := restore.Candidate{Runs: restoretest.OpenRuns(t, run.Root, run.Dir), Chain: chain}
				r, err := restore.ForRoot(context.Background(), candidate, t.TempDir())
				must(t, err)
				defer r.Close()
				want := c.want
				if chain {
					want = "no form in a chain"
				}
				for run := range r.Plan().Runs() {
					fault := run.ChangesFault()
					if want == "" && fault != nil || want != "" && (fault == nil || !strings.Contains(fault.Error(), want)) {
						t.Errorf("%v, want %q", fault, want)
					}
					if is := r.Plan().IsChangeSet(); is != (fault == nil) {
						t.Errorf("a change set: %v", is)
					}
				}
			})
		}
	}
}

// TestChangeSetReserved: names of the restore's own are never removed, those of others' tools are what
// they are.
func TestChangeSetReserved(t *testing.T) {
	run := (&bundletest.Project{T: t, Root: t.TempDir()}).Run("run", map[string]string{"out": "new"})
	run.SetChanges(fmt.Sprintf(`{"base":{".git/hooks/x":%q,"out":null},"executable":[],"form":1,"removes":[".git/hooks/x"]}`, bundletest.Hash("hook")))
	root := t.TempDir()
	must(t, errors.Join(os.MkdirAll(filepath.Join(root, ".git/hooks"), 0o755), os.WriteFile(filepath.Join(root, ".git/hooks/x"), []byte("hook"), 0o755)))
	if r := planChanges(t, run, root); standsAt(r, ".git/hooks/x") != "removed" {
		t.Errorf("%v", r.Conflicts())
	}
	run.SetChanges(fmt.Sprintf(`{"base":{".spectrum06_lock":%q,"out":null},"executable":[],"form":1,"removes":[".spectrum06_lock"]}`, bundletest.Hash("hook")))
	for run := range planChanges(t, run, root).Plan().Runs() {
		if run.ChangesFault() == nil {
			t.Error("the lock of a root may be removed")
		}
	}
}
