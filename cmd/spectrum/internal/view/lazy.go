package view

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/words"
	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/blocktable"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"github.com/spectrumfs/spectrum/verify/store"
)

// lazyCache bounds the checked blocks that a lazy view keeps for reads of a part of a block.
const lazyCache = 32 << 20

// Outputs are where the content of attested outputs comes from. Nothing of it is trusted. The
// methods are called by several goroutines at once.
type Outputs interface {
	// Facts are the attributes of an output as they are now, of which nothing is settled. It is
	// called for outputs without a signed block table.
	Facts(o verify.AttestedOutput) (fusefs.Facts, error)

	// Open opens an output, and returns its size too. A content that is a [blocktable.Source] is read as
	// one.
	Open(o verify.AttestedOutput) (fusefs.Content, int64, error)

	// Wrong returns the error of an output whose bytes do not fit the signed block table, as its readers
	// see it.
	Wrong(o verify.AttestedOutput, err error) error
}

// ProjectOutputs are the files beneath the project root.
type ProjectOutputs struct{}

// Facts looks at the file, through no link.
func (ProjectOutputs) Facts(o verify.AttestedOutput) (fusefs.Facts, error) {
	st, err := o.Lstat()
	if err == nil && !st.Mode.IsRegular() {
		err = errors.New("the source is not a regular file")
	}
	if err != nil {
		return fusefs.Facts{}, err
	}
	return fusefs.Facts{Size: st.Size, Mode: st.Mode.Perm(), ModTime: st.ModTime}, nil
}

// Open opens the file, through no link.
func (ProjectOutputs) Open(o verify.AttestedOutput) (fusefs.Content, int64, error) {
	f, st, err := o.OpenSource()
	if err != nil {
		return nil, 0, err
	}
	return f, st.Size, nil
}

// Wrong returns the error as it is.
func (ProjectOutputs) Wrong(_ verify.AttestedOutput, err error) error { return err }

// Lazy is what a view shows of a candidate whose outputs are checked as they are read: each block
// against the signed block table or, without a table, the whole output before its first opening.
type Lazy struct {
	scene *Scene
	runs  []*lazyRun
}

// NewLazy describes a candidate whose outputs come from somewhere.
func NewLazy(attested *restore.Attested, from Outputs) *Lazy {
	return newLazy(attested, from, blocktable.NewCache(lazyCache), blockhash.NewCache(blockCache))
}

// newLazy is NewLazy with the caches for checked blocks, with and without a block table.
func newLazy(attested *restore.Attested, from Outputs, cache *blocktable.Cache, whole *blockhash.Cache) *Lazy {
	l := &Lazy{scene: LazySceneOf(attested)}
	for run := range attested.Runs() {
		r := &lazyRun{run: run, from: from, shown: newShown(run.Bundle(), whole), cache: cache, files: make([]lazyFile, run.Bundle().Len())}
		if r.table, _ = run.Bundle().Blocks(); r.table != nil {
			r.checked = r.table.NewChecked()
		} else {
			r.wholes = make([]atomic.Pointer[wholeFile], len(r.files))
		}
		for i := range r.files {
			r.files[i] = lazyFile{r, i}
		}
		l.runs = append(l.runs, r)
	}
	return l
}

// Scene is what a view shows of it.
func (l *Lazy) Scene() *Scene { return l.scene }

// AttestedRecord is what status.json has of a lazy view.
type AttestedRecord struct {
	Checked int64  `json:"checked_bytes"`
	Bytes   *int64 `json:"bytes"` // nil: the sizes are not all signed
	State   string `json:"state"` // the same in words
}

func (l *Lazy) record() *AttestedRecord {
	if l == nil {
		return nil
	}
	checked, bytes := l.Checked()
	return &AttestedRecord{checked, bytes, l.State()}
}

// Checked returns how many bytes were checked so far, and of how many; nil if that is not signed.
func (l *Lazy) Checked() (checked int64, bytes *int64) {
	var all int64
	isSigned := true
	for _, r := range l.runs {
		checked += r.wholeBytes.Load()
		if r.table == nil {
			isSigned = false
			continue
		}
		checked += r.checked.Bytes()
		all += r.table.Size()
	}
	if !isSigned {
		return checked, nil
	}
	return checked, &all
}

