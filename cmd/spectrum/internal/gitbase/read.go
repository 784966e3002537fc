package gitbase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/bundle"
	"golang.org/x/sys/unix"
)

// Head is the revision that is compared with unless another one is named.
const Head = "HEAD"

// The reasons of [Base.Leave].
const (
	Ignored    bundle.Why = "git_ignored"    // by a .gitignore, .git/info/exclude, or core.excludesFile
	Unlisted   bundle.Why = "git_unlisted"   // nothing that git tracks or ignores: a FIFO, or made just now
	Repository bundle.Why = "git_repository" // a submodule, or another repository in the project
	Sparse     bundle.Why = "git_sparse"     // tracked, and not checked out
)

// Options are what to read. Project, Root and Revision are required.
type Options struct {
	Project  *pathsafe.Dir
	Root     string // the real path of the project
	Revision string
	Outputs  []string      // what is compared, as [bundle.SealOptions.Outputs]
	Hashed   func(n int64) // is called with the number of further hashed bytes; may be nil
}

// Base is a project in a commit.
type Base struct {
	Commit string // "" where there is none yet: then all is new
	List   *bundle.BaseList
	Sparse []string // what is not checked out, in ascending order

	known, above, repositories, ignored, sparse map[string]bool
}

// Read reads the project as it was, and what git tracks of it and ignores.
func Read(ctx context.Context, opts Options) (_ *Base, err error) {
	r, err := open(ctx, opts.Root)
	if err != nil {
		return nil, err
	}
	b := &Base{List: &bundle.BaseList{HasModes: true}, known: map[string]bool{}, above: map[string]bool{}, repositories: map[string]bool{}, ignored: map[string]bool{}, sparse: map[string]bool{}}
	if b.Commit, err = r.commit(ctx, opts.Revision); err != nil {
		return nil, err
	}
	p, err := r.newPrivate()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.remove()) }()
	var submodules []string
	if b.Commit != "" {
		all, err := p.listTree(ctx, b.Commit)
		if err != nil {
			return nil, err
		}
		if err := p.writeAttributes(ctx, all); err != nil {
			return nil, err
		}
		var compared, files []*entry
		for _, e := range all {
			name, ok := strings.CutPrefix(e.name, r.prefix)
			if !ok {
				continue
			}
			if e.mode == modeSubmodule {
				submodules = append(submodules, name)
				continue
			}
			b.know(name)
			if !isOf(name, opts.Outputs) {
				continue
			}
			if e.path, err = pathsafe.Found(name); err != nil {
				return nil, err
			}
			if compared = append(compared, e); e.isFile() {
				files = append(files, e)
			}
		}
		if err := p.findConverted(ctx, files, r); err != nil {
			return nil, err
		}
		if err := p.hashAll(ctx, files, opts.Hashed); err != nil {
			return nil, err
		}
		if b.List, err = p.baseList(ctx, compared, r); err != nil {
			return nil, err
		}
	}
	if err := b.readWorkTree(ctx, p.git.with(opts.Root, "GIT_WORK_TREE="+r.top), opts.Project, submodules); err != nil {
		return nil, err
	}
	return b, nil
}

// isOf reports whether a path is an output, or beneath one.
func isOf(name string, outputs []string) bool {
	return slices.ContainsFunc(outputs, func(arg string) bool {
		return arg == bundle.Whole || name == arg || strings.HasPrefix(name, arg+"/")
	})
}

// know records a file that git tracks, or would.
func (b *Base) know(name string) {
	b.known[name] = true
	for up := path.Dir(name); up != "." && !b.above[up]; up = path.Dir(up) {
		b.above[up] = true
	}
}

// readWorkTree lists what git tracks and what it ignores. What it tracks in the commit only is known
// already; submodules are those of the commit.
func (b *Base) readWorkTree(ctx context.Context, g git, project *pathsafe.Dir, submodules []string) error {
	of := &Base{known: map[string]bool{}, above: map[string]bool{}}
	out, err := g.output(ctx, nil, "ls-files", "-z", "-t", "--stage", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	list, err := fields(out)
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	for _, record := range list {
		tag, name, _ := strings.Cut(record, " ")
		mode := ""
		if tag != "?" {
			var about string
			about, name, _ = strings.Cut(name, "\t")
			mode, _, _ = strings.Cut(about, " ")
		}
		switch dir, isDir := strings.CutSuffix(name, "/"); {
		case isDir: // git does not look into another repository
			b.repositories[dir] = true
		case mode == modeSubmodule:
			submodules = append(submodules, name)
		default:
			of.know(name)
			if tag == "S" && isAbsent(project, name) {
				b.sparse[name] = true
				b.Sparse = append(b.Sparse, name)
			}
		}
	}
	for _, name := range submodules {
		if of.known[name] {
			return &bundle.FormError{Path: name, What: "was a submodule and is a file"}
		}
		if !of.above[name] {
			b.repositories[name] = true
		}
	}
	for name := range of.known {
		b.know(name)
	}
	slices.Sort(b.Sparse)
	out, err = g.output(ctx, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return err
	}
	list, err = fields(out)
	for _, name := range list {
		b.ignored[strings.TrimSuffix(name, "/")] = true
	}
	return err
}

// isAbsent reports whether nothing is at a path of a project.
func isAbsent(project *pathsafe.Dir, name string) bool {
	path, err := pathsafe.Found(name)
	if err != nil {
		return true
	}
	_, err = project.StatPath(path, pathsafe.NoLinks)
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)
}

// Knows reports whether a path is a file that git tracks, or a directory of such files.
func (b *Base) Knows(name string) bool { return b.known[name] || b.above[name] || b.repositories[name] }

// LeftOut are the files that git does not check out. They are not in the project, so a seal does
// not find them.
func (b *Base) LeftOut() []bundle.LeftOut {
	if b == nil || len(b.Sparse) == 0 {
		return nil
	}
	return []bundle.LeftOut{{Why: Sparse, Paths: b.Sparse}}
}

// Leave returns why an entry of the project is not among the files that git tracks, or would track;
// "" for the others, and for all if there is no base.
func (b *Base) Leave(name string, mode fs.FileMode) bundle.Why {
	switch {
	case b == nil:
		return ""
	case b.repositories[name] && (mode.IsDir() || !b.known[name]):
		return Repository
	case b.sparse[name]:
		return Sparse
	case b.known[name], mode.IsDir() && b.above[name]:
		return ""
	}
	for up := name; up != "."; up = path.Dir(up) {
		if b.ignored[up] {
			return Ignored
		}
	}
	if mode.IsDir() { // git lists no directory: this one is empty, or is looked into
		return ""
	}
	return Unlisted
}
