package undo

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// kinds of file systems on which a restore root may be.
func kindsOfVolumes() []harness.Format {
	return []harness.Format{harness.Ext4, harness.XFS, harness.Btrfs, harness.Tmpfs, harness.Overlay}
}

// TestMoved: a restore root that was moved keeps its history, all commands find it, and it can
// be taken back; another directory at its old path has a history of its own. A root that was
// deleted comes back as the hint says.
func TestMoved(t *testing.T) {
	for _, format := range kindsOfVolumes() {
		t.Run(format.Name, func(t *testing.T) { movedOn(t, harness.MountedVolume(t, format).Path) })
	}
}

func movedOn(t *testing.T, volume string) {
	own := *project(t)
	p := &own
	p.State = filepath.Join(harness.MemoryDir(t), "state")
	harness.Must(t, os.Mkdir(p.State, 0o700))
	site := p.Site(t, filepath.Join(volume, "old"))
	harness.Must(t, os.RemoveAll(filepath.Join(site.Root, harness.ForeignStaging)))
	before := anew(harness.MustTake(t, site.Root))
	taken := said(t, p.Must(t, "snapshot", "take", "--json", site.Root))["id"].(string)
	if r := site.Commit(t, nil); r.Status != 0 {
		t.Fatal(r)
	}
	commit := said(t, p.Must(t, "savepoint", "list", "--json", site.Root))["savepoints"].([]any)[0].(map[string]any)["attempt"].(string)
	isIt := func(root string, want harness.Tree) {
		t.Helper()
		if diff := harness.Diff(want, anew(harness.MustTake(t, root))); diff != "" {
			t.Errorf("%q:\n%s", root, diff)
		}
	}
	count := func(root string) int {
		t.Helper()
		return len(said(t, p.Must(t, "snapshot", "list", "--json", root))["snapshots"].([]any))
	}
	was := count(site.Root)
	moved := filepath.Join(volume, "new")
	harness.Must(t, os.Rename(site.Root, moved))
	if r := p.Run(t, nil, "snapshot", "restore", taken); r.Status != 1 || !strings.Contains(r.Stderr, "recover NEW_PATH") || !strings.Contains(r.Stderr, "mkdir") {
		t.Errorf("not found where it was: %v", r)
	}
	if got := count(moved); got != was {
		t.Errorf("before anything else, %d snapshots of the root that was moved, want %d", got, was)
	}
	if all := said(t, p.Must(t, "savepoint", "list", "--json", moved))["savepoints"].([]any); len(all) != 1 {
		t.Errorf("savepoints of the root that was moved: %v", all)
	}
	if r := p.Must(t, "snapshot", "prune", "--keep-last", "1", "--dry-run", moved); strings.Contains(r.Stderr, "no snapshots") {
		t.Errorf("%v", r)
	}
	if r := p.Must(t, "recover", moved); !strings.Contains(r.Stderr, "was moved here from") {
		t.Errorf("the move is not named: %v", r)
	}
	if got := count(moved); got != was {
		t.Errorf("%d snapshots of the root that was moved, want %d", got, was)
	}
	p.Must(t, "rollback", commit)
	isIt(moved, before)

	harness.Must(t, os.Mkdir(site.Root, 0o755)) // another root in its old place
	harness.Must(t, os.WriteFile(filepath.Join(site.Root, "other"), nil, 0o600))
	p.Must(t, "snapshot", "take", site.Root)
	if got := count(site.Root); got != 1 {
		t.Errorf("%d snapshots of another root, want 1", got)
	}
	harness.Must(t, os.WriteFile(filepath.Join(moved, "foreign.txt"), []byte("damaged"), 0o640))
	p.Must(t, "rollback", "--emergency", moved)
	isIt(moved, before)
	if _, err := os.Lstat(filepath.Join(site.Root, "other")); err != nil {
		t.Error(err)
	}

	harness.Must(t, os.RemoveAll(moved))
	r := p.Run(t, nil, "snapshot", "restore", taken)
	if r.Status != 1 || !strings.Contains(r.Stderr, "mkdir "+moved+", then run this again") {
		t.Errorf("deleted: %v", r)
	}
	for _, args := range [][]string{{"rollback", "--emergency", moved}, {"recover", moved}, {"snapshot", "take", moved}} {
		r := p.Run(t, nil, args...)
		if r.Status != 1 || !strings.Contains(r.Stderr, "mkdir "+moved+", then \"spectrum ") || !strings.Contains(r.Stderr, " rollback --emergency "+moved+"\"") {
			t.Errorf("deleted: %v", r)
		}
	}
	if log := p.Must(t, "audit", "show").Stdout; strings.Count(log, " rollback_refused emergency ") != 1 {
		t.Errorf("an emergency rollback of a deleted root is not logged once:\n%s", log)
	}
	if r := p.Run(t, nil, "recover", moved+"-misspelled"); strings.Contains(r.Stderr, "mkdir") {
		t.Errorf("never a root: %v", r)
	}
	harness.Must(t, os.Mkdir(moved, 0o755))
	p.Must(t, "snapshot", "restore", taken)
	isIt(moved, before)
	for _, args := range [][]string{{"audit", "verify"}, {"recover", moved}} {
		if r := p.Run(t, nil, args...); r.Status != 0 {
			t.Errorf("%v", r)
		}
	}

	inner := filepath.Join(moved, "beside")
	if r := p.Must(t, "snapshot", "take", inner); !strings.Contains(r.Stderr, "is inside another one") {
		t.Errorf("a root in a root is not named: %v", r)
	}
	if r := p.Must(t, "snapshot", "take", moved); !strings.Contains(r.Stderr, "is inside this one") {
		t.Errorf("a root around a root is not named: %v", r)
	}
}

// said is what a command has printed as JSON.
func said(t testing.TB, r harness.Reply) (all map[string]any) {
	t.Helper()
	harness.Must(t, json.Unmarshal([]byte(r.Stdout), &all))
	return all
}
