package preview_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/restore/restoretest"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// change is one change after a preview.
type change struct {
	name   string
	change func(s *scene)
}

// changes are changes of everything that a preview's identity binds, one thing each.
var changes = []change{
	{"task", func(s *scene) {
		s.Runs[0].Edit(bundle.TaskSpec, func(f map[string]any) { f["task_id"] = "another" })
		s.Runs[0].Sign()
	}},
	{"validator", func(s *scene) {
		copy(s.Runs[0].Seed[:], "another key, for other tests, too")
		s.Runs[0].Sign()
	}},
	{"content of an output", func(s *scene) {
		s.Write("out/a.txt", "ALPHA\n")
		s.Runs[0].EditHashes(func(h map[string]any) { h["out/a.txt"] = bundletest.Hash("ALPHA\n") })
	}},
	{"an output more", func(s *scene) {
		s.Write("out/c.txt", "gamma\n")
		s.Runs[0].EditHashes(func(h map[string]any) { h["out/c.txt"] = bundletest.Hash("gamma\n") })
	}},
	{"an output less", func(s *scene) { s.Runs[0].EditHashes(func(h map[string]any) { delete(h, "out/b.txt") }) }},
	{"an output's path", func(s *scene) {
		s.Write("out/z.txt", "beta\n")
		s.Runs[0].EditHashes(func(h map[string]any) { h["out/z.txt"] = h["out/b.txt"]; delete(h, "out/b.txt") })
	}},
	{"run id", func(s *scene) {
		must(s.T, os.Rename(s.Runs[0].Dir, s.Runs[0].Dir+"-b"))
		s.Runs[0].Dir += "-b"
	}},
	{"a run more", func(s *scene) { s.Add("run-2", map[string]string{"x": "x"}) }},
	{"a conflict", func(s *scene) {
		must(s.T, os.Mkdir(s.At("out"), 0o755))
		must(s.T, os.WriteFile(s.At("out/a.txt"), nil, 0o644))
	}},
	{"a result artifact in the way", func(s *scene) { must(s.T, os.Mkdir(s.At("RESTORE_REPORT.json"), 0o755)) }},
	{"mode of the root", func(s *scene) { must(s.T, os.Chmod(s.RestoreRoot, 0o700)) }},
	{"another root", func(s *scene) {
		s.RestoreRoot = s.T.TempDir()
		must(s.T, os.WriteFile(s.At("top"), []byte("top"), 0o644))
	}},
	{"owner of the root", func(s *scene) { must(s.T, os.Lchown(s.RestoreRoot, 12, 0)) }},
	{"who can rename the root", func(s *scene) { must(s.T, os.Lchown(filepath.Dir(s.RestoreRoot), 12, 0)) }},
	{"path of the root", func(s *scene) { s.Origin.RestoreRoot = s.RestoreRoot + "/" }},
}

// onTheWay changes an entry at a target, or on the way there, in the root of [newStanding].
var onTheWay = []change{
	{"new file at a target", func(s *scene) { must(s.T, os.WriteFile(s.At("deep/er/new"), nil, 0o644)) }},
	{"new directory at a target", func(s *scene) { must(s.T, os.Mkdir(s.At("deep/er/new"), 0o755)) }},
	{"new link at a target", func(s *scene) { must(s.T, os.Symlink("still", s.At("deep/er/new"))) }},
	{"file at a target deleted", func(s *scene) { must(s.T, os.Remove(s.At("top"))) }},
	{"chmod of a target", func(s *scene) { must(s.T, os.Chmod(s.At("top"), 0o600)) }},
	{"set-id bit of a target", func(s *scene) { must(s.T, unix.Chmod(s.At("top"), 0o4644)) }},
	{"chmod on the way", func(s *scene) { must(s.T, os.Chmod(s.At("deep"), 0o700)) }},
	{"directory on the way renamed", func(s *scene) { must(s.T, os.Rename(s.At("deep/er"), s.At("deep/was"))) }},
	{"owner of a directory on the way", func(s *scene) { must(s.T, os.Lchown(s.At("deep/er"), 12, 34)) }},
	{"link on the way leads elsewhere", func(s *scene) {
		must(s.T, os.Remove(s.At("link")))
		must(s.T, os.Symlink("other/", s.At("link")))
	}},
	{"chmod of where a link leads", func(s *scene) { must(s.T, os.Chmod(s.At("other"), 0o700)) }},
	{"mounted on the way", func(s *scene) {
		must(s.T, unix.Mount("t", s.At("deep/er"), "tmpfs", 0, ""))
		s.T.Cleanup(func() { must(s.T, unix.Unmount(s.At("deep/er"), unix.MNT_DETACH)) })
	}},
}