// State is how far the candidate was checked, in words.
func (l *Lazy) State() string {
	checked, bytes := l.Checked()
	if bytes == nil {
		return fmt.Sprintf("attested, %s checked so far; not all sizes are signed", words.Count(checked, "byte"))
	}
	return fmt.Sprintf("attested, %s checked so far", words.Of(int(checked), int(*bytes), "byte"))
}

// lazyRun is one run of a Lazy.
type lazyRun struct {
	run   *restore.AttestedRun
	from  Outputs
	shown *shown
	files []lazyFile

	// With a block table.
	table   *blocktable.Table // nil for none
	checked *blocktable.Checked
	cache   *blocktable.Cache
	silence silence

	// Without one: what was made of each output before its first opening.
	wholes     []atomic.Pointer[wholeFile]
	wholeBytes atomic.Int64
}

// wholeFile is an output without a signed table that was hashed, and has the signed hash.
type wholeFile struct {
	table *blockhash.Table
	facts fusefs.Facts
}

// Files describes what a commit would write, as [Files] does; without result artifacts where the
// sizes of outputs are not signed.
func (l *Lazy) Files() iter.Seq[fusefs.File] {
	return func(yield func(fusefs.File) bool) {
		for _, r := range l.runs {
			var newest time.Time
			for o := range r.run.Bundle().Outputs() {
				file := r.file(o)
				if file.ModTime.After(newest) {
					newest = file.ModTime
				}
				if !yield(file) {
					return
				}
			}
			for _, artifact := range r.run.Artifacts() {
				if !yield(artifactFile(r.shown, artifact, newest)) {
					return
				}
			}
		}
	}
}

func (r *lazyRun) file(o verify.AttestedOutput) fusefs.File {
	path := o.Name()
	if r.table == nil {
		return fusefs.File{Path: r.run.Target(path), Source: (*unsizedFile)(&r.files[o.Number()])}
	}
	signed := r.table.Attributes(o.Number())
	return fusefs.File{
		Path: r.run.Target(path), Size: signed.Size, Mode: r.run.Perm(path, signed.Perm), ModTime: time.Unix(signed.Sec, int64(signed.Nsec)),
		Source: &r.files[o.Number()],
	}
}

// lazyFile reads an output whose blocks are checked against the signed table. One is kept for each
// file.
type lazyFile struct {
	run *lazyRun
	n   int
}

func (f *lazyFile) output() verify.AttestedOutput { return f.run.run.Bundle().Output(f.n) }

// Open opens the source for checked reading.
func (f *lazyFile) Open() (fusefs.Content, error) {
	o := f.output()
	content, _, err := f.run.from.Open(o)
	if err != nil {
		return nil, err
	}
	reader, _ := o.Check(content)
	reader = reader.Cached(f.run.cache, f.run.checked)
	checked := checkedContent{reader, content}
	if _, is := content.(blocktable.Source); is {
		return waitingContent{checked, reader, f}, nil
	}
	return checked, nil
}

// waitingContent is a checkedContent whose source may have to wait for its bytes.
type waitingContent struct {
	checkedContent
	reader *blocktable.Reader
	of     *lazyFile
}

var _ fusefs.Interruptible = waitingContent{}

func (c waitingContent) ReadAt(p []byte, off int64) (int, error) {
	return c.ReadContext(context.Background(), p, off)
}

func (c waitingContent) ReadContext(ctx context.Context, p []byte, off int64) (int, error) {
	output, end := c.of.n, off+int64(len(p))
	if err := c.of.run.silence.of(output, off, end); err != nil {
		return 0, err
	}
	n, err := c.reader.ReadContext(ctx, p, off)
	if store.IsSilent(err) {
		c.of.run.silence.note(output, off, end, err)
	}
	if _, is := errors.AsType[*blockhash.MismatchError](err); is {
		err = c.of.run.from.Wrong(c.of.output(), err)
	}
	return n, err
}

// XAttrs are those of a verified view.
func (f *lazyFile) XAttrs() []fusefs.XAttr {
	return f.run.shown.xattrs(strings.TrimPrefix(f.output().Hash(), bundle.HashPrefix))
}

// checkedContent reads through one content, and closes the other.
type checkedContent struct {
	checked interface {
		ReadAt(p []byte, off int64) (int, error)
		Size() int64
	}
	source fusefs.Content
}

func (c checkedContent) ReadAt(p []byte, off int64) (int, error) { return c.checked.ReadAt(p, off) }
func (c checkedContent) Size() int64                             { return c.checked.Size() }
func (c checkedContent) Close() error                            { return c.source.Close() }

