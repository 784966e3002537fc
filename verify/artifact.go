package verify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/spectrumfs/spectrum/internal/scarce"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// strictOrder is the order in which SPECTRUM-05 checks presence and form.
var strictOrder = []string{
	bundle.TaskSpec, bundle.Status, bundle.OutputHashes, bundle.Proof,
	bundle.Identity, bundle.SignedPayload, bundle.Signature,
}

// artifact is one artifact that was read: once, from one handle.
type artifact struct {
	raw    []byte // of TASK_SPEC.json in a strict examination: its bytes are signed
	object canonjson.Object
}

// present reports whether an artifact exists, whatever its type.
func (r *Run) present(name string) error {
	if err := r.enter(); err != nil {
		return err
	}
	_, err := r.dir.Lstat(name)
	return err
}

// presenceError is the message for an artifact that could not be found.
func presenceError(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "is missing"
	}
	return fmt.Sprintf("cannot be looked up: %v", err)
}

// read reads and parses an artifact. Any error but one of this machine's means
// that it is malformed.
func (r *Run) read(name string) (artifact, error) {
	raw, _, err := r.readRaw(name)
	if err != nil {
		return artifact{}, err
	}
	return parseArtifact(raw)
}

// parseArtifact parses raw and takes ownership of it: the parsed value is written into it.
func parseArtifact(raw []byte) (artifact, error) {
	value, err := canonjson.Consume(raw)
	if err != nil {
		return artifact{}, fmt.Errorf("is not strict JSON: %w", err)
	}
	object, ok := value.Object()
	if !ok {
		return artifact{}, errors.New("is not a JSON object")
	}
	return artifact{object: object}, nil
}

func (r *Run) readRaw(name string) ([]byte, pathsafe.Stat, error) {
	limit := bundle.MaxSize(name)
	f, st, err := r.dir.Open(name)
	if err != nil {
		return nil, st, err
	}
	defer f.Close()
	if st.Size > limit {
		return nil, st, fmt.Errorf("has %d bytes; at most %d are read", st.Size, limit)
	}
	raw := make([]byte, st.Size)
	n, err := io.ReadFull(f, raw)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return nil, st, err
	}
	return raw[:n], st, nil
}

// extraArtifact finds a second identity, payload or signature: the first in byte order, or "".
func (r *Run) extraArtifact() (string, error) {
	names, err := r.dir.Names()
	if err != nil {
		return "", fmt.Errorf("listing run directory %q: %w", r.at.path, err)
	}
	for _, name := range names {
		if isExtra(name) {
			return name, nil
		}
	}
	return "", nil
}

func isExtra(name string) bool {
	for _, exact := range []string{bundle.Identity, bundle.SignedPayload, bundle.Signature} {
		stem := strings.TrimSuffix(exact, ".json")
		if name != exact && strings.HasPrefix(name, stem) && strings.HasSuffix(name, ".json") {
			return true
		}
	}
	return false
}

// forbidden are the names that a run directory must not contain, in the law's order, as a file,
// directory or link (SPECTRUM-05 phase 8, SPECTRUM-03). The law writes the two directories with a
// slash, and so does a verdict.
var forbidden = []string{"logs/", "tmp/", "transcript.json"}

// forbiddenArtifact is the verdict of that check.
func (r *Run) forbiddenArtifact() error {
	for _, name := range forbidden {
		err := r.present(strings.TrimSuffix(name, "/"))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("run directory %q: %w", r.at.path, err)
		}
		return rejectArtifact(ForbiddenArtifact, name, "must not be in a run directory")
	}
	return nil
}

// IsMachineFault reports whether an error is a fault of this machine and not of the input:
// then there is no verdict.
func IsMachineFault(err error) bool {
	return scarce.Is(err) || errors.Is(err, pathsafe.ErrNoProc)
}
