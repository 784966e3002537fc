// Package bundletest makes projects with signed runs for tests, and damages them before signing, so
// that the signature does not reveal the damage.
package bundletest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"golang.org/x/sys/unix"
)

// Project is a project root in a directory of the test's own.
type Project struct {
	T    testing.TB
	Root string
}

// Run is a run directory of a project.
type Run struct {
	*Project
	Dir  string
	Seed [ed25519.SeedSize]byte
}

// New makes an empty project.
func New(t testing.TB) *Project {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &Project{t, root}
}

// Write makes a file of the project, with its parents.
func (p *Project) Write(path, content string) {
	p.T.Helper()
	name := filepath.Join(p.Root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		p.T.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		p.T.Fatal(err)
	}
}

// Run makes CONTRACTS/_runs/ID with these outputs (path to content), which are
// written below the project root.
func (p *Project) Run(id string, outputs map[string]string) *Run {
	p.T.Helper()
	hashes := map[string]any{}
	for path, content := range outputs {
		p.Write(path, content)
		hashes[path] = Hash(content)
	}
	r := &Run{Project: p, Dir: filepath.Join(p.Root, "CONTRACTS", "_runs", id)}
	copy(r.Seed[:], "a key that is only used in tests")
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		p.T.Fatal(err)
	}
	r.WriteJSON(bundle.TaskSpec, map[string]any{"task_id": id, "inputs": []string{}, "expected_outputs": []string{}, "constraints": map[string]any{}, "created_at": "2026-01-02T03:04:05Z"})
	r.WriteJSON(bundle.Status, map[string]any{"status": "success", "cmp01": "pass", "completed_at": "2026-01-02T03:04:05Z", "error": nil})
	r.WriteJSON(bundle.OutputHashes, map[string]any{"validator_semver": "1.1.0", "validator_build_id": "git:abc1234", "generated_at": "2026-01-02T03:04:05Z", "hashes": hashes})
	r.WriteJSON(bundle.Proof, map[string]any{"restoration_result": map[string]any{"verified": true}})
	r.Sign()
	return r
}

// Hash is the value that OUTPUT_HASHES.json has for this content.
func Hash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return bundle.HashPrefix + hex.EncodeToString(sum[:])
}

// Path is the path of an artifact.
func (r *Run) Path(artifact string) string { return filepath.Join(r.Dir, artifact) }

// Read returns an artifact's bytes.
func (r *Run) Read(artifact string) []byte {
	r.T.Helper()
	raw, err := os.ReadFile(r.Path(artifact))
	if err != nil {
		r.T.Fatal(err)
	}
	return raw
}

// WriteRaw replaces an artifact by a new file. It does not sign. (To write into
// the old file would make ext4 flush it, thousands of times.)
func (r *Run) WriteRaw(artifact string, raw []byte) {
	r.T.Helper()
	if err := os.Remove(r.Path(artifact)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.T.Fatal(err)
	}
	if err := os.WriteFile(r.Path(artifact), raw, 0o644); err != nil {
		r.T.Fatal(err)
	}
}

// WriteJSON replaces an artifact. It does not sign.
func (r *Run) WriteJSON(artifact string, v any) {
	r.T.Helper()
	r.WriteRaw(artifact, r.json(v))
}

// putJSON is WriteJSON, but skips a file that already has this content: most runs are signed
// several times.
func (r *Run) putJSON(artifact string, v any) {
	r.T.Helper()
	raw := r.json(v)
	if info, err := os.Lstat(r.Path(artifact)); err == nil && info.Mode().IsRegular() && info.Size() == int64(len(raw)) {
		if bytes.Equal(r.Read(artifact), raw) {
			return
		}
	}
	r.WriteRaw(artifact, raw)
}

func (r *Run) json(v any) []byte {
	r.T.Helper()
	raw, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		r.T.Fatal(err)
	}
	return raw
}

// Edit changes an artifact's fields. It does not sign.
func (r *Run) Edit(artifact string, change func(fields map[string]any)) {
	r.T.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal(r.Read(artifact), &fields); err != nil {
		r.T.Fatal(err)
	}
	change(fields)
	r.WriteJSON(artifact, fields)
}

// EditHashes changes the "hashes" object and signs.
func (r *Run) EditHashes(change func(hashes map[string]any)) {
	r.T.Helper()
	r.Edit(bundle.OutputHashes, func(f map[string]any) { change(f["hashes"].(map[string]any)) })
	r.Sign()
}

// Remove removes an artifact, or anything else in the run directory.
func (r *Run) Remove(name string) {
	r.T.Helper()
	if err := os.RemoveAll(r.Path(name)); err != nil {
		r.T.Fatal(err)
	}
}

// SetChanges makes a change set of the run, by this content of its file, and signs it.
func (r *Run) SetChanges(content string) {
	r.T.Helper()
	r.WriteRaw(bundle.ChangesFile, []byte(content))
	r.Edit(bundle.TaskSpec, func(fields map[string]any) {
		claim := map[string]any{"form": 1, "sha256": strings.TrimPrefix(Hash(content), bundle.HashPrefix)}
		fields["constraints"] = map[string]any{bundle.ChangesMember: claim}
	})
	r.Sign()
}

