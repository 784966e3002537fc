package verify

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/spectrumfs/spectrum/internal/hexdigits"
	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Watch has the callbacks for the progress of hashing, and the purpose of the outputs. It does
// not affect the verdict. The zero Watch reports nothing.
type Watch struct {
	// Listed is called before the outputs of a bundle are hashed, with their number
	// and their sizes together.
	Listed func(files int, bytes int64)

	// Hashed is called with the number of bytes that were read more, by one
	// goroutine at a time.
	Hashed func(bytes int64)

	// Reread is set for a bundle that will be read through [Output.Open] and [Artifact.Open],
	// as by a view: each block of an output is tagged while it is hashed (see package
	// blockhash), which makes later checks many times faster and hashing a little slower, and
	// the artifacts are recorded. Without processor instructions for that, no block is tagged.
	Reread bool

	// Sources keeps the sources of outputs open for [Output.OpenNear]; nil closes each of them
	// when it was hashed.
	Sources *Sources
}

// canTag reports whether tags are as strong as in theory: without instructions for them, their
// time depends on the key.
var canTag = blockhash.HasInstructions()

// newHasher returns a Hasher that also records the chaining values of a block table; nil for none.
func (w Watch) newHasher(table *blocktable.Table) *blockhash.Hasher {
	h := blockhash.NewHasher()
	if w.Reread && canTag {
		h = blockhash.NewTagger()
	}
	if table != nil {
		h.Every(table.Block())
	}
	return h
}

// oneAtATime keeps parallel readers from calling together.
func (w Watch) oneAtATime() Watch {
	if w.Hashed == nil {
		return w
	}
	var mu sync.Mutex
	tell := w.Hashed
	w.Hashed = func(bytes int64) {
		mu.Lock()
		defer mu.Unlock()
		tell(bytes)
	}
	return w
}

// list reports the number of outputs to be hashed, and their bytes as far as known.
func (w Watch) list(all []sizes) {
	if w.Listed == nil {
		return
	}
	var bytes int64
	for _, s := range all {
		bytes = addUp(bytes, s.bytes)
	}
	w.Listed(len(all), bytes)
}

// declaration is one entry of the signed "hashes". There may be millions, so it stores nothing that
// can be computed again.
type declaration struct {
	name string
	hash canonjson.Value // a string
}

func (d *declaration) wellFormed() bool {
	_, err := pathsafe.Parse(d.name)
	return err == nil
}

// output is a declared file that was read and matches the signed hash.
type output struct {
	path   pathsafe.Path
	table  blockhash.Table
	source fs.FileMode // permission bits of the source
	perm   fs.FileMode // the signed ones, or the same, with the set-id bits of the source
	nsec   int32       // with sec, the time of last modification: smaller than a time.Time
	sec    int64
}

// declarationsOf lists "hashes" in ascending order of the path's bytes, which is the order of
// its members.
func declarationsOf(hashes canonjson.Object) ([]declaration, error) {
	declared := make([]declaration, 0, hashes.Len())
	for name, value := range hashes.Members() {
		if !value.IsText() {
			reject := rejectField(ArtifactMalformed, bundle.OutputHashes, "hashes", "the hash of %q is not a string", name)
			reject.Details["path"] = name
			return nil, reject
		}
		declared = append(declared, declaration{name, value})
	}
	return declared, nil
}

// outputPolicy are the differences between the laws that read outputs.
type outputPolicy struct {
	// skipIllFormed leaves ill-formed paths to the restore.
	skipIllFormed bool
	watch         Watch
	blocks        *signedBlocks // that outputs are compared with; nil for none
}

