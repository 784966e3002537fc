package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/ignore"
	"golang.org/x/sys/unix"
)

// MaxCarried is the number of unchanged files in a change set that only removes. One is required,
// and it must be unchanged in the restore root; with several, a change of one does not block the
// removals.
const MaxCarried = 3

// Counts are the files of a change set. A file that is carried is unchanged: it is an output since a
// bundle has at least one.
type Counts struct{ New, Changed, Removed, Carried int }

// A FormError is a change that has no form in a change set.
type FormError struct {
	Path string
	What string // it was, and is
}

func (e *FormError) Error() string {
	return fmt.Sprintf("%q %s, which a change set cannot express", e.Path, e.What)
}

// ErrUnchanged reports that there is nothing to seal.
var ErrUnchanged = errors.New("nothing has changed since the base")

// ErrNothingCarried is why a set that only removes cannot be sealed.
var ErrNothingCarried = errors.New("files were only removed, but a bundle needs at least one file, and no unchanged file is available whose name is neither hidden nor restricted")

// BaseList is a base whose files are already known and need not be read.
type BaseList struct {
	Files []BaseFile // in any order, no path twice
	// Links are the targets of the symbolic links, by path. A link that is the same in the project
	// is ignored; any other cannot be represented.
	Links    map[string]string
	HasModes bool // whether the executable bits are known, and compared
}

// BaseFile is one of its files. Any path that [pathsafe.Found] accepts is valid: one that no output
// can have is an error only if no rule excludes it.
type BaseFile struct {
	Known
	Executable bool
	// Doubt, unless empty, is the reason why the file may have had other bytes, as the end of a
	// sentence. If the project has the same bytes, the file is unchanged; otherwise a [*DoubtError]
	// is returned.
	Doubt string
}

// A DoubtError is returned for a file that differs from a base whose bytes are uncertain.
type DoubtError struct{ Path, Doubt string }

func (e *DoubtError) Error() string {
	return fmt.Sprintf("%q differs from the base, but its content in the base is not known: it %s", e.Path, e.Doubt)
}

// comparison is a project against the base that it started from.
type comparison struct {
	project, base collecting
	list          *BaseList       // the base, unless it is a directory
	dirs          map[string]bool // of such a base
}

// collectChanges finds the changes since the base, hashes them, and makes the change set. The
// outputs are new and changed files.
func collectChanges(ctx context.Context, opts SealOptions) ([]output, *Changes, Counts, error) {
	c, err := compare(ctx, opts)
	if err != nil {
		return nil, nil, Counts{}, err
	}
	sides := []*collecting{&c.base, &c.project}
	if c.list != nil {
		sides = sides[1:]
	}
	if opts.Listed != nil {
		files, bytes := 0, int64(0)
		for _, side := range sides {
			files, bytes = files+len(side.outputs), bytes+totalBytes(side.outputs)
		}
		opts.Listed(files, bytes)
	}
	for _, side := range sides {
		side.opts.Listed = nil
		if err := checkHoles(ctx, side.opts.Project, side.outputs); err != nil {
			return nil, nil, Counts{}, err
		}
		if err := hashAll(ctx, side.opts, side.outputs); err != nil {
			return nil, nil, Counts{}, err
		}
	}
	return c.changes()
}

// compare finds the files of both sides, and rejects entries that a change set cannot
// represent.
func compare(ctx context.Context, opts SealOptions) (*comparison, error) {
	rules, err := ignore.New(opts.Project, opts.Exclude)
	if err != nil {
		return nil, err
	}
	for name := range opts.whiteouts {
		if path.Base(name) == ignore.File {
			rules.Lacks(path.Dir(name))
		}
	}
	c := &comparison{project: collecting{ctx: ctx, opts: opts, rules: rules}, list: opts.BaseList}
	if err := c.openBase(opts, rules); err != nil {
		return nil, err
	}
	for _, arg := range opts.Outputs {
		here := c.project.arg(arg)
		if here != nil && !isNothing(here) {
			return nil, here
		}
		there := c.baseArg(arg)
		if there != nil && !isNothing(there) {
			return nil, fmt.Errorf("the base: %w", there)
		}
		if here != nil && there != nil {
			return nil, here
		}
	}
	c.project.sort()
	c.base.sort()
	if err := c.checkKinds(); err != nil {
		return nil, err
	}
	c.project.tell()
	return c, nil
}

