package bundle

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/canonjson"
	"github.com/spectrumfs/spectrum/verify/ignore"
)

// Semver is the validator version that Seal writes (SPECTRUM-02, section 2.2).
const Semver = "1.1.0"

// SealOptions are the options of [Seal]. Project, RunDir, Outputs, Key and BuildID are
// required.
type SealOptions struct {
	Project *pathsafe.Dir // the project root
	RunDir  string        // the run directory to make; it must not exist, or be empty
	// Another returns another RunDir if another process has created it in the meantime; if Another
	// is nil, that is an error.
	Another func() string
	In      *pathsafe.Dir // the directory to which RunDir is relative, or nil
	Outputs []string      // files or directories, as slash-separated paths below the project root, or [Whole]
	Inputs  []string      // references for TASK_SPEC.json
	Key     Key
	BuildID string // validator_build_id, "git:…" or "file:…"

	Constraints map[string]any // of TASK_SPEC.json; nil is {}; it has no member [ChangesMember] or [BlocksMember]

	// Blocks requests a signed block table of the outputs, [BlocksFile]. It has 32 bytes for each
	// 256 KiB, and is omitted if it would exceed the maximum size.
	Blocks bool

	// Base, unless nil, is the state that the project started from: the bundle is then a change
	// set, and Outputs are compared. New and changed files are outputs, files only in the base are
	// removed. BaseList is the same for a base whose files the caller knows; an empty one is an
	// empty base.
	Base     *pathsafe.Dir
	BaseList *BaseList

	// Layer, unless nil, makes Project the upper layer of an overlay, and replaces a base.
	// Outputs is then [Whole].
	Layer *Layer

	// An entry of a directory is left out if it matches a pattern of Exclude or of a file
	// named [ignore.File], or is one of Private, which are paths below the project root. Paths
	// in Outputs are never left out. With SkipSpecial, entries that are not regular files are
	// left out; without it they are a [*SpecialError].
	Exclude     []string
	Private     []string
	SkipSpecial bool
	// Leave, unless nil, returns the caller's own reason to leave out an entry of a directory,
	// of the project and of a base, and "" for none. It is called before the patterns are
	// matched.
	Leave   func(path string, mode fs.FileMode) Why
	LeftOut func([]LeftOut) // called with what was excluded, before anything is hashed; may be nil

	// Restricted reports whether a file may hold a secret, or has a scope that a preview proposes
	// only on request: a change set that only removes does not carry it. It may be nil.
	Restricted func(path string) bool

	Now time.Time // creation time; the zero time is now
	// Listed is called with the number of files to be hashed, and their bytes, before hashing;
	// Hashed with the number of further bytes read, concurrently. Both may be nil.
	Listed func(files int, bytes int64)
	Hashed func(bytes int64)

	links pathsafe.Links // which links on the way to an output, and at its name, are followed

	whiteouts  map[string]bool // of a layer, by path
	lowerRules *ignore.Rules   // of the layer beneath it
}

// Sealed is the result of [Seal].
type Sealed struct {
	BundleRoot  string // 64 lower-case hex digits
	ValidatorID string
	Files       int
	Bytes       int64
	Counts      Counts // of a change set
}

// Seal makes a signed bundle. On an error it leaves no run directory, nor a part of one or of its
// new parents; an empty one that existed is kept.
func Seal(ctx context.Context, opts SealOptions) (Sealed, error) {
	if err := opts.complete(); err != nil {
		return Sealed{}, err
	}
	target, err := opts.place(opts.RunDir)
	if err != nil {
		return Sealed{}, err
	}
	if opts.Layer != nil {
		if opts, err = opts.withBase(ctx); err != nil {
			return Sealed{}, err
		}
	}
	s := statement{
		inputs: opts.Inputs, expected: opts.Outputs, constraints: opts.Constraints,
		key: opts.Key, buildID: opts.BuildID, now: opts.Now,
	}
	var extra []file
	var counts Counts
	if opts.Base == nil && opts.BaseList == nil {
		s.outputs, err = collectWhole(ctx, opts)
	} else {
		extra, counts, err = s.addChanges(ctx, opts)
	}
	if err != nil {
		return Sealed{}, err
	}
	if opts.Blocks {
		if s.blocks, err = tableOf(opts.Project, opts.links, s.outputs); err != nil {
			return Sealed{}, err
		}
	}
	sealed, err := s.seal(ctx, target, extra)
	for n := 0; n < maxNames && opts.another(err); n++ {
		if target, err = opts.place(opts.Another()); err != nil {
			return Sealed{}, err
		}
		sealed, err = s.seal(ctx, target, extra)
	}
	if err == nil {
		sealed.Counts = counts
	}
	return sealed, err
}