// touches do not change the content of a preview, and void its approval on this machine.
var touches = []change{
	{"content, time set back", func(s *scene) {
		name := s.At("top")
		info, err := os.Stat(name)
		must(s.T, err)
		must(s.T, os.WriteFile(name, []byte("TOP"), 0o644))
		must(s.T, os.Chtimes(name, time.Time{}, info.ModTime()))
	}},
	{"time of modification", func(s *scene) { must(s.T, os.Chtimes(s.At("top"), time.Time{}, time.Unix(1, 0))) }},
	{"chown", func(s *scene) { must(s.T, os.Lchown(s.At("top"), 12, 34)) }},
	{"attribute", func(s *scene) { must(s.T, unix.Setxattr(s.At("top"), "user.x", []byte("x"), 0)) }},
	{"replaced by an equal", func(s *scene) { replaceByEqual(s, "top") }},
	{"directory on the way replaced by an equal", func(s *scene) {
		must(s.T, os.Rename(s.At("deep"), s.At("was")))
		must(s.T, os.MkdirAll(s.At("deep"), 0o755))
		must(s.T, os.Rename(s.At("was/er"), s.At("deep/er")))
	}},
	{"link on the way replaced by an equal", func(s *scene) {
		must(s.T, os.Symlink("other", s.At("twin")))
		must(s.T, os.Rename(s.At("twin"), s.At("link")))
	}},
	{"directory that a link leads to replaced by an equal", func(s *scene) {
		must(s.T, os.Rename(s.At("other"), s.At("was")))
		must(s.T, os.Mkdir(s.At("other"), 0o755))
	}},
	{"group of a directory on the way", func(s *scene) { must(s.T, os.Lchown(s.At("deep/er"), -1, 34)) }},
	{"a commit has begun", func(s *scene) { s.Begun++ }},
}

// elsewhere changes nothing that the plan is about.
var elsewhere = []change{
	{"new file beside a target", func(s *scene) { must(s.T, os.WriteFile(s.At("deep/er/beside"), nil, 0o644)) }},
	{"new directory", func(s *scene) { must(s.T, os.Mkdir(s.At("dir"), 0o755)) }},
	{"file deleted", func(s *scene) { must(s.T, os.Remove(s.At("deep/er/still/file"))) }},
	{"file rewritten", func(s *scene) { must(s.T, os.WriteFile(s.At("deep/er/still/file"), []byte("new"), 0o644)) }},
	{"file replaced by an equal", func(s *scene) { replaceByEqual(s, "deep/er/still/file") }},
	{"chmod", func(s *scene) { must(s.T, os.Chmod(s.At("deep/er/still"), 0o700)) }},
	{"cannot be read", func(s *scene) { must(s.T, os.Chmod(s.At("deep/er/still"), 0)) }},
	{"chown", func(s *scene) { must(s.T, os.Lchown(s.At("deep/er/still"), 12, 34)) }},
	{"rename", func(s *scene) { must(s.T, os.Rename(s.At("deep/er/still"), s.At("deep/er/other"))) }},
	{"mounted over", func(s *scene) {
		must(s.T, unix.Mount("t", s.At("deep/er/still"), "tmpfs", 0, ""))
		s.T.Cleanup(func() { must(s.T, unix.Unmount(s.At("deep/er/still"), unix.MNT_DETACH)) })
	}},
	{"time of a directory on the way", func(s *scene) { must(s.T, os.Chtimes(s.At("deep"), time.Time{}, time.Unix(1, 0))) }},
}

func replaceByEqual(s *scene, name string) {
	raw, err := os.ReadFile(s.At(name))
	must(s.T, err)
	must(s.T, os.WriteFile(s.At("twin"), raw, 0o644))
	must(s.T, os.Rename(s.At("twin"), s.At(name)))
}

