package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// A lodger is alice with a directory of her own in a restore root: a snapshot was taken, and
// much was changed since.
type lodger struct {
	p        *harness.Project
	root     string
	snapshot string
	then     map[string]string // what the snapshot has
}

// filesIn are the files and empty directories beneath a directory, and the contents.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	harness.Must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		text := "no file"
		if err == nil && e.Type().IsRegular() {
			var raw []byte
			raw, err = os.ReadFile(path)
			text = string(raw)
		}
		all[rel] = text
		return err
	}))
	return all
}

func newLodger(t *testing.T, uid int) *lodger {
	t.Helper()
	top := open(t)
	l := &lodger{p: harness.NewIn(t, top, harness.Small()), root: filepath.Join(top, "root")}
	for name, text := range map[string]string{"u/a": "a", "u/b": "b", "u/back/c": "c", "u/stays/d": "d", "z": "z"} {
		l.write(t, name, text)
	}
	give(t, l.p, uid, l.root)
	if uid == 0 {
		own(t, alice, filepath.Join(l.root, "u"))
	}
	l.then = filesIn(t, l.root)
	l.snapshot = strings.Fields(l.p.Must(t, "snapshot", "take", l.root).Stdout)[1]
	harness.Must(t, os.RemoveAll(filepath.Join(l.root, "u/back")))
	for name, text := range map[string]string{"u/a": "a changed", "u/gone/e": "e", "u/stays/d": "d changed", "z": "z changed"} {
		l.write(t, name, text)
	}
	give(t, l.p, uid, l.root)
	harness.Must(t, os.Remove(filepath.Join(l.root, "u/b")))
	return l
}

func (l *lodger) write(t *testing.T, name, text string) {
	t.Helper()
	harness.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(l.root, name)), 0o755))
	harness.Must(t, os.WriteFile(filepath.Join(l.root, name), []byte(text), 0o644))
}

// TestMountsMeanwhile: at any moment of the restore of a snapshot another user mounts what he
// serves on a directory of his in the root: over names that are swapped, or on one of them. It
// goes on with everything else, or nothing is changed; for root it never halts. What is in the
// way is named with its owner and what to do, and his server is asked nothing.
func TestMountsMeanwhile(t *testing.T) { victims(t, mountsMeanwhile) }

func mountsMeanwhile(t *testing.T, uid int) {
	l := newLodger(t, uid)
	counted := l.p.Run(t, &sysfault.Plan{Only: renames, Match: l.moves}, "snapshot", "restore", l.snapshot)
	if counted.Status != 0 || counted.Fault.Calls < 10 {
		t.Fatal(counted)
	}
	type moment struct {
		at string
		n  int
	}
	var all []moment
	for _, at := range []string{"u", "u/gone", "u/back", "u/stays"} {
		for n := range counted.Fault.Calls {
			all = append(all, moment{at, n + 1})
		}
	}
	stride := sample.Thin(t, max(len(all)/6, 1), 3)
	for i, m := range all {
		if !stride.Has(i + 1) {
			continue
		}
		t.Run(fmt.Sprintf("%s at %d", m.at, m.n), func(t *testing.T) { newLodger(t, uid).mounts(t, uid, m.at, m.n) })
	}
}

var renames = []string{"renameat2", "unlinkat", "fsync"}

// moves reports whether a call changes or syncs something in the root.
func (l *lodger) moves(c sysfault.Call) bool {
	return slices.Contains(renames, c.Name) && harness.Inside(c.Path, l.root)
}

// mounts has alice mount on a directory right before a call of the restore.
func (l *lodger) mounts(t *testing.T, uid int, at string, n int) {
	before := filesIn(t, l.root)
	dir := filepath.Join(l.root, at)
	var s *served
	act := &sysfault.Plan{Only: renames, N: n, Match: l.moves, Before: func(sysfault.Call) {
		if _, err := os.Lstat(dir); err == nil {
			s = serveAs(t, alice, dir, answers{Size: 100, Own: n%2 == 0})
		}
	}}
	r := l.p.Run(t, act, "snapshot", "restore", l.snapshot)
	if s == nil {
		return
	}
	s.checkUnasked(t, "the restore")
	_ = s.cmd.Process.Kill()
	mountpoint := mountpointOf(t, l.root)
	names := mountpoint == "" || strings.Contains(r.Stdout+r.Stderr, mountpoint)
	switch {
	case r.Hung, r.Killed(), r.Status != 0 && r.Status != 74 && r.Status != 3, r.Status == 3 && uid == 0:
		t.Error(r)
	case r.Status != 0 && !(names && strings.Contains(r.Stderr, "umount "+mountpoint) && strings.Contains(r.Stderr, fmt.Sprintf("user %d", alice))):
		t.Errorf("no hint about %q: %v", mountpoint, r)
	}
	takeAwayIn(t, l.root)
	if r.Status == 3 {
		l.p.Must(t, "recover", l.root)
	}
	if now := filesIn(t, l.root); r.Status != 0 && !equal(now, before) {
		t.Errorf("nothing was to change: %v\nwas %v\n%v", now, before, r)
	}
	if r.Status == 0 && harness.ReadFile(t, filepath.Join(l.root, "z")) != "z" {
		t.Errorf("the rest was not restored: %v", r)
	}
	l.p.Must(t, "recover", l.root)
	l.p.Must(t, "snapshot", "restore", l.snapshot)
	now := filesIn(t, l.root)
	for name := range now {
		if strings.HasPrefix(name, "spectrum-kept-") {
			delete(now, name)
		}
	}
	if !equal(now, l.then) {
		t.Errorf("afterwards %v, want %v; %v", now, l.then, r)
	}
}