// collectWhole finds and hashes the outputs.
func collectWhole(ctx context.Context, opts SealOptions) ([]output, error) {
	outputs, err := collect(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := checkRoom(outputs); err != nil {
		return nil, err
	}
	if err := checkHoles(ctx, opts.Project, outputs); err != nil {
		return nil, err
	}
	return outputs, hashAll(ctx, opts, outputs)
}

// addChanges makes the statement that of a change set, and returns its further file.
func (s *statement) addChanges(ctx context.Context, opts SealOptions) ([]file, Counts, error) {
	outputs, changes, counts, err := collectChanges(ctx, opts)
	if err != nil {
		return nil, Counts{}, err
	}
	constraints := map[string]any{ChangesMember: changes.Claim()}
	maps.Copy(constraints, opts.Constraints)
	s.outputs, s.constraints = outputs, constraints
	return []file{{name: ChangesFile, raw: changes.Bytes()}}, counts, nil
}

// place returns the run directory, or another one if that exists.
func (o SealOptions) place(path string) (runDir, error) {
	target, err := findRunDir(o.In, path)
	for n := 0; n < maxNames && o.another(err); n++ {
		target, err = findRunDir(o.In, o.Another())
	}
	return target, err
}

// another reports whether to try another run directory after an error.
func (o SealOptions) another(err error) bool { return o.Another != nil && errors.Is(err, fs.ErrExist) }

// maxNames limits the calls of [SealOptions.Another].
const maxNames = 100

// statement is the content of the artifacts of a bundle.
type statement struct {
	runID       string
	inputs      []string
	expected    []string
	constraints map[string]any
	outputs     []output          // in ascending order
	blocks      *blocktable.Table // of them; nil for none
	key         Key
	buildID     string
	now         time.Time // the zero time is now
}

// seal writes the artifacts and extra files.
func (s statement) seal(ctx context.Context, target runDir, extra []file) (Sealed, error) {
	s.runID = target.name
	files, sealed, err := s.artifacts()
	if err != nil {
		return Sealed{}, err
	}
	if err := ctx.Err(); err != nil {
		return Sealed{}, err
	}
	if s.blocks != nil {
		files = append(files, file{name: BlocksFile, raw: s.blocks.Bytes()})
	}
	if err := target.publish(append(files, extra...)); err != nil {
		return Sealed{}, err
	}
	return sealed, nil
}

// complete returns an error for a missing required option. Outputs are checked one by one
// later.
func (o SealOptions) complete() error {
	if o.Project == nil {
		return errors.New("sealing: no project root")
	}
	if o.Layer != nil {
		if err := o.Layer.isOfUpper(o.Project, os.Geteuid()); err != nil {
			return err
		}
	}
	return checkRequired(o.RunDir, o.Key, o.BuildID)
}

func checkRequired(runDir string, key Key, buildID string) error {
	switch {
	case runDir == "":
		return errors.New("sealing: no run directory")
	case key.private == nil:
		return fmt.Errorf("sealing: %w", errNoKey)
	case buildID == "":
		return errors.New("sealing: no validator build id")
	}
	return nil
}

// SizeError is an artifact that would be larger than any that is read.
type SizeError struct {
	Artifact string
	Limit    int64 // in bytes
}

func (e *SizeError) Error() string {
	return fmt.Sprintf("%s would have more than the limit of %d bytes", e.Artifact, e.Limit)
}

// checkRoom rejects more outputs than OUTPUT_HASHES.json can hold, before hashing, which may take
// hours.
func checkRoom(outputs []output) error {
	const hash = `:"` + HashPrefix + `",`
	var entry []byte
	var size int64
	for _, o := range outputs {
		entry = canonjson.AppendText(entry[:0], o.path.String())
		size += int64(len(entry) + len(hash) + 2*sha256.Size)
	}
	return checkSize(OutputHashes, size)
}

// checkHoles rejects outputs that are mostly holes, whose hashing would take hours too.
func checkHoles(ctx context.Context, project *pathsafe.Dir, outputs []output) error {
	return CheckHoles(ctx, func(yield func(Suspect) bool) {
		for _, o := range outputs {
			open := func() (*os.File, pathsafe.Stat, error) { return project.OpenRegular(o.path, pathsafe.NoLinks) }
			if o.holes > 0 && !yield(Suspect{o.path.String(), o.holes, HolesIn(open)}) {
				return
			}
		}
	}, ErrHoles)
}

func checkSize(name string, size int64) error {
	if limit := MaxSize(name); size > limit {
		return &SizeError{name, limit}
	}
	return nil
}

// hashAll fills in the digest, the size and the chaining values of every output.
func hashAll(ctx context.Context, opts SealOptions, outputs []output) error {
	if opts.Listed != nil {
		opts.Listed(len(outputs), totalBytes(outputs))
	}
	newHasher := blockhash.NewHasher
	if opts.Blocks {
		newHasher = func() *blockhash.Hasher { return blockhash.NewHasher().Every(blocktable.DefaultBlock) }
	}
	return inorder.Each(ctx, 0, len(outputs), newHasher, func(h *blockhash.Hasher, i int) error {
		return outputs[i].hash(ctx, opts, h)
	})
}

// hash reads the output once, and tries to read one byte more than its size. A file whose size
// changes while it is read is rejected, and so is one with more bytes than its size: the
// sealed content would not be that of the file.
func (o *output) hash(ctx context.Context, opts SealOptions, h *blockhash.Hasher) error {
	f, st, err := opts.Project.OpenRegular(o.path, opts.links)
	if err != nil {
		return fmt.Errorf("output %q: %w", o.path, err)
	}
	defer f.Close()
	table, err := h.Sum(ctx, blockhash.Watched(f, opts.Hashed), st.Size+1)
	if err != nil {
		return fmt.Errorf("output %q: %w", o.path, err)
	}
	if info, err := f.Stat(); err != nil || info.Size() != st.Size || table.Size() != st.Size {
		return fmt.Errorf("output %q changed while it was read", o.path)
	}
	o.size, o.digest, o.values = table.Size(), table.Digest(), slices.Clone(h.Values())
	o.perm, o.sec, o.nsec = st.Mode.Perm(), st.ModTime.Unix(), int32(st.ModTime.Nanosecond())
	return nil
}

// artifacts makes the seven files of a run directory, in the law's order.
func (s statement) artifacts() ([]file, Sealed, error) {
	now := s.now
	if now.IsZero() {
		now = time.Now()
	}
	created := now.UTC().Format(time.RFC3339Nano)
	w := artifactWriter{}
	proof := w.make(Proof, withProofHash(map[string]any{"restoration_result": map[string]any{"verified": true}}))
	taskSpec := w.add(TaskSpec, s.taskSpec(created, proof))
	status := w.add(Status, map[string]any{"status": "success", "cmp01": "pass", "completed_at": created, "error": nil})
	hashes := w.add(OutputHashes, s.outputHashes(created))
	w.files = append(w.files, proof)
	public := s.key.public()
	id := ValidatorID(public)
	w.add(Identity, map[string]string{"algorithm": Algorithm, "public_key": hex.EncodeToString(public), "validator_id": id})
	if w.err != nil {
		return nil, Sealed{}, w.err
	}
	root := Root(taskSpec.raw, member(hashes, "hashes"), status.object.Value)
	payload := w.add(SignedPayload, map[string]string{"bundle_root": root, "decision": Accept, "validator_id": id})
	signature := ed25519.Sign(s.key.private, Message(payload.object.Value))
	w.add(Signature, map[string]string{"payload_type": PayloadType, "signature": hex.EncodeToString(signature), "validator_id": id, "signed_at": created})
	return w.files, Sealed{BundleRoot: root, ValidatorID: id, Files: len(s.outputs), Bytes: totalBytes(s.outputs)}, w.err
}

func (s statement) taskSpec(created string, proof file) map[string]any {
	constraints := map[string]any{}
	if s.blocks != nil {
		claim := BlocksClaim{s.blocks.Block(), s.blocks.Sum(), sha256.Sum256(proof.raw)}
		constraints[BlocksMember] = claim.member()
	}
	maps.Copy(constraints, s.constraints)
	return map[string]any{
		"task_id":          s.runID,
		"inputs":           orEmpty(s.inputs),
		"expected_outputs": s.expected,
		"constraints":      constraints,
		"created_at":       created,
	}
}

func (s statement) outputHashes(created string) map[string]any {
	hashes := make(map[string]string, len(s.outputs))
	for _, o := range s.outputs {
		hashes[o.path.String()] = HashPrefix + hex.EncodeToString(o.digest[:])
	}
	return map[string]any{
		"validator_semver":   Semver,
		"validator_build_id": s.buildID,
		"generated_at":       created,
		"hashes":             hashes,
	}
}

func withProofHash(proof map[string]any) map[string]any {
	raw, err := canonjson.Marshal(proof)
	if err != nil {
		return proof
	}
	value, _ := canonjson.Parse(raw)
	object, _ := value.Object()
	proof["proof_hash"] = ProofHash(object)
	return proof
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func totalBytes(outputs []output) int64 {
	var n int64
	for _, o := range outputs {
		n += o.size
	}
	return n
}

func member(f file, name string) canonjson.Value {
	v, _ := f.object.Get(name)
	return v
}

// file is one artifact: its bytes and its value.
type file struct {
	name   string
	raw    []byte
	object canonjson.Object
}

// artifactWriter collects artifacts and the first error.
type artifactWriter struct {
	files []file
	err   error
}

// add is make for the next artifact of the run directory.
func (w *artifactWriter) add(name string, v any) file {
	f := w.make(name, v)
	w.files = append(w.files, f)
	return f
}

// make writes v as canonical JSON, and returns it as read back.
func (w *artifactWriter) make(name string, v any) file {
	raw, err := canonjson.Marshal(v)
	if err != nil {
		w.fail(name, err)
		return file{}
	}
	if err := checkSize(name, int64(len(raw))); err != nil {
		w.err = errors.Join(w.err, err)
		return file{}
	}
	value, err := canonjson.Parse(raw)
	if err != nil {
		w.fail(name, err)
	}
	object, ok := value.Object()
	if !ok {
		w.fail(name, errors.New("not an object"))
	}
	return file{name, raw, object}
}

func (w *artifactWriter) fail(name string, err error) {
	if w.err == nil {
		w.err = fmt.Errorf("%s: %w", name, err)
	}
}
