package protocol

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// TestSingleUse: an approval is good for one commit, also when the root looks as
// it did before.
func TestSingleUse(t *testing.T) {
	w := newFour(t)
	b := w.committed(t, exactly)
	w.clear(t)
	w.refused(t, b.ID, exactly, 4, "APPROVAL_USED")
	w.refused(t, b.ID, "Approved: restore item R-001 only.", 4, "APPROVAL_USED")
	w.refused(t, b.ID, "Sure.", 4, "APPROVAL_USED")
	w.committed(t, exactly)
}

// TestUsedByRefusal: so it is when the commit was rejected: nothing has changed,
// and yet it was used.
func TestUsedByRefusal(t *testing.T) {
	w := newFour(t)
	put(t, w.root+"/a", "not yours\n")
	b := w.preview(t)
	w.refused(t, b.ID, exactly, 1, "RESTORE_TARGET_PATH_EXISTS")
	w.refused(t, b.ID, exactly, 4, "APPROVAL_USED")
	w.refused(t, b.ID, b.Approval.Statement, 4, "APPROVAL_USED")
}

// TestStale: a preview is void after any change of what it was about, and the
// root stays as it is.
func TestStale(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, w *fixture)
		status int
		code   string
	}{
		"a byte of a source":   {func(t *testing.T, w *fixture) { put(t, w.Source("a"), "A\n") }, 1, "RESTORE_VERIFY_STRICT_FAILED"},
		"a source is gone":     {func(t *testing.T, w *fixture) { harness.Must(t, os.Remove(w.Source("a"))) }, 1, "RESTORE_VERIFY_STRICT_FAILED"},
		"the mode of a source": {func(t *testing.T, w *fixture) { harness.Must(t, os.Chmod(w.Source("a"), 0o600)) }, 4, "APPROVAL_STALE"},
		"the time of a source": {func(t *testing.T, w *fixture) { harness.Must(t, os.Chtimes(w.Source("a"), day, day.Add(1))) }, 4, "APPROVAL_STALE"},
		"signed again": {func(t *testing.T, w *fixture) {
			w.runs = nil
			w.forge(t, "run-1", forgery{files: harness.Files{"a": "a\n", "b": "b\n", "c": "c\n", "d": "d\n", "id": "id\n"}})
		}, 4, "APPROVAL_STALE"},
		"a target":              {func(t *testing.T, w *fixture) { put(t, w.root+"/a", "a\n") }, 4, "APPROVAL_STALE"},
		"the mode of the root":  {func(t *testing.T, w *fixture) { harness.Must(t, os.Chmod(w.root, 0o700)) }, 4, "APPROVAL_STALE"},
		"the root is another":   {func(t *testing.T, w *fixture) { another(t, w) }, 4, "APPROVAL_STALE"},
		"a pin is added":        {func(t *testing.T, w *fixture) { w.pin(t, 2) }, 4, "APPROVAL_STALE"},
		"the pin is removed":    {func(t *testing.T, w *fixture) { w.Must(t, "trust", "remove", validator(1)) }, 4, "APPROVAL_STALE"},
		"another is revoked":    {func(t *testing.T, w *fixture) { w.Must(t, "trust", "revoke", "--reason", "a leaked key", validator(2)) }, 4, "APPROVAL_STALE"},
		"the signer is revoked": {func(t *testing.T, w *fixture) { w.Must(t, "trust", "revoke", "--reason", "a leaked key", validator(1)) }, 5, "VALIDATOR_REVOKED"},
		"restricted names":      {func(t *testing.T, w *fixture) { restrict(t, w, "b") }, 4, "APPROVAL_STALE"},
		"the active savepoint":  {anotherSavepoint, 4, "APPROVAL_STALE"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFour(t)
			put(t, w.root+"/keep", "kept\n")
			b := w.preview(t)
			c.change(t, w)
			w.refused(t, b.ID, exactly, c.status, c.code)
			if c.status != 4 {
				return
			}
			again := w.preview(t)
			want := 0
			if len(again.Quarantine) > 0 {
				want = 5 // an identity layer of an agent that is no longer known
			}
			if r := w.commit(t, again.ID, again.Approval.Statement); r.Status != want {
				t.Errorf("shown again: %v", r)
			}
		})
	}
}