// newStanding is a scene whose candidate has an output at a name that exists, and one in a directory that
// exists, and one in a directory that a link leads to.
func newStanding(t *testing.T) *scene {
	t.Helper()
	s := newScene(t)
	s.Runs = nil
	s.Add("run-s", map[string]string{
		"out/a.txt": "alpha\n", "out/b.txt": "beta\n", "top": "another top", "deep/er/new": "new", "link/new": "new",
	})
	must(t, os.Mkdir(s.At("other"), 0o755))
	must(t, os.Symlink("other", s.At("link")))
	return s
}

// TestIdentityChanges: whatever changes, the preview is another one, and the
// approval of the first no longer fits; the first is not used up.
func TestIdentityChanges(t *testing.T) {
	for _, c := range slices.Concat(changes, onTheWay) {
		t.Run(c.name, func(t *testing.T) {
			s, ledger := newStanding(t), state(t)
			first := s.Preview()
			record := kept(t, first)
			tick()
			c.change(s)
			again := s.Preview()
			if again.ID() == first.ID() {
				t.Error("the identity is the same")
			}
			if a, err := approve(record, again, preview.Exactly); !isStale(err) || a != nil {
				t.Errorf("approved: %v, %v", a, err)
			}
			wantUnused(t, ledger, first.ID())
		})
	}
}

// TestTouchedRootVoidsApproval: what does not show, on another machine or another day, is the
// same preview; on this one its approval no longer fits.
func TestTouchedRootVoidsApproval(t *testing.T) {
	for _, c := range touches {
		t.Run(c.name, func(t *testing.T) {
			s := newStanding(t)
			first := s.Preview()
			record := kept(t, first)
			tick()
			c.change(s)
			again := s.Preview()
			if again.ID() != first.ID() {
				t.Error("it is another preview")
			}
			if a, err := approve(record, again, preview.Exactly); !isStale(err) || a != nil {
				t.Errorf("approved: %v, %v", a, err)
			}
		})
	}
}

// TestOtherNamesVoidNothing checks that changes at other names of the root void no approval.
func TestOtherNamesVoidNothing(t *testing.T) {
	for _, c := range elsewhere {
		t.Run(c.name, func(t *testing.T) {
			s := newStanding(t)
			first := s.Preview()
			record := kept(t, first)
			tick()
			c.change(s)
			again := s.Preview()
			if again.ID() != first.ID() {
				t.Error("it is another preview")
			}
			if err := first.CheckRoot(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := approve(record, again, preview.Exactly); isStale(err) {
				t.Error(err)
			}
		})
	}
}

// tick waits until the kernel's clock for files has gone on.
func tick() { time.Sleep(10 * time.Millisecond) }

// TestIdentityStays: when nothing changes, nothing changes; also after reads and other previews,
// and with any number of processors.
func TestIdentityStays(t *testing.T) {
	s := newScene(t)
	first := s.Preview()
	json, report := jsonOf(t, first), reportOf(t, first)
	for procs := range 4 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs + 1))
		_, err := os.ReadFile(s.At("deep/er/still/file"))
		must(t, err)
		_, err = os.ReadDir(s.RestoreRoot)
		must(t, err)
		again := s.Preview()
		if again.ID() != first.ID() || !bytes.Equal(jsonOf(t, again), json) || reportOf(t, again) != report {
			t.Fatalf("\n%s\nbecame\n%s", json, jsonOf(t, again))
		}
	}
}

// TestPreviewWritesNothing checks that a preview writes neither beneath the root nor beneath the project.
func TestPreviewWritesNothing(t *testing.T) {
	s := newScene(t)
	root, project := bundletest.Snapshot(t, s.RestoreRoot), bundletest.Snapshot(t, s.Root)
	s.Preview()
	if bundletest.Snapshot(t, s.RestoreRoot) != root || bundletest.Snapshot(t, s.Root) != project {
		t.Error("something changed")
	}
}

