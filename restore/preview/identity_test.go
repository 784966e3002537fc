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
	"github.com/spectrumfs/spectrum/restore/trust"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/bundletest"
	"golang.org/x/sys/unix"
)

// changes are everything that a preview's identity binds, one thing each.
var changes = []struct {
	name   string
	change func(s *scene)
}{
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
	{"content, time set back", func(s *scene) {
		name := s.at("deep/er/still/file")
		info, err := os.Stat(name)
		must(s.t, err)
		must(s.t, os.WriteFile(name, []byte("WAS HERE"), 0o644))
		must(s.t, os.Chtimes(name, time.Time{}, info.ModTime()))
	}},
	{"time of modification", func(s *scene) { must(s.t, os.Chtimes(s.at("top"), time.Time{}, time.Unix(1, 0))) }},
	{"new file", func(s *scene) { must(s.t, os.WriteFile(s.at("deep/er/new"), nil, 0o644)) }},
	{"new directory", func(s *scene) { must(s.t, os.Mkdir(s.at("deep/er/new"), 0o755)) }},
	{"file deleted", func(s *scene) { must(s.t, os.Remove(s.at("deep/er/still/file"))) }},
	{"chmod", func(s *scene) { must(s.t, os.Chmod(s.at("deep/er/still"), 0o700)) }},
	{"set-id bit", func(s *scene) { must(s.t, unix.Chmod(s.at("top"), 0o4644)) }},
	{"chown", func(s *scene) { must(s.t, os.Lchown(s.at("top"), 12, 34)) }},
	{"rename", func(s *scene) { must(s.t, os.Rename(s.at("deep/er/still/file"), s.at("deep/er/still/other"))) }},
	{"link elsewhere", func(s *scene) {
		must(s.t, os.Remove(s.at("deep/link")))
		must(s.t, os.Symlink("er", s.at("deep/link")))
	}},
	{"attribute", func(s *scene) { must(s.t, unix.Setxattr(s.at("top"), "user.x", []byte("x"), 0)) }},
	{"replaced by an equal", func(s *scene) {
		must(s.t, os.WriteFile(s.at("twin"), []byte("top"), 0o644))
		must(s.t, os.Rename(s.at("twin"), s.at("top")))
	}},
	{"mode of the root", func(s *scene) { must(s.t, os.Chmod(s.root, 0o700)) }},
	{"mounted over", func(s *scene) {
		must(s.t, unix.Mount("t", s.at("deep/er"), "tmpfs", 0, ""))
		s.t.Cleanup(func() { must(s.t, unix.Unmount(s.at("deep/er"), unix.MNT_DETACH)) })
	}},
	{"another root with the same in it", func(s *scene) {
		s.root = s.t.TempDir()
		must(s.t, os.WriteFile(s.at("top"), []byte("top"), 0o644))
	}},
	{"path of the root", func(s *scene) { s.origin.RestoreRoot += "/" }},
	{"path of the project", func(s *scene) { s.origin.ProjectRoot += "/" }},
	{"path of a run", func(s *scene) { s.origin.RunDirs[0] += "/" }},
	{"chain asked for", func(s *scene) { s.origin.Chain = true }},
	{"nonce", func(s *scene) { s.origin.Nonce += "x" }},
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
			if a, err := record.Approve(again, preview.Statement, ledger); !isStale(err) || a != nil {
				t.Errorf("approved: %v, %v", a, err)
			}
			wantUnused(t, ledger, first.ID())
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

// TestNonce: previews of one state can be told apart, unless they are asked to
// be the same.
func TestNonce(t *testing.T) {
	s := newScene(t)
	s.origin.Nonce = ""
	a, b := s.preview(), s.preview()
	if a.ID() == b.ID() {
		t.Error("two previews have one identity")
	}
	s.origin = kept(t, a).Origin()
	if again := s.preview(); again.ID() != a.ID() {
		t.Error("a record cannot be made again")
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
	if p, err := preview.New(ctx, s.restore(), s.origin, trust.Policy{}); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestClosedRoot: nor is what can no longer be looked at.
func TestClosedRoot(t *testing.T) {
	s := newScene(t)
	r := s.restore()
	must(t, r.Close())
	if p, err := preview.New(context.Background(), r, s.origin, trust.Policy{}); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// TestNotUTF8: JSON cannot hold such a path, so there is no preview; never one
// of another path.
func TestNotUTF8(t *testing.T) {
	s := newScene(t)
	s.origin.RestoreRoot = "/restore\xff"
	if p, err := preview.New(context.Background(), s.restore(), s.origin, trust.Policy{}); err == nil || p != nil {
		t.Errorf("%v, %v", p, err)
	}
}

// goldenBlock is the decision block (protocol section 13) of TestGoldenBlock,
// without what differs from one test to the next.
const goldenBlock = `{` +
	`"approval":{"required_items":["R-001","R-002","C-001","C-002"],"statement":"Approved: commit the restore preview exactly as proposed.","status":"pending"},` +
	`"artifact_type":"restore_preview",` +
	`"candidate":{"chain_root":null,"runs":[{"bundle_root":"b25d257f2acffe207e05f432d66d37b1c9f7defaa29a072f85a9c7110b5c4df2","run_id":"run-1","validator_id":"ec5586a986f88604eb06419bdaa1994b64c22788ed1b8fd96fbc7f011fa06478","validator_standing":"unknown"}],"unsigned_artifacts":["PROOF.json"]},` +
	`"conflicts":[{"authority_comparison":"a valid signature says who signed, and not that the operator trusts him","conflict_id":"C-001","current_state":"no validator is pinned","item":"ec5586a986f88604eb06419bdaa1994b64c22788ed1b8fd96fbc7f011fa06478","operator_decision":"pending","recommended_resolution":"compare this validator_id with the one you expect, then spectrum trust add it","risk":"whoever has any key can make a candidate that verifies","savepoint_claim":"this validator has accepted the candidate","type":"authority_conflict"},` +
	`{"authority_comparison":"current state outranks the restore candidate","conflict_id":"C-002","current_state":"a regular file of 3 bytes","item":"a","operator_decision":"pending","recommended_resolution":"move the existing entry away, then preview again","risk":"a restore never overwrites: the commit will be refused with RESTORE_TARGET_PATH_EXISTS","savepoint_claim":"the restore would create this path","type":"state_conflict"}],` +
	`"current_active_savepoint_id":"unknown",` +
	`"do_not_restore_items":[],` +
	`"origin":{"chain":false,"nonce":"nonce","project_root":"/project","restore_root":"/restore","run_dirs":["/project/run-1"],"view":null},` +
	`"preview_id":"ID",` +
	`"proposed_restorations":[{"bytes":6,"item":"a","label":"conflict_with_current_state","mode":"0644","modified":"2023-11-14T22:13:20.000000005Z","restore_id":"R-001","scope":"project_state","sha256":"sha256:b6a98d9ce9a2d9149288fa3df42d377c3e42737afdcdaf714e33c0a100b51060"},{"bytes":0,"item":"b","label":"restore_active","mode":"0644","modified":"2023-11-14T22:13:20.000000005Z","restore_id":"R-002","scope":"project_state","sha256":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}],` +
	`"protocol_version":"restore-v01",` +
	`"reference_only_items":[],` +
	`"restore_root":{"path":"/restore","state":"STATE","warnings":[]},` +
	`"restore_scope":["project_state"],` +
	`"source_savepoint_id":"b25d257f2acffe207e05f432d66d37b1c9f7defaa29a072f85a9c7110b5c4df2",` +
	`"totals":{"bytes":6,"files":2},` +
	`"trust":"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}`

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
	got := strings.NewReplacer(fields.Root.State, "STATE", p.ID(), "ID").Replace(string(raw))
	if got != goldenBlock {
		t.Errorf("got\n%s\nwant\n%s", got, goldenBlock)
	}
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
}
