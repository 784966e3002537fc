package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync/atomic"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
)

// Artifact is one of the seven artifacts of a verified bundle, as it was read when the bundle
// was verified. PROOF.json is one of them, although no signature covers it.
type Artifact struct {
	bundle *Bundle
	kept   *keptArtifact
}

// keptArtifact is the recorded state of an artifact's file.
type keptArtifact struct {
	name  string
	table blockhash.Table
	seen  atomic.Pointer[pathsafe.Stat] // with this identity it had the content that was read
	when  time.Time                     // of last modification, when it was read
	perm  fs.FileMode
}

// keep records an artifact that was read, and its directory, if the watch requires that.
func (e *examination) keep(name string, raw []byte, st pathsafe.Stat) error {
	if !e.watch.Reread {
		return nil
	}
	table, hashErr := blockhash.NewHasher().Sum(context.Background(), bytes.NewReader(raw), int64(len(raw)))
	dir, dirErr := e.run.dir.Stat()
	perm, permErr := e.run.dir.Granted()
	if err := errors.Join(hashErr, dirErr, permErr); err != nil {
		return fmt.Errorf("hashing %q: %w", name, err)
	}
	kept := &keptArtifact{name: name, table: table, when: st.ModTime, perm: st.Mode.Perm()}
	kept.seen.Store(&st)
	e.kept, e.dir, e.dirPerm = append(e.kept, kept), dir.ID, fs.FileMode(perm)
	return nil
}

// Name is the artifact's file name.
func (a Artifact) Name() string { return a.kept.name }

// Size is the number of bytes that were read.
func (a Artifact) Size() int64 { return a.kept.table.Size() }

// ModTime is when the file was last modified before it was read.
func (a Artifact) ModTime() time.Time { return a.kept.when }

// Perm is the permission bits of the file when it was read.
func (a Artifact) Perm() fs.FileMode { return a.kept.perm }

// Open opens the artifact's file for reading; it returns only the verified bytes.
func (a Artifact) Open() (*Source, error) {
	dir, err := a.bundle.openRunDir()
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, _, err := dir.Open(a.kept.name)
	if err != nil {
		return nil, err
	}
	return &Source{blockhash.NewReader(f, &a.kept.table), f}, nil
}

// openRunDir opens the run directory and checks that it is the one that was verified: keeping it
// open would cost a descriptor for each bundle. It opens nothing in another directory at that path,
// which might be in a view that this process itself serves.
func (b *Bundle) openRunDir() (*pathsafe.Dir, error) {
	dir, err := b.at.open()
	if err != nil {
		return nil, err
	}
	st, err := dir.Stat()
	if err == nil && (st.ID.Dev != b.dir.Dev || st.ID.Ino != b.dir.Ino) {
		err = fmt.Errorf("run directory %q was replaced", b.at.path)
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// Artifacts yields the seven artifacts in the order of SPECTRUM-05, or none unless [Watch.Reread]
// was set when the bundle was verified.
func (b *Bundle) Artifacts() iter.Seq[Artifact] {
	return func(yield func(Artifact) bool) {
		for _, kept := range b.artifacts {
			if !yield(Artifact{b, kept}) {
				return
			}
		}
	}
}

// ArtifactsIntact reports whether every artifact is still, byte for byte, the verified one in the
// same directory. A file with the same inode, size and times is not read again, so a change through
// a mapping that was written to before goes unnoticed. What [Artifact.Open] reads is checked
// nevertheless.
func (b *Bundle) ArtifactsIntact() error {
	if len(b.artifacts) == 0 {
		return nil
	}
	dir, err := b.openRunDir()
	if err != nil {
		return err
	}
	defer dir.Close()
	for _, kept := range b.artifacts {
		if err := kept.intact(dir); err != nil {
			return fmt.Errorf("artifact %q is not what was verified: %w", kept.name, err)
		}
	}
	return nil
}

func (kept *keptArtifact) intact(dir *pathsafe.Dir) error {
	f, st, err := dir.Open(kept.name)
	if err != nil {
		return err
	}
	defer f.Close()
	if untouched(*kept.seen.Load(), st) {
		return nil
	}
	if st.Size != kept.table.Size() {
		return fmt.Errorf("it has %d bytes, not %d", st.Size, kept.table.Size())
	}
	if err := blockhash.NewReader(f, &kept.table).Check(context.Background()); err != nil {
		return err
	}
	kept.seen.Store(&st)
	return nil
}

func untouched(a, b pathsafe.Stat) bool {
	return a.ID == b.ID && a.Size == b.Size && a.ModTime.Equal(b.ModTime) && a.ChangeTime.Equal(b.ChangeTime)
}
