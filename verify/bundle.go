package verify

import (
	"crypto/sha256"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// Bundle is a verified bundle. Only verification constructs it, and it is immutable; the zero
// Bundle has no outputs.
type Bundle struct {
	runID       string
	root        string
	validatorID string
	completed   time.Time
	claims      claims
	project     *pathsafe.Dir
	at          location    // of the run directory
	dir         pathsafe.ID // of the same
	dirPerm     fs.FileMode // of that directory
	outputs     []output
	dirs        []directory
	sourceDirs  []directory // as their sources are, if dirs are signed
	artifacts   []*keptArtifact
	sources     *Sources // some of which are open

	changes      *bundle.Changes
	changesFault error
	blocks       signedBlocks
}

func (e *examination) bundle() (*Bundle, error) {
	completed, _ := completion(e.artifacts[bundle.Status].object)
	b := &Bundle{
		completed:   completed,
		claims:      e.claims(),
		runID:       e.run.id,
		root:        e.root,
		validatorID: e.key.validatorID,
		project:     e.run.project,
		at:          e.run.at,
		outputs:     e.outputs,
		dirs:        e.dirs,
		dirPerm:     e.dirPerm,
		artifacts:   e.kept,
		dir:         e.dir,
		sources:     e.watch.Sources,
	}
	if err := b.readChanges(e); err != nil {
		return nil, err
	}
	if e.blocks.err != nil {
		return nil, e.blocks.err
	}
	b.blocks = e.blocks
	if table := b.blocks.table; table != nil && b.blocks.fault == nil {
		b.signAttributes(table)
	}
	return b, nil
}

// RunID is the final component of the run directory's path.
func (b *Bundle) RunID() string { return b.runID }

// Root is the bundle root, 64 lower-case hex digits.
func (b *Bundle) Root() string { return b.root }

// ValidatorID is the identity that signed the bundle, 64 lower-case hex digits.
func (b *Bundle) ValidatorID() string { return b.validatorID }

// Completed returns the completed_at of STATUS.json, which is signed; the zero time if it has
// none.
func (b *Bundle) Completed() time.Time { return b.completed }

// Len is the number of outputs.
func (b *Bundle) Len() int { return len(b.outputs) }

// Outputs yields the outputs in ascending order of the path's bytes.
func (b *Bundle) Outputs() iter.Seq[Output] {
	return func(yield func(Output) bool) {
		for i := range b.outputs {
			if !yield(Output{b, &b.outputs[i]}) {
				return
			}
		}
	}
}

// Output is one output of a verified bundle. Its properties were true of the source at the
// moment at which its bytes were hashed; permission bits and time are those of the block table,
// if the bundle has one.
type Output struct {
	bundle *Bundle
	output *output
}

// Path returns the path beneath the project root.
func (o Output) Path() pathsafe.Path { return o.output.path }

// Size is the number of bytes that were hashed.
func (o Output) Size() int64 { return o.output.table.Size() }

// Hash is the digest as it was signed: "sha256:" and 64 lower-case hex digits.
func (o Output) Hash() string { return digestText(&o.output.table) }

// Digest is the SHA-256 that was signed.
func (o Output) Digest() [sha256.Size]byte { return o.output.table.Digest() }

// Perm is the signed permission bits, or those of the source, without set-id and sticky bits.
func (o Output) Perm() fs.FileMode { return o.output.perm.Perm() }

// SourcePerm returns the permission bits of the source, which decide who may read what is derived
// from it.
func (o Output) SourcePerm() fs.FileMode { return o.output.source.Perm() }

// IDBits is the set-user-ID and set-group-ID bits of the source, which no restore sets.
func (o Output) IDBits() fs.FileMode { return o.output.perm & (fs.ModeSetuid | fs.ModeSetgid) }

// ModTime is the signed time of last modification, or that of the source.
func (o Output) ModTime() time.Time { return time.Unix(o.output.sec, int64(o.output.nsec)) }

// Lstat looks at the source as it is now, through no symbolic link; the error
// is one of package pathsafe's.
func (o Output) Lstat() (pathsafe.Stat, error) {
	return o.bundle.project.StatPath(o.output.path, pathsafe.NoLinks)
}

// LstatNear is Lstat by an opener, for outputs in their order.
func (o Output) LstatNear(near *pathsafe.Opener) (pathsafe.Stat, error) {
	return near.StatPath(o.bundle.project, o.output.path, pathsafe.NoLinks)
}

// OpenNear is OpenSource by an opener, for outputs in their order. A source that [Watch].Sources
// has kept open is not opened again if it is still the file at its name.
func (o Output) OpenNear(near *pathsafe.Opener) (*pathsafe.File, error) {
	if f := o.bundle.sources.take(o, near); f != nil {
		return f, nil
	}
	f, _, err := near.OpenRegular(o.bundle.project, o.output.path, pathsafe.NoLinks)
	return f, err
}

// OpenSource opens the source as it is now, through no symbolic link. Its bytes
// are not checked: compare a copy with [Output.Check].
func (o Output) OpenSource() (*os.File, error) {
	f, _, err := o.bundle.project.OpenRegular(o.output.path, pathsafe.NoLinks)
	return f, err
}

// Check returns a reader of content, every byte of which is checked against
// the signed hash. It is for the source, or for any copy of it.
func (o Output) Check(content io.ReaderAt) *blockhash.Reader {
	return blockhash.NewReader(content, &o.output.table)
}

// Open opens the source for checked reading, through no symbolic link. Blocks
// of which only a part is wanted are kept in the cache; it may be nil.
func (o Output) Open(cache *blockhash.Cache) (*Source, error) {
	f, err := o.OpenSource()
	if err != nil {
		return nil, err
	}
	return &Source{o.Check(f).Cached(cache), f}, nil
}

// Source reads an output from its source. Every byte is checked before it is returned; a block that
// does not match is a [*blockhash.MismatchError].
type Source struct {
	checked *blockhash.Reader
	file    *os.File
}

// ReadAt fills p with checked bytes from off; see [blockhash.Reader.ReadAt].
func (s *Source) ReadAt(p []byte, off int64) (int, error) { return s.checked.ReadAt(p, off) }

// Close closes the source.
func (s *Source) Close() error { return s.file.Close() }
