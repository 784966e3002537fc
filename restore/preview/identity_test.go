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
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/restore/preview"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// change is one thing that happens after a preview.
type change struct {
	name   string
	change func(s *scene)
}

// changes are everything that a preview's identity binds, one thing each.
var changes = []change{
	{"task", func(s *scene) {
		s.runs[0].Edit(bundle.TaskSpec, func(f map[string]any) { f["task_id"] = "another" })
		s.runs[0].Sign()
	}},
	{"validator", func(s *scene) {
		copy(s.runs[0].Seed[:], "another key, for other tests, too")
		s.runs[0].Sign()
	}},
	{"content of an output", func(s *scene) {
		s.Write("out/a.txt", "ALPHA\n")
		s.runs[0].EditHashes(func(h map[string]any) { h["out/a.txt"] = bundletest.Hash("ALPHA\n") })
	}},
	{"an output more", func(s *scene) {
		s.Write("out/c.txt", "gamma\n")
		s.runs[0].EditHashes(func(h map[string]any) { h["out/c.txt"] = bundletest.Hash("gamma\n") })
	}},
	{"an output less", func(s *scene) { s.runs[0].EditHashes(func(h map[string]any) { delete(h, "out/b.txt") }) }},
	{"an output's path", func(s *scene) {
		s.Write("out/z.txt", "beta\n")
		s.runs[0].EditHashes(func(h map[string]any) { h["out/z.txt"] = h["out/b.txt"]; delete(h, "out/b.txt") })
	}},
	{"run id", func(s *scene) {
		must(s.t, os.Rename(s.runs[0].Dir, s.runs[0].Dir+"-b"))
		s.runs[0].Dir += "-b"
	}},
	{"a run more", func(s *scene) { s.add("run-2", map[string]string{"x": "x"}) }},
	{"a conflict", func(s *scene) {
		must(s.t, os.Mkdir(s.at("out"), 0o755))
		must(s.t, os.WriteFile(s.at("out/a.txt"), nil, 0o644))
	}},
	{"a result artifact in the way", func(s *scene) { must(s.t, os.Mkdir(s.at("RESTORE_REPORT.json"), 0o755)) }},
	{"new file", func(s *scene) { must(s.t, os.WriteFile(s.at("deep/er/new"), nil, 0o644)) }},
	{"new directory", func(s *scene) { must(s.t, os.Mkdir(s.at("deep/er/new"), 0o755)) }},
	{"file deleted", func(s *scene) { must(s.t, os.Remove(s.at("deep/er/still/file"))) }},
	{"chmod", func(s *scene) { must(s.t, os.Chmod(s.at("deep/er/still"), 0o700)) }},
	{"set-id bit", func(s *scene) { must(s.t, unix.Chmod(s.at("top"), 0o4644)) }},
	{"rename", func(s *scene) { must(s.t, os.Rename(s.at("deep/er/still/file"), s.at("deep/er/still/other"))) }},
	{"link elsewhere", func(s *scene) {
		must(s.t, os.Remove(s.at("deep/link")))
		must(s.t, os.Symlink("er", s.at("deep/link")))
	}},
	{"mode of the root", func(s *scene) { must(s.t, os.Chmod(s.root, 0o700)) }},
	{"another root", func(s *scene) {
		s.root = s.t.TempDir()
		must(s.t, os.WriteFile(s.at("top"), []byte("top"), 0o644))
	}},
	{"mounted over", func(s *scene) {
		must(s.t, unix.Mount("t", s.at("deep/er"), "tmpfs", 0, ""))
		s.t.Cleanup(func() { must(s.t, unix.Unmount(s.at("deep/er"), unix.MNT_DETACH)) })
	}},
	{"owner of the root", func(s *scene) { must(s.t, os.Lchown(s.root, 12, 0)) }},
	{"who can rename the root", func(s *scene) { must(s.t, os.Lchown(filepath.Dir(s.root), 12, 0)) }},
	{"path of the root", func(s *scene) { s.origin.RestoreRoot = s.root + "/" }},
}

// touches leave what a preview shows as it is, and tell that somebody was there.
var touches = []change{
	{"content, time set back", func(s *scene) {
		name := s.at("deep/er/still/file")
		info, err := os.Stat(name)
		must(s.t, err)
		must(s.t, os.WriteFile(name, []byte("WAS HERE"), 0o644))
		must(s.t, os.Chtimes(name, time.Time{}, info.ModTime()))
	}},
	{"time of modification", func(s *scene) { must(s.t, os.Chtimes(s.at("top"), time.Time{}, time.Unix(1, 0))) }},
	{"chown", func(s *scene) { must(s.t, os.Lchown(s.at("top"), 12, 34)) }},
	{"attribute", func(s *scene) { must(s.t, unix.Setxattr(s.at("top"), "user.x", []byte("x"), 0)) }},
	{"replaced by an equal", func(s *scene) {
		must(s.t, os.WriteFile(s.at("twin"), []byte("top"), 0o644))
		must(s.t, os.Rename(s.at("twin"), s.at("top")))
	}},
	{"a commit has begun", func(s *scene) { s.begun++ }},
}