// SetBlocks makes the run one with a block table: with this content of BLOCKS, and a signed claim
// that fits it. The blocks of the claim have so many bytes.
func (r *Run) SetBlocks(content []byte, block int64) {
	r.T.Helper()
	r.WriteRaw(bundle.BlocksFile, content)
	r.Edit(bundle.TaskSpec, func(fields map[string]any) {
		constraints, _ := fields["constraints"].(map[string]any)
		constraints[bundle.BlocksMember] = map[string]any{"form": 1, "block": block, "table": Hash(string(content)), "proof": Hash(string(r.Read(bundle.Proof)))}
	})
	r.Sign()
}

// Blocks returns a table of outputs (path to content), whose entries change may edit. Every mode is
// 0644 or 0755, and the time is the second 5.
func (p *Project) Blocks(block int64, outputs map[string]string, change func(*blocktable.Entry)) []byte {
	p.T.Helper()
	table, err := blocktable.New(blocktable.Draft{
		Block: block, DirPerm: func(string) fs.FileMode { return 0o755 },
		Entries: func(yield func(blocktable.Entry) bool) {
			for _, path := range slices.Sorted(maps.Keys(outputs)) {
				content := outputs[path]
				h := blockhash.NewHasher().Every(block)
				if _, err := h.Sum(p.T.Context(), strings.NewReader(content), int64(len(content))); err != nil {
					p.T.Fatal(err)
				}
				e := blocktable.Entry{Path: path, Attributes: blocktable.Attributes{Size: int64(len(content)), Perm: 0o644, Sec: 5}, Values: slices.Clone(h.Values())}
				if change != nil {
					change(&e)
				}
				if !yield(e) {
					return
				}
			}
		},
	})
	if err != nil {
		p.T.Fatal(err)
	}
	return table.Bytes()
}

// Sign writes identity, payload and signature for the artifacts as they are.
func (r *Run) Sign() {
	r.T.Helper()
	public := r.key().Public().(ed25519.PublicKey)
	id := bundle.ValidatorID(public)
	payload := map[string]any{"bundle_root": r.BundleRoot(), "decision": bundle.Accept, "validator_id": id}
	r.putJSON(bundle.Identity, map[string]any{"algorithm": bundle.Algorithm, "public_key": hex.EncodeToString(public), "validator_id": id})
	r.putJSON(bundle.SignedPayload, payload)
	r.SignPayload()
}

// SignPayload signs SIGNED_PAYLOAD.json as it is.
func (r *Run) SignPayload() {
	r.T.Helper()
	message := bundle.Message(parse(r.T, r.Read(bundle.SignedPayload)).Value)
	r.putJSON(bundle.Signature, map[string]any{
		"payload_type": bundle.PayloadType,
		"signature":    hex.EncodeToString(r.signature(message)),
		"validator_id": bundle.ValidatorID(r.key().Public().(ed25519.PublicKey)),
	})
}

// The keys by their seeds, and the signatures by seed and message: the tests make the
// same few runs thousands of times, and arithmetic on a curve is slow under the race
// detector.
var keys, signatures sync.Map

func (r *Run) key() ed25519.PrivateKey {
	key, ok := keys.Load(r.Seed)
	if !ok {
		key, _ = keys.LoadOrStore(r.Seed, ed25519.NewKeyFromSeed(r.Seed[:]))
	}
	return key.(ed25519.PrivateKey)
}

func (r *Run) signature(message []byte) []byte {
	known := string(r.Seed[:]) + string(message)
	signature, ok := signatures.Load(known)
	if !ok {
		signature, _ = signatures.LoadOrStore(known, ed25519.Sign(r.key(), message))
	}
	return signature.([]byte)
}

// BundleRoot computes the root of the artifacts as they are; "" when they have
// none.
func (r *Run) BundleRoot() string {
	r.T.Helper()
	hashes, _ := parse(r.T, r.Read(bundle.OutputHashes)).Get("hashes")
	return bundle.Root(r.Read(bundle.TaskSpec), hashes, parse(r.T, r.Read(bundle.Status)).Value)
}

func parse(t testing.TB, raw []byte) canonjson.Object {
	t.Helper()
	value, err := canonjson.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	object, ok := value.Object()
	if !ok {
		t.Fatalf("not an object: %.100s", raw)
	}
	return object
}

// Snapshot describes every file, directory and link below a directory: type,
// mode, size, time of modification and content. Two equal ones mean that
// nothing changed.
func Snapshot(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		content := ""
		switch {
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = Hash(string(raw))
		case info.Mode()&os.ModeSymlink != 0:
			content, _ = os.Readlink(path)
		}
		b.WriteString(strings.Join([]string{rel, info.Mode().String(), info.ModTime().String(), content}, "\t") + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Census is a snapshot down to inodes, owners and change times, so that a write that
// was undone shows too. Mounted file systems count with their root.
func Census(t testing.TB, dir string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(Snapshot(t, dir))
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		fmt.Fprintln(&b, path, st.Ino, st.Nlink, st.Uid, st.Gid, st.Ctim)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Changes lists the lines in which two snapshots differ, quoted; it is empty
// when they do not.
func Changes(before, after string) string {
	var b strings.Builder
	missing := func(mark string, from, in string) {
		for line := range strings.Lines(from) {
			if !strings.Contains("\n"+in, "\n"+line) {
				fmt.Fprintf(&b, "%s %q\n", mark, line)
			}
		}
	}
	missing("-", before, after)
	missing("+", after, before)
	return b.String()
}
