package verify

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/spectrumfs/spectrum/internal/inorder"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Watch is told how far hashing has got, and says what the outputs are wanted
// for. It has no say in the verdict. The zero Watch is told nothing.
type Watch struct {
	// Hashed is called with the number of bytes that were read more, by one
	// goroutine at a time.
	Hashed func(bytes int64)

	// Reread is for a bundle that will be read through [Output.Open] and
	// [Artifact.Open], as a view reads it: each block of an output is tagged
	// while it is hashed (see package blockhash), which makes later checks many
	// times faster and hashing a little slower, and the artifacts are remembered.
	Reread bool
}

func (w Watch) newHasher() *blockhash.Hasher {
	if w.Reread {
		return blockhash.NewTagger()
	}
	return blockhash.NewHasher()
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

// watched is a source that tells how much of it was read.
type watched struct {
	io.ReaderAt
	watch Watch
}

func (w watched) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(p, off)
	if w.watch.Hashed != nil {
		w.watch.Hashed(int64(n))
	}
	return n, err
}

// output is one entry of "hashes" and, once it has been read, what was found.
type output struct {
	name     string        // the key as signed
	path     pathsafe.Path // zero when the key is ill formed
	formErr  error
	declared string // the value as signed

	table blockhash.Table
	perm  fs.FileMode
	nsec  int32 // with sec, the time of last modification: a time.Time takes more room
	sec   int64
}

// declaredOutputs lists "hashes" in ascending order of the path's bytes
// (decision D18), which is the order of its members.
func declaredOutputs(hashes canonjson.Object) ([]output, error) {
	outputs := make([]output, 0, hashes.Len())
	for name, value := range hashes.Members() {
		declared, ok := value.Text()
		if !ok {
			reject := rejectField(ArtifactMalformed, bundle.OutputHashes, "hashes", "the hash of %q is not a string", name)
			reject.Details["path"] = name
			return nil, reject
		}
		path, err := pathsafe.Parse(name)
		outputs = append(outputs, output{name: name, path: path, formErr: err, declared: declared})
	}
	return outputs, nil
}

// outputPolicy is what differs between the laws that read outputs.
type outputPolicy struct {
	// skipIllFormed leaves ill-formed paths to the restore (decision D3).
	skipIllFormed bool
	watch         Watch
}

// hashOutputs reads every output on all cores and compares it with the signed
// hash. The error is the one of the first output in order that failed.
func hashOutputs(ctx context.Context, project *pathsafe.Dir, outputs []output, policy outputPolicy) error {
	policy.watch = policy.watch.oneAtATime()
	return inorder.Each(ctx, 0, len(outputs), policy.watch.newHasher, func(h *blockhash.Hasher, i int) error {
		o := &outputs[i]
		if o.formErr != nil && policy.skipIllFormed {
			return nil
		}
		return o.hash(ctx, project, h, policy.watch)
	})
}

// hash reads one output and gives the verdict on it. A link that stays beneath
// the project root is followed (decision D4).
func (o *output) hash(ctx context.Context, project *pathsafe.Dir, h *blockhash.Hasher, watch Watch) error {
	if o.formErr != nil {
		return o.missing(o.formErr)
	}
	f, st, err := project.OpenRegular(o.path, pathsafe.LinksBeneath)
	if err != nil {
		return o.missing(err)
	}
	defer f.Close()
	table, err := h.Sum(ctx, watched{f, watch}, readLimit(st.Size))
	if err != nil {
		return o.missing(err)
	}
	if actual := digestText(&table); actual != o.declared {
		return o.mismatch(actual)
	}
	o.table, o.perm, o.declared = table, st.Mode.Perm(), "" // the table's digest says it now
	o.sec, o.nsec = st.ModTime.Unix(), int32(st.ModTime.Nanosecond())
	return nil
}

// readLimit bounds how much of a file is read: what it had when it was opened,
// so that one that grows comes to an end. Some file systems say 0 for files
// that they make up; of such a file a little is read.
func readLimit(size int64) int64 {
	if size == 0 {
		return 1 << 20
	}
	return size
}

func digestText(t *blockhash.Table) string {
	digest := t.Digest()
	return bundle.HashPrefix + hex.EncodeToString(digest[:])
}

func (o *output) missing(err error) error {
	if machineFault(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("output %q: %w", o.name, err)
	}
	return &Reject{
		Code:    OutputMissing,
		Message: fmt.Sprintf("output %q %s", o.name, missingReason(err)),
		Details: map[string]string{"path": o.name},
	}
}

// missingReason says in words why there is no such output.
func missingReason(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "is missing beneath the project root"
	}
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return "cannot be read: " + err.Error()
}

func (o *output) mismatch(actual string) error {
	message := fmt.Sprintf("output %q is not the file that was signed", o.name)
	if !wellFormedHash(o.declared) {
		message = fmt.Sprintf("output %q: the signed hash is not \"sha256:\" and 64 lower-case hex digits", o.name)
	}
	return &Reject{
		Code:    HashMismatch,
		Message: message,
		Details: map[string]string{"path": o.name, "expected": o.declared, "actual": actual},
	}
}

func wellFormedHash(s string) bool {
	digits, ok := strings.CutPrefix(s, bundle.HashPrefix)
	return ok && isHex(digits, 64)
}
