package verify

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/blocktable"
)

// directory is a parent directory of outputs, and its permission bits when they were read.
type directory struct {
	path string // beneath the project root; "" is the root itself
	perm fs.FileMode
}

// ErrDirectories means that the outputs of a run have more parent directories than a view shows. It
// is a limit of this program, not a verdict.
var ErrDirectories = errors.New("too many directories lead to its outputs")

// MaxDirectories returns the maximum number of parent directories of so many outputs. A path of
// 4,096 bytes can have 2,000, each of which takes memory and a lookup; real trees have more files
// than directories.
func MaxDirectories(outputs int) int { return 4*outputs + 100_000 }

// checkDirectories returns [ErrDirectories] if the outputs have too many parent directories. Their
// names are in ascending order, so those in one directory are adjacent.
func checkDirectories(ctx context.Context, declared []declaration) error {
	most, dirs, last := MaxDirectories(len(declared)), 0, ""
	for i := range declared {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := declared[i].name
		if dirs += strings.Count(name[blocktable.SharedDirs(last, name):], "/"); dirs > most {
			return fmt.Errorf("%w: more than %d, to %d", ErrDirectories, most, len(declared))
		}
		last = name
	}
	return nil
}

// directoriesOf returns the parent directories of outputs, which are in ascending order, each after
// its own parent. The verdict is on outputs alone: a directory that no longer exists, or cannot be
// read, has no permission bits.
func directoriesOf(ctx context.Context, project *pathsafe.Dir, outputs []output) ([]directory, error) {
	perm, err := grantedRoot(project)
	if IsMachineFault(err) {
		return nil, err
	}
	found := []directory{{"", granted(perm, err)}}
	var open []string // the parent directories of the last output
	for i := range outputs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		name := outputs[i].path.String()
		if name == "" { // it was left out
			continue
		}
		for len(open) > 0 && !strings.HasPrefix(name, open[len(open)-1]+"/") {
			open = open[:len(open)-1]
		}
		from := 0
		if len(open) > 0 {
			from = len(open[len(open)-1]) + 1
		}
		for n := strings.IndexByte(name[from:], '/'); n >= 0; n = strings.IndexByte(name[from:], '/') {
			path, err := pathsafe.Parse(name[:from+n])
			if err != nil {
				return nil, err
			}
			perm, err := grantedPath(project, path)
			if IsMachineFault(err) {
				return nil, err
			}
			open, found = append(open, path.String()), append(found, directory{path.String(), granted(perm, err)})
			from += n + 1
		}
	}
	return found, nil
}

// publicDir is the mode of a directory of a run without a project root.
const publicDir = 0o755

func grantedRoot(project *pathsafe.Dir) (uint32, error) {
	if project == nil {
		return publicDir, nil
	}
	return project.Granted()
}

func grantedPath(project *pathsafe.Dir, path pathsafe.Path) (uint32, error) {
	if project == nil {
		return publicDir, nil
	}
	return project.GrantedPath(path, pathsafe.LinksUnder)
}

func granted(perm uint32, err error) fs.FileMode {
	if err != nil {
		return 0
	}
	return fs.FileMode(perm)
}

// Dirs yields the parent directories of the outputs, each after its own parent, and their
// permission bits: the signed ones, or those when the outputs were read. The first is the project
// root, with the path "", whose bits are never signed.
func (b *Bundle) Dirs() iter.Seq2[string, fs.FileMode] { return yieldDirs(b.dirs) }

// SourceDirs are the same with the permission bits when the outputs were read.
func (b *Bundle) SourceDirs() iter.Seq2[string, fs.FileMode] {
	if b.sourceDirs == nil {
		return yieldDirs(b.dirs)
	}
	return yieldDirs(b.sourceDirs)
}

func yieldDirs(dirs []directory) iter.Seq2[string, fs.FileMode] {
	return func(yield func(string, fs.FileMode) bool) {
		for _, d := range dirs {
			if !yield(d.path, d.perm) {
				return
			}
		}
	}
}

// Granted returns the permission bits that the run directory granted when its artifacts
// were read; none unless [Watch.Reread] was set.
func (b *Bundle) Granted() fs.FileMode { return b.dirPerm }