// unsizedFile is a lazyFile of a run without a block table.
type unsizedFile lazyFile

var _ fusefs.Unsized = (*unsizedFile)(nil)

func (f *unsizedFile) whole() *atomic.Pointer[wholeFile] { return &f.run.wholes[f.n] }

// emptySum is the SHA-256 of no bytes.
var emptySum = sha256.Sum256(nil)

// Facts are those of the source until the output was hashed. Whether it is empty is signed, by its
// hash: a source that is empty and must not be, or the reverse, is an error at once.
func (f *unsizedFile) Facts() (fusefs.Facts, error) {
	if whole := f.whole().Load(); whole != nil {
		return whole.facts, nil
	}
	o := (*lazyFile)(f).output()
	facts, err := f.run.from.Facts(o)
	if err != nil {
		return fusefs.Facts{}, err
	}
	facts.Mode, facts.Settled = f.run.run.Perm(o.Name(), facts.Mode), false
	switch isEmpty := o.Digest() == emptySum; {
	case isEmpty && facts.Size > 0:
		return fusefs.Facts{}, fmt.Errorf("it has %s, and the signed file is empty", words.Count(facts.Size, "byte"))
	case !isEmpty && facts.Size == 0:
		return fusefs.Facts{}, errors.New("it is empty, and the signed file is not")
	case !isEmpty:
		return facts, nil
	}
	table, err := o.Whole(context.Background(), strings.NewReader(""), 0)
	if err != nil {
		return fusefs.Facts{}, err
	}
	return f.keep(table, facts), nil
}

// Settle hashes the output as a whole.
func (f *unsizedFile) Settle(ctx context.Context) error {
	facts, err := f.Facts()
	if err != nil || facts.Settled {
		return err
	}
	o := (*lazyFile)(f).output()
	content, size, err := f.run.from.Open(o)
	if err != nil {
		return err
	}
	table, err := o.Whole(ctx, content, size)
	if err != nil {
		return errors.Join(err, content.Close())
	}
	f.keep(table, facts)
	return content.Close()
}

// keep keeps the table of the output, and returns its facts from now on.
func (f *unsizedFile) keep(table *blockhash.Table, facts fusefs.Facts) fusefs.Facts {
	facts.Size, facts.Settled = table.Size(), true
	if f.whole().CompareAndSwap(nil, &wholeFile{table, facts}) {
		f.run.wholeBytes.Add(table.Size())
	}
	return f.whole().Load().facts
}

// Open opens the output for checked reading. It must have been settled.
func (f *unsizedFile) Open() (fusefs.Content, error) {
	whole := f.whole().Load()
	if whole == nil {
		return nil, errors.New("it was not hashed yet")
	}
	content, _, err := f.run.from.Open((*lazyFile)(f).output())
	if err != nil {
		return nil, err
	}
	return checkedContent{sized{blockhash.NewReader(content, whole.table).Cached(f.run.shown.cache), whole.table.Size()}, content}, nil
}

// UnsizedAttr is the extended attribute of a file whose size is that of its source, and not signed.
const UnsizedAttr = "user.spectrum.unsized"

// XAttrs are those of a verified view, and a mark as long as the output was not hashed.
func (f *unsizedFile) XAttrs() []fusefs.XAttr {
	attrs := (*lazyFile)(f).XAttrs()
	if f.whole().Load() == nil {
		attrs = append(attrs, fusefs.XAttr{Name: UnsizedAttr, Value: "its size is that of the source, and not signed"})
	}
	return attrs
}

// sized is a reader with its size.
type sized struct {
	*blockhash.Reader
	size int64
}

func (s sized) Size() int64 { return s.size }

// UnsizedFacts returns the attributes of a file that are not part of its description.
func UnsizedFacts(f fusefs.File) (facts fusefs.Facts, is bool, err error) {
	source, is := f.Source.(fusefs.Unsized)
	if is {
		facts, err = source.Facts()
	}
	return facts, is, err
}

// Settle has a file whose attributes are not part of its description checked as a whole, and fills
// them in. Others stay as they are.
func Settle(ctx context.Context, f *fusefs.File) error {
	source, is := f.Source.(fusefs.Unsized)
	if !is {
		return nil
	}
	if err := source.Settle(ctx); err != nil {
		return err
	}
	facts, err := source.Facts()
	f.Size, f.Mode, f.ModTime = facts.Size, facts.Mode, facts.ModTime
	return err
}