// openBase prepares the side of the base.
func (c *comparison) openBase(opts SealOptions, rules *ignore.Rules) error {
	if c.list != nil {
		c.base, c.dirs = collecting{opts: opts, other: rules}, map[string]bool{}
		return nil
	}
	baseRules, err := ignore.New(opts.Base, opts.Exclude)
	opts.Project, opts.Blocks = opts.Base, false
	c.base = collecting{ctx: c.project.ctx, opts: opts, rules: baseRules, other: rules}
	return err
}

// baseArg finds the files of an argument in the base.
func (c *comparison) baseArg(arg string) error {
	if c.list == nil {
		return c.base.arg(arg)
	}
	found := false
	// isCompared reports whether a path is the argument, or beneath it and not excluded.
	isCompared := func(name string) (bool, error) {
		if arg != Whole && name != arg && !strings.HasPrefix(name, arg+"/") {
			return false, nil
		}
		found = true
		left, err := c.leavesOut(arg, name)
		if left || err != nil {
			return false, err
		}
		for up := parentOf(name); up != ""; up = parentOf(up) {
			c.dirs[up] = true
		}
		return true, nil
	}
	for _, f := range c.list.Files {
		name := f.Path.String()
		if is, err := isCompared(name); !is || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		path, err := pathsafe.Parse(name)
		if err != nil {
			return fmt.Errorf("output %q: %w", name, err)
		}
		o, err := namedOutput(path)
		if err != nil {
			return err
		}
		o.size, o.digest, o.isExec, o.doubt = f.Bytes, f.Digest, f.Executable, f.Doubt
		c.base.outputs = append(c.base.outputs, o)
	}
	for _, name := range slices.Sorted(maps.Keys(c.list.Links)) {
		is, err := isCompared(name)
		if err != nil {
			return err
		}
		if is {
			c.base.special = append(c.base.special, leftOut{name, Special, kindOf(fs.ModeSymlink)})
		}
	}
	if !found {
		return fmt.Errorf("output %q: %w", arg, fs.ErrNotExist)
	}
	return nil
}

// parentOf is the directory of a path, "" for the project root.
func parentOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '/'))] }

// leavesOut reports whether sealing an argument would exclude a file of a list: by its own name, or
// by a directory above it that is not an argument.
func (c *comparison) leavesOut(arg, name string) (bool, error) {
	mode := fs.FileMode(0)
	for up := name; up != "" && up != arg; up = parentOf(up) {
		why, err := c.base.why(up, pathsafe.Stat{Mode: mode})
		if err != nil || why != "" {
			return why != "", err
		}
		mode = fs.ModeDir
	}
	return false, nil
}

func isNothing(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) }

// sort sorts the files and removes duplicates.
func (c *collecting) sort() {
	slices.SortFunc(c.outputs, func(a, b output) int { return strings.Compare(a.path.String(), b.path.String()) })
	c.outputs = slices.CompactFunc(c.outputs, func(a, b output) bool { return a.path == b.path })
}

// checkKinds drops unchanged entries that are not files, and rejects entries whose type has
// changed. With SkipSpecial an entry that is not a file on one of the sides is left out.
func (c *comparison) checkKinds() error {
	was := map[string]string{}
	for _, s := range c.base.special {
		if c.list != nil {
			was[s.path] = linkTo(c.list.Links[s.path])
		} else {
			was[s.path] = c.base.kindAt(s)
		}
	}
	var changed []leftOut
	for _, s := range c.project.special {
		if kind := was[s.path]; kind != "" && kind == c.project.kindAt(s) {
			delete(was, s.path)
			continue
		}
		changed = append(changed, s)
	}
	c.project.special = changed
	for _, s := range c.base.special {
		if was[s.path] == "" || slices.ContainsFunc(changed, func(now leftOut) bool { return now.path == s.path }) {
			continue
		}
		if !c.project.opts.SkipSpecial {
			return &FormError{s.path, "was " + s.kind + " and is " + c.project.nowAt(s.path)}
		}
		c.project.special = append(c.project.special, s)
	}
	if len(c.project.special) > 0 && !c.project.opts.SkipSpecial {
		return &SpecialError{group(c.project.special)}
	}
	skipped := map[string]bool{}
	for _, s := range c.project.special {
		skipped[s.path] = true
	}
	isSkipped := func(o output) bool { return skipped[o.path.String()] }
	c.project.outputs = slices.DeleteFunc(c.project.outputs, isSkipped)
	c.base.outputs = slices.DeleteFunc(c.base.outputs, isSkipped)
	for _, o := range c.base.outputs {
		if now := c.project.nowAt(o.path.String()); now == directory {
			return &FormError{o.path.String(), "was a file and is " + now}
		}
	}
	for _, o := range c.project.outputs {
		if c.wasDir(o.path.String()) {
			return &FormError{o.path.String(), "was a directory and is a file"}
		}
	}
	return nil
}