// TestNotStale: an approval binds only the targets and the directories that lead there. Whatever else
// happens in the root, the commit does what was approved, and leaves the rest as it is.
func TestNotStale(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, w *fixture){
		"a file elsewhere": func(t *testing.T, w *fixture) { put(t, w.root+"/else/where", "") },
		"a file came and went": func(t *testing.T, w *fixture) {
			put(t, w.root+"/x", "")
			harness.Must(t, os.Remove(w.root+"/x"))
		},
		"the same bytes again": func(t *testing.T, w *fixture) { put(t, w.root+"/keep", "kept\n") },
		"other bytes":          func(t *testing.T, w *fixture) { put(t, w.root+"/keep", "KEPT\n") },
		"another mode":         func(t *testing.T, w *fixture) { harness.Must(t, os.Chmod(w.root+"/keep", 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newFour(t)
			put(t, w.root+"/keep", "kept\n")
			b := w.preview(t)
			change(t, w)
			rest := harness.MustTake(t, w.root)
			if again := w.preview(t); again.ID != b.ID {
				t.Error("it is another preview")
			}
			if r := w.commit(t, b.ID, exactly); r.Status != 0 {
				t.Fatal(r)
			}
			after := harness.MustTake(t, w.root)
			for _, name := range []string{"a", "b", "c", "d", "RESTORE_MANIFEST.json", "RESTORE_REPORT.json"} {
				if _, there := after[name]; !there {
					t.Errorf("%q was not restored", name)
				}
				delete(after, name)
			}
			delete(after, ".")
			delete(rest, ".") // its times are others
			if diff := harness.Diff(rest, after); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// another puts a copy in the place of the root.
func another(t *testing.T, w *fixture) {
	harness.Must(t, os.Rename(w.root, w.root+" before"))
	harness.Must(t, os.Mkdir(w.root, 0o755))
	put(t, w.root+"/keep", "kept\n")
}

// anotherSavepoint commits another candidate there, and takes away what that did.
func anotherSavepoint(t *testing.T, w *fixture) {
	other := *w
	other.runs = nil
	other.forge(t, "run-2", forgery{files: harness.Files{"z": "z\n"}})
	other.committed(t, exactly)
	for _, name := range []string{"z", "RESTORE_MANIFEST.json", "RESTORE_REPORT.json"} {
		harness.Must(t, os.Remove(filepath.Join(w.root, name)))
	}
}

// moves matches the renames that put files in their place beneath the root.
func moves(w *fixture) func(sysfault.Call) bool {
	return func(c sysfault.Call) bool {
		return c.Name == "renameat2" && strings.HasPrefix(c.To, w.root+"/") && !strings.Contains(c.To, "/.spectrum06_")
	}
}

// TestVoidAfterFailure: a commit that fails and is rolled back voids every preview
// of its root, though the root is as it was. Shown again it is good again.
func TestVoidAfterFailure(t *testing.T) {
	w := newFour(t)
	mine, other := w.preview(t), w.preview(t, "--scope", "project_state")
	before := w.tree(t)
	r := w.Run(t, &sysfault.Plan{N: 2, Match: moves(w), Errno: syscall.EIO}, harness.CommitArgs(mine.ID)...)
	if r.Status != 74 || r.Answer.Code != "RESTORE_FINALIZE_FAILED" {
		t.Fatal(r)
	}
	if diff := harness.Diff(before, w.tree(t)); diff != "" {
		t.Fatal(diff)
	}
	w.void(t, mine, other)
}

// void: none of the previews is good any more, of which the first was used, there is no
// savepoint, and what is shown again is good.
func (w *fixture) void(t *testing.T, previews ...block) {
	t.Helper()
	w.refused(t, previews[0].ID, exactly, 4, "APPROVAL_USED")
	for _, b := range previews[1:] {
		w.refused(t, b.ID, exactly, 4, "APPROVAL_STALE")
	}
	if all := w.savepoints(t); len(all) > 0 {
		t.Errorf("%+v", all)
	}
	again := w.preview(t)
	if again.ID != previews[0].ID {
		t.Errorf("shown again it is another one")
	}
	if r := w.commit(t, again.ID, exactly); r.Status != 0 {
		t.Error(r)
	}
	if all := w.savepoints(t); len(all) != 1 {
		t.Errorf("%+v", all)
	}
}

// TestVoidAfterRecover: so does one that was killed, once it is recovered: by
// recover, or by the next command.
func TestVoidAfterRecover(t *testing.T) {
	for _, by := range []string{"recover", "preview", "commit"} {
		t.Run(by, func(t *testing.T) {
			w := newFour(t)
			mine, other := w.preview(t), w.preview(t, "--scope", "project_state")
			r := w.Run(t, &sysfault.Plan{N: 2, Match: moves(w), Kill: true}, harness.CommitArgs(mine.ID)...)
			if !r.Killed() {
				t.Fatal(r)
			}
			switch by {
			case "recover":
				w.Must(t, "recover", w.root)
			case "preview":
				w.preview(t, "--agent", "another")
			}
			if by == "commit" {
				if r := w.commit(t, other.ID, exactly); r.Status != 4 || r.Answer.Code != "APPROVAL_STALE" || len(w.files(t)) > 0 {
					t.Error(r)
				}
			}
			w.void(t, mine, other)
		})
	}
}

// TestOwnState: a preview is known to the state directory that it was made with.
func TestOwnState(t *testing.T) {
	w := newFour(t)
	b := w.preview(t)
	mine := w.State
	w.State = filepath.Join(t.TempDir(), "state")
	harness.Must(t, os.Mkdir(w.State, 0o700))
	w.refused(t, b.ID, exactly, 4, "APPROVAL_REQUIRED")
	w.pin(t, 1)
	if there := w.preview(t); there.ID != b.ID {
		t.Errorf("%s, then %s", b.ID, there.ID)
	}
	w.committed(t, exactly)
	w.State = mine
	w.refused(t, b.ID, exactly, 4, "APPROVAL_STALE")
}
