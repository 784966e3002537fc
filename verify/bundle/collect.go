package bundle

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spectrumfs/spectrum/internal/sys"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/verify/ignore"
)

// output is one file that will be named in OUTPUT_HASHES.json.
type output struct {
	path   pathsafe.Path
	size   int64
	holes  int64 // bytes of the size that are not allocated
	digest [sha256.Size]byte
	isExec bool   // its owner may execute it
	doubt  string // of a base, [BaseFile.Doubt]

	// The attributes of a hashed file for its block table.
	perm   fs.FileMode
	sec    int64
	nsec   int32
	values []byte
}

// collect finds every file that is an argument, or is in a directory that is one and is not
// left out, in ascending order of the path's bytes, each once.
func collect(ctx context.Context, opts SealOptions) ([]output, error) {
	rules, err := ignore.New(opts.Project, opts.Exclude)
	if err != nil {
		return nil, err
	}
	c := collecting{ctx: ctx, opts: opts, rules: rules}
	for _, arg := range opts.Outputs {
		if err := c.arg(arg); err != nil {
			return nil, err
		}
	}
	if len(c.special) > 0 && !opts.SkipSpecial {
		return nil, &SpecialError{group(c.special)}
	}
	c.tell()
	if len(c.outputs) == 0 {
		return nil, errors.New("no file to seal: " + c.whyNone())
	}
	c.sort()
	return c.outputs, nil
}

// collecting is the state of collect.
type collecting struct {
	ctx     context.Context
	opts    SealOptions
	rules   *ignore.Rules
	other   *ignore.Rules // further rules for leaving out; nil for none
	outputs []output
	left    []leftOut
	special []leftOut // what cannot be sealed because of its type
}

// tell reports what was excluded, except paths that another argument names.
func (c *collecting) tell() {
	left := slices.DeleteFunc(c.left, func(l leftOut) bool { return slices.Contains(c.opts.Outputs, l.path) })
	if left = append(left, c.special...); len(left) > 0 && c.opts.LeftOut != nil {
		c.opts.LeftOut(group(left))
	}
}

func (c *collecting) whyNone() string {
	if len(c.left)+len(c.special) > 0 {
		return "all outputs were left out"
	}
	return "the outputs are empty directories"
}

// arg finds the files of an argument. Rules do not apply to its own name.
func (c *collecting) arg(arg string) error {
	if arg == Whole {
		return c.dir(c.opts.Project, "")
	}
	path, err := pathsafe.Parse(arg)
	if err != nil {
		return fmt.Errorf("output %q: %w", arg, err)
	}
	st, err := c.opts.Project.StatPath(path, pathsafe.NoLinks)
	if errors.Is(err, pathsafe.ErrSymlink) && c.opts.SkipSpecial && c.isLink(path) {
		c.special = append(c.special, leftOut{arg, Special, kindOf(fs.ModeSymlink)})
		return nil
	}
	switch {
	case err != nil:
		return fmt.Errorf("output %q: %w", arg, err)
	case Reserved(path):
		return fmt.Errorf("output %q: this name is reserved for a restore", arg)
	case !st.Mode.IsDir():
		return c.file(arg, st)
	}
	dir, err := c.opts.Project.OpenParent(path, len(path.Components()))
	if err != nil {
		return fmt.Errorf("output %q: %w", path, err)
	}
	defer dir.Close()
	return c.dir(dir, arg+"/")
}

// isLink reports whether a path is a link. No link leads to the path.
func (c *collecting) isLink(path pathsafe.Path) bool {
	dir, err := c.opts.Project.OpenParent(path, len(path.Components())-1)
	if err != nil {
		return false
	}
	defer dir.Close()
	st, err := dir.Lstat(path.Base())
	return err == nil && st.Mode.Type() == fs.ModeSymlink
}

// dir finds the entries of a directory.
func (c *collecting) dir(dir *pathsafe.Dir, prefix string) error {
	top, err := dir.Stat()
	if err != nil {
		return err
	}
	enter := func(rel string, in *pathsafe.Dir) error {
		return c.rules.Enter(strings.TrimSuffix(prefix+rel, "/"), in)
	}
	return dir.WalkEntering(c.ctx, enter, func(rel string, st pathsafe.Stat) error {
		name := prefix + rel
		if c.opts.whiteouts[name] {
			return nil
		}
		why, err := c.why(name, st)
		switch {
		case err != nil:
			return err
		case why != "":
			c.left = append(c.left, leftOut{name, why, ""})
			if st.Mode.IsDir() {
				return fs.SkipDir
			}
			return nil
		case !st.IsOn(top.ID):
			return fmt.Errorf("output %q: %w", name, pathsafe.ErrCrossesMount)
		case st.Mode.IsDir():
			return nil
		}
		return c.file(name, st)
	})
}

// why returns the reason to exclude a name that was found in a directory, or "".
func (c *collecting) why(name string, st pathsafe.Stat) (Why, error) {
	base := name[strings.LastIndexByte(name, '/')+1:]
	top, _, _ := strings.Cut(name, "/")
	switch {
	case base == ".git" || name == runs || name == lawRuns:
		return History, nil
	case reservedName(top):
		return ForRestore, nil
	case slices.Contains(c.opts.Private, name):
		return Private, nil
	}
	if c.opts.Leave != nil {
		if why := c.opts.Leave(name, st.Mode); why != "" {
			return why, nil
		}
	}
	for _, rules := range []*ignore.Rules{c.rules, c.other, c.opts.lowerRules} {
		if rules == nil {
			continue
		}
		by, err := rules.Match(name, st.Mode.IsDir())
		if rules != c.rules && (errors.Is(err, pathsafe.ErrSymlink) || isNothing(err)) {
			continue // not a directory on the other side
		}
		switch {
		case err != nil:
			return "", err
		case by == ignore.ByGiven:
			return Excluded, nil
		case by == ignore.ByFile:
			return Ignored, nil
		}
	}
	return "", nil
}

// file notes a file.
func (c *collecting) file(name string, st pathsafe.Stat) error {
	if !st.Mode.IsRegular() {
		c.special = append(c.special, leftOut{name, Special, kindOf(st.Mode)})
		return nil
	}
	path, err := pathsafe.Parse(name)
	if err != nil {
		return fmt.Errorf("output %w", err)
	}
	o, err := namedOutput(path)
	if err != nil {
		return err
	}
	o.isExec = st.Perm&0o100 != 0
	o.size, o.holes = st.Size, max(0, st.Size-st.Allocated) // preliminary, before it is read
	c.outputs = append(c.outputs, o)
	return nil
}

// namedOutput rejects the zero path, and one that JSON cannot represent.
func namedOutput(path pathsafe.Path) (output, error) {
	if path == (pathsafe.Path{}) {
		return output{}, errors.New("an output has no path")
	}
	if !utf8.ValidString(path.String()) {
		return output{}, fmt.Errorf("output %q: its name is not UTF-8 and cannot be written as JSON", path)
	}
	return output{path: path}, nil
}

// Reserved reports whether an output path is reserved for a restore: the two result artifacts,
// anything below their names, and names that begin with ".spectrum06_".
func Reserved(p pathsafe.Path) bool {
	top, _, _ := strings.Cut(p.String(), "/")
	return reservedName(top)
}

func reservedName(top string) bool {
	return top == "RESTORE_MANIFEST.json" || top == "RESTORE_REPORT.json" || strings.HasPrefix(top, ReservedPrefix)
}

// ReservedPrefix begins the names that a restore uses for its own files.
const ReservedPrefix = sys.Prefix