// TestIdentityIsTheHash: preview_id is the SHA-256 of the canonical rest, for a
// reader that is not ours, and the whole is canonical.
func TestIdentityIsTheHash(t *testing.T) {
	s := newScene(t)
	must(t, os.Mkdir(s.At("out"), 0o755))
	must(t, os.WriteFile(s.At("out/b.txt"), nil, 0o644))
	p := s.Preview()
	raw := jsonOf(t, p)
	var fields map[string]any
	must(t, json.Unmarshal(raw, &fields))
	if again := canonical(t, fields); !bytes.Equal(again, raw) {
		t.Errorf("not canonical:\n%s\n%s", raw, again)
	}
	if fields["preview_id"] != p.ID() {
		t.Errorf("preview_id %v, ID %s", fields["preview_id"], p.ID())
	}
	delete(fields, "preview_id")
	delete(fields, "quarantine")
	if sum := sha256.Sum256(canonical(t, fields)); hex.EncodeToString(sum[:]) != p.ID() {
		t.Errorf("the rest hashes to %x, not to %s", sum, p.ID())
	}
}

func canonical(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	must(t, e.Encode(v))
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// TestCancelledPreview checks that a cancelled call returns no preview.
func TestCancelledPreview(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if p, err := preview.New(ctx, s.Restore(), s.Request()); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestClosedRoot checks that there is no preview of a closed root.
func TestClosedRoot(t *testing.T) {
	s := newScene(t)
	r := s.Restore()
	must(t, r.Close())
	if p, err := preview.New(context.Background(), r, s.Request()); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestNotUTF8: JSON cannot hold such a path, so there is no preview; never one
// of another path.
func TestNotUTF8(t *testing.T) {
	s := newScene(t)
	s.Named("\xff")
	if p, err := preview.New(context.Background(), s.Restore(), s.Request()); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestGoldenBlock: the decision block (protocol section 13), without what differs
// from one test to the next.
func TestGoldenBlock(t *testing.T) {
	s := bareScene(t)
	s.Add("run-1", map[string]string{"a": "alpha\n", "b": ""})
	must(t, os.WriteFile(filepath.Join(s.RestoreRoot, "a"), []byte("old"), 0o644))
	for _, name := range []string{"a", "b"} {
		must(t, os.Chtimes(filepath.Join(s.Root, name), time.Time{}, time.Unix(1_700_000_000, 5)))
	}
	p := s.Preview()
	var fields struct {
		Root struct{ State string } `json:"restore_root"`
	}
	raw := jsonOf(t, p)
	must(t, json.Unmarshal(raw, &fields))
	restoretest.Golden(t, "block.json", strings.ReplaceAll(s.Anywhere(p, string(raw)), fields.Root.State, "STATE"), *update)
}

// TestWarnings checks which restore roots have a warning.
func TestWarnings(t *testing.T) {
	for mode, want := range map[os.FileMode]string{
		0o755: "", 0o700: "", 0o777 | os.ModeSticky: "", 0o775: "mode 0775", 0o757: "mode 0757", 0o777: "mode 0777",
	} {
		s := bareScene(t)
		s.Add("run-1", map[string]string{"a": "alpha"})
		must(t, os.Chmod(s.RestoreRoot, mode))
		report := reportOf(t, s.Preview())
		if strings.Contains(report, "WARNING") != (want != "") || !strings.Contains(report, want) {
			t.Errorf("%v: want %q in\n%s", mode, want, report)
		}
	}
}

// TestSourceAttributesAreBound: permission bits and times are restored too, so
// they are part of what is approved.
func TestSourceAttributesAreBound(t *testing.T) {
	s := newScene(t)
	first := s.Preview()
	must(t, os.Chmod(filepath.Join(s.Root, "out/a.txt"), 0o755))
	executable := s.Preview()
	must(t, os.Chtimes(filepath.Join(s.Root, "out/a.txt"), time.Time{}, time.Unix(1, 0)))
	if old := s.Preview(); first.ID() == executable.ID() || executable.ID() == old.ID() {
		t.Error("the identity is the same")
	}
	for _, dir := range []string{"out", "."} { // as do directories
		before := s.Preview()
		must(t, os.Chmod(filepath.Join(s.Root, dir), 0o711))
		if s.Preview().ID() == before.ID() {
			t.Errorf("the identity is the same though %q has another mode", dir)
		}
	}
}