// wasDir reports whether a directory is at a path of the base.
func (c *comparison) wasDir(path string) bool {
	if c.list != nil {
		return c.dirs[path]
	}
	return c.base.nowAt(path) == directory
}

// directory is the description of a directory.
const directory = "a directory"

// kindAt returns the type of an entry that is not a file, and the target of a link.
func (c *collecting) kindAt(s leftOut) string {
	path, err := pathsafe.Parse(s.path)
	if err != nil || s.kind != kindOf(fs.ModeSymlink) {
		return s.kind
	}
	dir, err := c.opts.Project.OpenParent(path, len(path.Components())-1)
	if err != nil {
		return s.kind
	}
	defer dir.Close()
	target, err := dir.Readlink(path.Base())
	if err != nil {
		return s.kind
	}
	return linkTo(target)
}

func linkTo(target string) string { return kindOf(fs.ModeSymlink) + " to " + target }

// nowAt describes the entry at a path.
func (c *collecting) nowAt(name string) string {
	if c.opts.whiteouts[name] {
		return "gone"
	}
	path, err := pathsafe.Parse(name)
	if err != nil {
		return "not a path"
	}
	st, err := c.opts.Project.StatPath(path, pathsafe.NoLinks)
	switch {
	case isNothing(err):
		return "gone"
	case errors.Is(err, pathsafe.ErrSymlink):
		return kindOf(fs.ModeSymlink)
	case err != nil:
		return err.Error()
	case st.Mode.IsDir():
		return directory
	case st.Mode.IsRegular():
		return "a file"
	}
	return kindOf(st.Mode)
}

// changes compares the files of both sides, which were hashed.
func (c *comparison) changes() (outputs []output, _ *Changes, n Counts, err error) {
	was := make(map[string]*output, len(c.base.outputs))
	for i := range c.base.outputs {
		was[c.base.outputs[i].path.String()] = &c.base.outputs[i]
	}
	d := ChangesDraft{Base: map[string]*Base{}}
	add := func(o output, base *[sha256.Size]byte) {
		path := o.path.String()
		d.Base[path] = (*Base)(base)
		if o.isExec {
			d.Executable = append(d.Executable, path)
		}
		outputs = append(outputs, o)
	}
	for _, o := range c.project.outputs {
		before := was[o.path.String()]
		switch delete(was, o.path.String()); {
		case before == nil:
			n.New++
			add(o, nil)
		case before.digest != o.digest && before.doubt != "":
			return nil, nil, n, &DoubtError{o.path.String(), before.doubt}
		case before.digest != o.digest || before.isExec != o.isExec && (c.list == nil || c.list.HasModes):
			n.Changed++
			add(o, &before.digest)
		}
	}
	for _, o := range c.base.outputs {
		if path := o.path.String(); was[path] != nil {
			if o.doubt != "" {
				return nil, nil, n, &DoubtError{path, o.doubt}
			}
			n.Removed++
			d.Base[path], d.Removes = (*Base)(&was[path].digest), append(d.Removes, path)
		}
	}
	if len(outputs) == 0 {
		if n.Removed == 0 {
			return nil, nil, n, ErrUnchanged
		}
		for _, o := range c.project.outputs {
			if path := o.path.String(); n.Carried < MaxCarried && !isHidden(path) && (c.project.opts.Restricted == nil || !c.project.opts.Restricted(path)) {
				n.Carried++
				add(o, &o.digest)
			}
		}
		if n.Carried == 0 {
			return nil, nil, n, ErrNothingCarried
		}
	}
	if err := checkRoom(outputs); err != nil {
		return nil, nil, n, err
	}
	changes, err := d.Changes()
	return outputs, changes, n, err
}

// isHidden reports whether a path has a component that begins with a dot: such a file may be
// restored only on request.
func isHidden(path string) bool { return strings.HasPrefix(path, ".") || strings.Contains(path, "/.") }