// TestIdentityChanges: whatever changes, the preview is another one, and the
// approval of the first no longer fits; the first is not used up.
func TestIdentityChanges(t *testing.T) {
	for _, c := range changes {
		t.Run(c.name, func(t *testing.T) {
			s, ledger := newScene(t), state(t)
			first := s.preview()
			record := kept(t, first)
			tick()
			c.change(s)
			again := s.preview()
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

// TestTouched: what does not show, on another machine or another day, is the
// same preview; on this one its approval no longer fits.
func TestTouched(t *testing.T) {
	for _, c := range touches {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			first := s.preview()
			record := kept(t, first)
			tick()
			c.change(s)
			again := s.preview()
			if again.ID() != first.ID() {
				t.Error("it is another preview")
			}
			if a, err := approve(record, again, preview.Exactly); !isStale(err) || a != nil {
				t.Errorf("approved: %v, %v", a, err)
			}
		})
	}
}

// tick waits until the kernel's clock for files has gone on.
func tick() { time.Sleep(10 * time.Millisecond) }

// TestIdentityStays: when nothing changes, nothing changes; also when somebody
// reads, or asks for a preview, and with any number of processors.
func TestIdentityStays(t *testing.T) {
	s := newScene(t)
	first := s.preview()
	json, report := jsonOf(t, first), reportOf(t, first)
	for procs := range 4 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs + 1))
		_, err := os.ReadFile(s.at("deep/er/still/file"))
		must(t, err)
		_, err = os.ReadDir(s.root)
		must(t, err)
		again := s.preview()
		if again.ID() != first.ID() || !bytes.Equal(jsonOf(t, again), json) || reportOf(t, again) != report {
			t.Fatalf("\n%s\nbecame\n%s", json, jsonOf(t, again))
		}
	}
}

// TestPreviewWritesNothing: neither below the root, nor below the project.
func TestPreviewWritesNothing(t *testing.T) {
	s := newScene(t)
	root, project := bundletest.Snapshot(t, s.root), bundletest.Snapshot(t, s.Root)
	s.preview()
	if bundletest.Snapshot(t, s.root) != root || bundletest.Snapshot(t, s.Root) != project {
		t.Error("something changed")
	}
}

// TestIdentityIsTheHash: preview_id is the SHA-256 of the canonical rest, for a
// reader that is not ours, and the whole is canonical.
func TestIdentityIsTheHash(t *testing.T) {
	s := newScene(t)
	must(t, os.Mkdir(s.at("out"), 0o755))
	must(t, os.WriteFile(s.at("out/b.txt"), nil, 0o644))
	p := s.preview()
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

// TestCancelledPreview: an interrupted look is no preview.
func TestCancelledPreview(t *testing.T) {
	s := newScene(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if p, err := preview.New(ctx, s.restore(), s.request()); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestClosedRoot: nor is what can no longer be looked at.
func TestClosedRoot(t *testing.T) {
	s := newScene(t)
	r := s.restore()
	must(t, r.Close())
	if p, err := preview.New(context.Background(), r, s.request()); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestNotUTF8: JSON cannot hold such a path, so there is no preview; never one
// of another path.
func TestNotUTF8(t *testing.T) {
	s := newScene(t)
	s.named("\xff")
	if p, err := preview.New(context.Background(), s.restore(), s.request()); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestGoldenBlock: the decision block (protocol section 13), without what differs
// from one test to the next.
func TestGoldenBlock(t *testing.T) {
	s := bareScene(t)
	s.add("run-1", map[string]string{"a": "alpha\n", "b": ""})
	must(t, os.WriteFile(filepath.Join(s.root, "a"), []byte("old"), 0o644))
	for _, name := range []string{"a", "b"} {
		must(t, os.Chtimes(filepath.Join(s.Root, name), time.Time{}, time.Unix(1_700_000_000, 5)))
	}
	p := s.preview()
	var fields struct {
		Root struct{ State string } `json:"restore_root"`
	}
	raw := jsonOf(t, p)
	must(t, json.Unmarshal(raw, &fields))
	golden(t, "block.json", strings.ReplaceAll(s.anywhere(p, string(raw)), fields.Root.State, "STATE"))
}

// TestWarnings: what decision D17 allows with a warning, and what needs none.
func TestWarnings(t *testing.T) {
	for mode, want := range map[os.FileMode]string{
		0o755: "", 0o700: "", 0o777 | os.ModeSticky: "", 0o775: "mode 0775", 0o757: "mode 0757", 0o777: "mode 0777",
	} {
		s := bareScene(t)
		s.add("run-1", map[string]string{"a": "alpha"})
		must(t, os.Chmod(s.root, mode))
		report := reportOf(t, s.preview())
		if strings.Contains(report, "WARNING") != (want != "") || !strings.Contains(report, want) {
			t.Errorf("%v: want %q in\n%s", mode, want, report)
		}
	}
}

// TestSourceAttributesAreBound: permission bits and times are restored too, so
// they are part of what is approved.
func TestSourceAttributesAreBound(t *testing.T) {
	s := newScene(t)
	first := s.preview()
	must(t, os.Chmod(filepath.Join(s.Root, "out/a.txt"), 0o755))
	executable := s.preview()
	must(t, os.Chtimes(filepath.Join(s.Root, "out/a.txt"), time.Time{}, time.Unix(1, 0)))
	if old := s.preview(); first.ID() == executable.ID() || executable.ID() == old.ID() {
		t.Error("the identity is the same")
	}
	for _, dir := range []string{"out", "."} { // as do directories
		before := s.preview()
		must(t, os.Chmod(filepath.Join(s.Root, dir), 0o711))
		if s.preview().ID() == before.ID() {
			t.Errorf("the identity is the same though %q has another mode", dir)
		}
	}
}