func equal(a, b map[string]string) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// mountpointOf is what is mounted beneath a directory; "" for nothing.
func mountpointOf(t *testing.T, dir string) string {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mountinfo")
	harness.Must(t, err)
	for line := range strings.Lines(string(table)) {
		if at := strings.Fields(line)[4]; at != dir && harness.Inside(at, dir) {
			return at
		}
	}
	return ""
}

// takeAwayIn unmounts what is mounted beneath a directory.
func takeAwayIn(t *testing.T, dir string) {
	t.Helper()
	for at := mountpointOf(t, dir); at != ""; at = mountpointOf(t, dir) {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
			t.Fatal(err)
		}
	}
}

// TestMountsBefore: what another user serves in a root, for all or for himself alone, is named
// in a snapshot, which is of all of the root nevertheless: an emergency rollback goes to it.
func TestMountsBefore(t *testing.T) { victims(t, mountsBefore) }

func mountsBefore(t *testing.T, uid int) {
	for _, private := range []bool{false, true} {
		l := newLodger(t, uid)
		for _, at := range []string{"u/stays", "u/gone"} {
			s := serveAs(t, alice, filepath.Join(l.root, at), answers{Size: 100, Own: private})
			defer s.checkUnasked(t, "a command")
		}
		newest := strings.Fields(l.p.Must(t, "snapshot", "take", l.root).Stdout)[1]
		l.write(t, "z", "z changed again")
		r := l.p.Must(t, "rollback", "--emergency", l.root)
		if !strings.Contains(r.Stderr, "going back to snapshot "+newest[:8]) || !strings.Contains(r.Stderr, "2 names of which nothing was kept (mount)") || harness.ReadFile(t, filepath.Join(l.root, "z")) != "z changed" {
			t.Errorf("private %t: %v", private, r)
		}
		l.p.Must(t, "snapshot", "restore", l.snapshot)
		takeAwayIn(t, l.root)
	}
}

// TestPassedOver: an emergency rollback says why it passes over a newer snapshot that lacks what
// could not be read, for people and for programs; and it is incomplete where that stays.
func TestPassedOver(t *testing.T) {
	needRoot(t)
	l := newLodger(t, ordinary)
	harness.Must(t, os.Chown(filepath.Join(l.root, "z"), 0, 0))
	harness.Must(t, os.Chmod(filepath.Join(l.root, "z"), 0o600))
	newest := strings.Fields(l.p.Must(t, "snapshot", "take", l.root).Stdout)[1]
	for _, more := range [][]string{{}, {"--dry-run"}} {
		r := l.p.Run(t, nil, append([]string{"rollback", "--emergency", "--json", l.root}, more...)...)
		var answer struct {
			Details struct {
				Passed []struct {
					ID     string
					Unread []string
					Count  int `json:"unread_count"`
				}
			}
		}
		harness.Must(t, json.Unmarshal([]byte(r.Stdout), &answer))
		got := answer.Details
		if r.Status != 1 || r.Answer.Code != "ROLLBACK_INCOMPLETE" {
			t.Errorf("%v", r)
		}
		if len(got.Passed) != 1 || got.Passed[0].ID != newest || got.Passed[0].Count != 1 || !slices.Equal(got.Passed[0].Unread, []string{"z"}) {
			t.Errorf("%+v of %v", got, r)
		}
		if want := "skipped: snapshot " + newest[:8]; !strings.Contains(r.Stderr, want) || !strings.Contains(r.Stderr, "lacks 1 name that could not be read: z") {
			t.Errorf("no %q: %v", want, r)
		}
	}
}