// hashOutputs reads every declared output on all cores and compares it with the signed hash. It
// returns the error of the first failure in order. An output that the policy skips is the zero
// output.
func hashOutputs(ctx context.Context, project *pathsafe.Dir, declared []declaration, policy outputPolicy) ([]output, error) {
	policy.watch = policy.watch.oneAtATime()
	if policy.blocks == nil {
		policy.blocks = new(signedBlocks)
	}
	found := survey(ctx, project, declared)
	policy.watch.list(found)
	if err := checkHoles(ctx, project, declared, found); err != nil {
		return nil, err
	}
	outputs := make([]output, len(declared))
	if policy.watch.Sources != nil {
		project.ExpectKept(len(declared))
	}
	newReader := func() *outputReader { return &outputReader{hasher: policy.watch.newHasher(policy.blocks.table)} }
	err := inorder.Each(ctx, 0, len(declared), newReader, func(r *outputReader, i int) (err error) {
		d := &declared[i]
		if policy.skipIllFormed && !d.wellFormed() {
			return nil
		}
		if err = d.read(ctx, project, r, policy.watch, &outputs[i]); err == nil {
			policy.blocks.compare(i, d.name, outputs[i].table.Size(), r.hasher.Values())
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return outputs, nil
}

// An outputReader is a worker of hashOutputs.
type outputReader struct {
	hasher *blockhash.Hasher
	near   pathsafe.Opener
}

// Close closes the directory that is held.
func (r *outputReader) Close() { r.near.Close() }

// read reads one output into out and returns the verdict on it. A link that stays beneath
// the project root is followed, an absolute one too.
func (d *declaration) read(ctx context.Context, project *pathsafe.Dir, r *outputReader, watch Watch, out *output) error {
	path, err := pathsafe.Parse(d.name)
	if err != nil {
		return d.missing(err)
	}
	f, st, err := r.near.OpenRegular(project, path, pathsafe.LinksUnder)
	if err != nil {
		return d.missing(err)
	}
	stays := false
	defer func() {
		if !stays {
			_ = f.Close()
		}
	}()
	table, err := r.hasher.Sum(ctx, blockhash.Watched(newSparse(f, st), watch.Hashed), readLimit(st.Size))
	if err != nil {
		return d.missing(err)
	}
	if actual := digestText(&table); actual != d.text() {
		return d.mismatch(actual)
	}
	perm := st.Mode & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid)
	*out = output{path, table, perm, perm, int32(st.ModTime.Nanosecond()), st.ModTime.Unix()}
	stays = watch.Sources.keep(out, f, st)
	return nil
}

// text is the hash as it was signed.
func (d *declaration) text() string {
	text, _ := d.hash.Text()
	return text
}

// readLimit returns the maximum number of bytes to read of a file: its size when it was opened, so
// that reading a growing file ends, plus one byte, so that such a file does not match the signed
// hash. Some file systems report 0 for generated files; a small part of such a file is read.
func readLimit(size int64) int64 {
	if size == 0 {
		return 1 << 20
	}
	return size + 1
}

func digestText(t *blockhash.Table) string {
	digest := t.Digest()
	return bundle.HashPrefix + hex.EncodeToString(digest[:])
}

func (d *declaration) missing(err error) error {
	if IsMachineFault(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("output %q: %w", d.name, err)
	}
	return &Reject{
		Code:    OutputMissing,
		Message: fmt.Sprintf("output %q %s", d.name, missingReason(err)),
		Details: map[string]string{"path": d.name},
	}
}

// missingReason describes why an output does not exist.
func missingReason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "is missing beneath the project root"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return "cannot be read: " + err.Error()
}

func (d *declaration) mismatch(actual string) error {
	message := fmt.Sprintf("output %q is not the file that was signed", d.name)
	if !wellFormedHash(d.text()) {
		message = fmt.Sprintf("output %q: the signed hash is not \"sha256:\" and 64 lower-case hex digits", d.name)
	}
	return &Reject{
		Code:    HashMismatch,
		Message: message,
		Details: map[string]string{"path": d.name, "expected": d.text(), "actual": actual},
	}
}

func wellFormedHash(s string) bool {
	digits, ok := strings.CutPrefix(s, bundle.HashPrefix)
	return ok && hexdigits.Are(digits, 64)
}
