package verify

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"sync/atomic"
	"time"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/canonjson"
)

// Attested is a bundle whose signature and artifacts were verified, without reading an output:
// phases 1 to 8 and 10 of SPECTRUM-05. Its outputs are checked as they are read
// ([AttestedOutput.Check], [AttestedOutput.Whole]). It is for a view. Nothing can be approved or
// restored from it: that requires a [Bundle], for which everything is read. Only [Attest] and
// [AttestChain] construct one; the run needs no project root if the contents are elsewhere. The
// zero Attested has no outputs.
type Attested struct {
	signed  *Bundle // without outputs
	entries []declaration
	blocks  signedBlocks
	holes   atomic.Int64 // bytes of the outputs that were read as a whole, at most
}

// Attest is [Gate] without reading outputs: the returned Gated has an [Attested] instead of a
// [Bundle].
func Attest(ctx context.Context, run *Run, watch Watch) (*Gated, error) {
	return gate(ctx, examination{run: run, gate: true, attest: true, watch: watch})
}

// AttestChain is [Attest] for a chain.
func AttestChain(ctx context.Context, runs []*Run, watch Watch) (*GatedChain, error) {
	return gateChain(runs, func(run *Run) (*Gated, error) { return Attest(ctx, run, watch) })
}

// checkAttested replaces phase 9 if outputs are checked as they are read: a hash that no content
// can have is rejected, as it is when the output is read.
func (e *examination) checkAttested(ctx context.Context) (err error) {
	if err := checkDirectories(ctx, e.entries); err != nil {
		return err
	}
	for i := range e.entries {
		if d := &e.entries[i]; !wellFormedHash(d.text()) && (!e.gate || d.wellFormed()) {
			return d.mismatch("")
		}
	}
	if table, _ := e.blocks.usable(); table != nil {
		perm, err := grantedRoot(e.run.project)
		if IsMachineFault(err) {
			return err
		}
		e.dirs = directoriesIn(table, granted(perm, err))
		return nil
	}
	paths := make([]output, len(e.entries)) // of which directoriesOf needs no more than the path
	for i := range e.entries {
		if path, err := pathsafe.Parse(e.entries[i].name); err == nil {
			paths[i].path = path
		}
	}
	e.dirs, err = directoriesOf(ctx, e.run.project, paths)
	return err
}

func (e *examination) attested() (*Attested, error) {
	b, err := e.bundle()
	if err != nil {
		return nil, err
	}
	return &Attested{signed: b, entries: e.entries, blocks: e.blocks}, nil
}

// RunID is the final component of the run directory's path.
func (a *Attested) RunID() string { return a.bundle().RunID() }

// Root is the bundle root, 64 lower-case hex digits.
func (a *Attested) Root() string { return a.bundle().Root() }

// ValidatorID is the identity that signed the bundle, 64 lower-case hex digits.
func (a *Attested) ValidatorID() string { return a.bundle().ValidatorID() }

// Completed returns the completed_at of STATUS.json, which is signed; the zero time if it has none.
func (a *Attested) Completed() time.Time { return a.bundle().Completed() }

// TaskSpec is TASK_SPEC.json, which is signed.
func (a *Attested) TaskSpec() canonjson.Object { return a.bundle().TaskSpec() }

// TaskID returns the task_id of TASK_SPEC.json, which is signed, or "".
func (a *Attested) TaskID() string { return a.bundle().TaskID() }

// Changes returns the change set of the bundle, as [Bundle.Changes] does.
func (a *Attested) Changes() (*bundle.Changes, error) { return a.bundle().Changes() }

// Dirs yields the parent directories of the outputs, as [Bundle.Dirs] does. In a run without a
// project root every user may read them.
func (a *Attested) Dirs() iter.Seq2[string, fs.FileMode] { return a.bundle().Dirs() }

// Granted returns the permission bits that the run directory granted, as [Bundle.Granted] does.
func (a *Attested) Granted() fs.FileMode { return a.bundle().Granted() }

// Artifacts yields the seven artifacts, as [Bundle.Artifacts] does.
func (a *Attested) Artifacts() iter.Seq[Artifact] { return a.bundle().Artifacts() }

// ArtifactsIntact reports whether every artifact still is what was verified, as
// [Bundle.ArtifactsIntact] does.
func (a *Attested) ArtifactsIntact() error { return a.bundle().ArtifactsIntact() }

// bundle returns what was verified, without outputs.
func (a *Attested) bundle() *Bundle {
	if a.signed == nil {
		return &Bundle{}
	}
	return a.signed
}

