package view

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spectrumfs/spectrum/fusefs"
	"github.com/spectrumfs/spectrum/internal/machine"
	"github.com/spectrumfs/spectrum/restore"
	"github.com/spectrumfs/spectrum/verify"
	"github.com/spectrumfs/spectrum/verify/blockhash"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// blockCache bounds the checked blocks that a view keeps for small random reads.
// It is filled only by those.
const blockCache = 16 << 20

// treeOf describes a scene with its files as a tree, with what is hidden beside it. Its directories
// grant what their sources do, and the top no more than the limits.
func treeOf(scene *Scene, shown iter.Seq[fusefs.File], control []fusefs.File, limits ...fs.FileMode) (*fusefs.Tree, error) {
	files := func(yield func(fusefs.File) bool) {
		for _, limit := range limits {
			if !yield(directoryFile("", limit)) {
				return
			}
		}
		for _, d := range scene.dirs {
			if !yield(directoryFile(d.Path, d.Perm)) {
				return
			}
		}
		shown(yield)
	}
	return fusefs.NewTree(files, slices.Values(control))
}

// directoryFile describes what a directory of a view grants: as in a restore, less the
// umask.
func directoryFile(path string, granted fs.FileMode) fusefs.File {
	return fusefs.File{Path: path, Mode: fs.ModeDir | granted&^machine.Umask()}
}

func umask() fs.FileMode { return machine.Umask() }

// readable returns which users may read a file that names everything in a directory with this
// access: those that may list and enter it.
func readable(granted fs.FileMode) fs.FileMode {
	perm := 0o444 &^ machine.Umask()
	for _, class := range []fs.FileMode{0o050, 0o005} {
		if granted&class != class {
			perm &^= class
		}
	}
	return perm
}

// Files describes what a commit would write, without write bits. The result
// artifacts have the time of the newest output.
func Files(plan *restore.Plan) iter.Seq[fusefs.File] {
	cache := blockhash.NewCache(blockCache)
	return func(yield func(fusefs.File) bool) {
		for run := range plan.Runs() {
			shared := newShown(run.Bundle(), cache)
			var newest time.Time
			for o := range run.Bundle().Outputs() {
				if o.ModTime().After(newest) {
					newest = o.ModTime()
				}
				if !yield(outputFile(run, shared, o)) {
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
	bundle Signed
	taskID string // as an attribute can hold it
	cache  *blockhash.Cache
}

// maxTaskAttr is how many bytes of a task_id an attribute holds: file systems take
// little more, and copies of files are to keep it.
const maxTaskAttr = 2048

func newShown(bundle Signed, cache *blockhash.Cache) *shown {
	taskID := strings.Clone(bundle.TaskID())
	if len(taskID) > maxTaskAttr {
		taskID = strings.ToValidUTF8(taskID[:maxTaskAttr], "") + "…"
	}
	return &shown{bundle, taskID, cache}
}

// SHA256Attr is the extended attribute that is the SHA-256 of a file, in hex.
const SHA256Attr = "user.spectrum.sha256"

// xattrs are the extended attributes of a file with this SHA-256.
func (s *shown) xattrs(digest string) []fusefs.XAttr {
	b := s.bundle
	return []fusefs.XAttr{
		{Name: "user.spectrum.bundle_root", Value: b.Root()},
		{Name: "user.spectrum.run_id", Value: b.RunID()},
		{Name: "user.spectrum.task_id", Value: s.taskID},
		{Name: SHA256Attr, Value: digest},
	}
}

func outputFile(run *restore.Run, s *shown, o verify.Output) fusefs.File {
	return fusefs.File{
		Path: run.Target(o.Path().String()), Size: o.Size(), Mode: run.Perm(o), ModTime: o.ModTime(),
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
	file := heldFile(a.Path, a.Data, a.Perm&^machine.Umask()|0o400, modTime)
	file.Source = &artifactSource{file.Source, s, sync.OnceValue(func() string {
		digest := sha256.Sum256([]byte(a.Data))
		return hex.EncodeToString(digest[:])
	})}
	return file
}

type artifactSource struct {
	fusefs.Source
	shown  *shown
	digest func() string // large manifests take a while: only on request
}

func (s *artifactSource) XAttrs() []fusefs.XAttr { return s.shown.xattrs(s.digest()) }

// heldFile is a file whose content is held in memory, so nothing can change it.
func heldFile(path string, text string, perm fs.FileMode, modTime time.Time) fusefs.File {
	return fusefs.File{
		Path: path, Size: int64(len(text)), Mode: perm, ModTime: modTime,
		Source: fusefs.SourceFunc(func() (fusefs.Content, error) { return memory{strings.NewReader(text)}, nil }),
	}
}

type memory struct{ *strings.Reader }

func (memory) Close() error { return nil }
