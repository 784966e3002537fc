package main

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// viewCache bounds the checked blocks that a view keeps for small random reads.
// It is filled only by those.
const viewCache = 16 << 20

// viewTree describes a plan as a tree, with what is hidden beside it.
func viewTree(plan *restore.Plan, control []fusefs.File) (*fusefs.Tree, error) {
	return fusefs.NewTree(viewFiles(plan), slices.Values(control))
}

// viewFiles describes what a commit would write, without write bits. The result
// artifacts have the time of the newest output.
func viewFiles(plan *restore.Plan) iter.Seq[fusefs.File] {
	cache := blockhash.NewCache(viewCache)
	return func(yield func(fusefs.File) bool) {
		for run := range plan.Runs() {
			shared := &shown{run, cache}
			var newest time.Time
			for o := range run.Bundle().Outputs() {
				if o.ModTime().After(newest) {
					newest = o.ModTime()
				}
				if !yield(outputFile(shared, o)) {
					return
				}
			}
			for _, artifact := range run.Artifacts() {
				if !yield(artifactFile(shared, artifact, newest)) {
					return
				}
			}
		}
	}
}

// shown is what the files of one run have in common.
type shown struct {
	run   *restore.Run
	cache *blockhash.Cache
}

// sha256Attr is the extended attribute that is the SHA-256 of a file, in hex.
const sha256Attr = "user.spectrum.sha256"

// xattrs are the extended attributes of a file with this SHA-256.
func (s *shown) xattrs(digest string) []fusefs.XAttr {
	b := s.run.Bundle()
	return []fusefs.XAttr{
		{Name: "user.spectrum.bundle_root", Value: b.Root()},
		{Name: "user.spectrum.run_id", Value: b.RunID()},
		{Name: sha256Attr, Value: digest},
	}
}

func outputFile(s *shown, o verify.Output) fusefs.File {
	return fusefs.File{
		Path: s.run.Target(o.Path().String()), Size: o.Size(), Mode: o.Perm(), ModTime: o.ModTime(),
		Source: &outputSource{s, o},
	}
}

// outputSource reads an output from its source; what does not match is an
// error.
type outputSource struct {
	shown  *shown
	output verify.Output
}

func (s *outputSource) Open() (fusefs.Content, error) {
	source, err := s.output.Open(s.shown.cache)
	if err != nil {
		return nil, err
	}
	return source, nil
}

func (s *outputSource) XAttrs() []fusefs.XAttr {
	return s.shown.xattrs(strings.TrimPrefix(s.output.Hash(), bundle.HashPrefix))
}

// artifactFile is a result artifact as it would be written.
func artifactFile(s *shown, a restore.Artifact, modTime time.Time) fusefs.File {
	file := heldFile(a.Path, a.Data, modTime)
	file.Source = &artifactSource{file.Source, s, sync.OnceValue(func() string {
		digest := sha256.Sum256([]byte(a.Data))
		return hex.EncodeToString(digest[:])
	})}
	return file
}

type artifactSource struct {
	fusefs.Source
	shown  *shown
	digest func() string // large manifests take a while: only for those who ask
}

func (s *artifactSource) XAttrs() []fusefs.XAttr { return s.shown.xattrs(s.digest()) }

// heldFile is a file whose content is held in memory, so nothing can change it.
func heldFile(path string, text string, modTime time.Time) fusefs.File {
	return fusefs.File{
		Path: path, Size: int64(len(text)), Mode: 0o444, ModTime: modTime,
		Source: fusefs.SourceFunc(func() (fusefs.Content, error) { return memory{strings.NewReader(text)}, nil }),
	}
}

type memory struct{ *strings.Reader }

func (memory) Close() error { return nil }
