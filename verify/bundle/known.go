package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Known is an output whose size and SHA-256 are known already.
type Known struct {
	Path   pathsafe.Path
	Bytes  int64
	Digest [sha256.Size]byte
}

// KnownOptions are the options of [SealKnown]. RunDir, Outputs, Key and BuildID are required.
type KnownOptions struct {
	RunDir      string            // the run directory to make; it must not exist, or be empty
	In          *pathsafe.Dir     // the directory to which RunDir is relative, or nil
	Outputs     []Known           // in any order, no path twice
	Inputs      []string          // references for TASK_SPEC.json
	Constraints map[string]any    // of TASK_SPEC.json; nil is {}
	Blocks      *blocktable.Table // of exactly these outputs; nil for none
	Key         Key
	BuildID     string // validator_build_id, "git:…" or "file:…"
	Now         time.Time

	// Extra are further files of the run directory, by name. They are not signed, unless the caller
	// puts their hashes into Constraints.
	Extra map[string][]byte
}

// SealKnown is [Seal] over outputs that it does not read: the caller vouches for them. The
// expected_outputs of its TASK_SPEC.json are the paths or, if these are too long for that file
// ([MaxSize]), their first components.
func SealKnown(ctx context.Context, opts KnownOptions) (Sealed, error) {
	if err := checkRequired(opts.RunDir, opts.Key, opts.BuildID); err != nil {
		return Sealed{}, err
	}
	extra, err := extraFiles(opts.Extra)
	if err != nil {
		return Sealed{}, err
	}
	outputs, err := knownOutputs(opts.Outputs)
	if err != nil {
		return Sealed{}, err
	}
	target, err := findRunDir(opts.In, opts.RunDir)
	if err != nil {
		return Sealed{}, err
	}
	return statement{
		inputs: opts.Inputs, expected: expectedOf(outputs), constraints: opts.Constraints, outputs: outputs,
		blocks: opts.Blocks, key: opts.Key, buildID: opts.BuildID, now: opts.Now,
	}.seal(ctx, target, extra)
}

// knownOutputs sorts outputs. It accepts a [Reserved] name, which a restore may have created.
func knownOutputs(known []Known) ([]output, error) {
	if len(known) == 0 {
		return nil, errors.New("no file to seal")
	}
	outputs := make([]output, 0, len(known))
	for _, k := range known {
		o, err := namedOutput(k.Path)
		if err != nil {
			return nil, err
		}
		if k.Bytes < 0 {
			return nil, fmt.Errorf("output %q: a size of %d bytes", k.Path, k.Bytes)
		}
		o.size, o.digest = k.Bytes, k.Digest
		outputs = append(outputs, o)
	}
	slices.SortFunc(outputs, func(a, b output) int { return strings.Compare(a.path.String(), b.path.String()) })
	for i := range outputs[1:] {
		if outputs[i].path == outputs[i+1].path {
			return nil, fmt.Errorf("output %q is named twice", outputs[i].path)
		}
	}
	return outputs, checkRoom(outputs)
}

// expectedOf returns the paths, or their first components if the paths would take more than half of
// the maximum size of TASK_SPEC.json.
func expectedOf(outputs []output) []string {
	paths := make([]string, 0, len(outputs))
	var entry []byte
	var size int64
	for _, o := range outputs {
		entry = canonjson.AppendText(entry[:0], o.path.String())
		size += int64(len(entry) + len(","))
		paths = append(paths, o.path.String())
	}
	if size <= MaxSize(TaskSpec)/2 {
		return paths
	}
	for i := range paths {
		paths[i], _, _ = strings.Cut(paths[i], "/")
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// extraFiles returns the files besides the artifacts, in the order of their names.
func extraFiles(extra map[string][]byte) ([]file, error) {
	files := make([]file, 0, len(extra))
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		if err := checkExtra(name); err != nil {
			return nil, fmt.Errorf("file %q of the run directory: %w", name, err)
		}
		files = append(files, file{name: name, raw: extra[name]})
	}
	return files, nil
}

// notExtra are the names that a further file of a run directory must not have: those of the
// artifacts, those that could be confused with one, and those that the law forbids (SPECTRUM-05
// phase 8).
var notExtra = []string{
	TaskSpec, Status, OutputHashes, Proof,
	"VALIDATOR_IDENTITY*.json", "SIGNED_PAYLOAD*.json", "SIGNATURE*.json",
	"logs", "tmp", "transcript.json",
}

func checkExtra(name string) error {
	p, err := pathsafe.Parse(name)
	switch {
	case err != nil:
		return err
	case len(p.Components()) > 1 || len(name) > pathsafe.MaxName:
		return errors.New("not a plain name")
	case strings.HasPrefix(name, "."):
		return errors.New("hidden names are not allowed")
	}
	for _, pattern := range notExtra {
		if match, err := path.Match(pattern, name); match || err != nil {
			return errors.Join(errors.New("this name is reserved"), err)
		}
	}
	return nil
}