// Blocks returns the signed block table, of which only the form was checked; nil without one. The
// error is the reason why it cannot be used.
func (a *Attested) Blocks() (*blocktable.Table, error) { return a.blocks.usable() }

// Len is the number of outputs.
func (a *Attested) Len() int { return len(a.entries) }

// Outputs yields the outputs in ascending order of the path's bytes.
func (a *Attested) Outputs() iter.Seq[AttestedOutput] {
	return func(yield func(AttestedOutput) bool) {
		for i := range a.entries {
			if !yield(AttestedOutput{a, i}) {
				return
			}
		}
	}
}

// Output returns output i in the order of [Attested.Outputs], from 0.
func (a *Attested) Output(i int) AttestedOutput { return AttestedOutput{a, i} }

// AttestedOutput is an output of an [Attested], with its signed properties. Its content is read
// from any source, such as a file of the project root, and checked against these.
type AttestedOutput struct {
	of *Attested
	i  int
}

// Number returns its index in the order of [Attested.Outputs].
func (o AttestedOutput) Number() int { return o.i }

// Path returns the path beneath the project root.
func (o AttestedOutput) Path() pathsafe.Path {
	path, _ := pathsafe.Parse(o.of.entries[o.i].name) // it was parsed before
	return path
}

// Name is its path as a text.
func (o AttestedOutput) Name() string { return o.of.entries[o.i].name }

// Hash is the digest as it was signed: "sha256:" and 64 lower-case hex digits.
func (o AttestedOutput) Hash() string { return o.of.entries[o.i].text() }

// Digest is the SHA-256 that was signed.
func (o AttestedOutput) Digest() [sha256.Size]byte { return o.of.entries[o.i].digest() }

// Attributes returns the attributes of the output in the block table, or false without a table.
func (o AttestedOutput) Attributes() (blocktable.Attributes, bool) {
	table, _ := o.of.Blocks()
	if table == nil {
		return blocktable.Attributes{}, false
	}
	return table.Attributes(o.i), true
}

// Check returns a reader of content that checks every block against the signed block table when it
// is read. Without a table it returns false: see [AttestedOutput.Whole].
func (o AttestedOutput) Check(content io.ReaderAt) (*blocktable.Reader, bool) {
	table, _ := o.of.Blocks()
	if table == nil {
		return nil, false
	}
	return table.NewReader(o.i, o.Digest(), content), true
}

// Whole reads all of content, which had size bytes when it was opened, and returns its block table,
// made in this process, if it has the signed SHA-256: this is the only way to read an output of a
// bundle without a signed table. It does not read the holes of a file of the project root, and
// returns a [*bundle.HolesError] if those of all outputs exceed [MaxHoles].
func (o AttestedOutput) Whole(ctx context.Context, content io.ReaderAt, size int64) (*blockhash.Table, error) {
	var holes int64
	if f, is := content.(*pathsafe.File); is {
		st, err := pathsafe.StatFile(f)
		if err != nil {
			return nil, err
		}
		if holes = max(0, min(st.Size-st.Allocated, MaxHoles+1)); holes > 0 && o.of.holes.Load()+holes > MaxHoles {
			holes = bundle.Holes(f, st.Size) // others may only look like holes
		}
		if o.of.holes.Add(holes) > MaxHoles && holes > 0 {
			o.of.holes.Add(-holes)
			return nil, &bundle.HolesError{Path: o.Name(), Size: st.Size, Err: ErrHoles}
		}
		content = newSparse(f, st)
	}
	table, err := Watch{Reread: true}.newHasher(nil).Sum(ctx, content, readLimit(size))
	if err != nil {
		o.of.holes.Add(-holes)
		return nil, err
	}
	if table.Digest() != o.Digest() {
		o.of.holes.Add(-holes)
		return nil, fmt.Errorf("its SHA-256 is %s, not the signed %s", digestText(&table), o.Hash())
	}
	return &table, nil
}

// Lstat looks at the source beneath the project root as it is now, through no symbolic link. A run
// without a project root has no sources: fs.ErrNotExist.
func (o AttestedOutput) Lstat() (pathsafe.Stat, error) {
	if o.of.signed.project == nil {
		return pathsafe.Stat{}, fs.ErrNotExist
	}
	return o.of.signed.project.StatPath(o.Path(), pathsafe.NoLinks)
}

// OpenSource opens that source, through no symbolic link. Its bytes are not checked.
func (o AttestedOutput) OpenSource() (*pathsafe.File, pathsafe.Stat, error) {
	if o.of.signed.project == nil {
		return nil, pathsafe.Stat{}, fs.ErrNotExist
	}
	return new(pathsafe.Opener).OpenRegular(o.of.signed.project, o.Path(), pathsafe.NoLinks)
}
