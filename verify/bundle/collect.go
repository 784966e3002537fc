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
)

// output is one file that will be named in OUTPUT_HASHES.json.
type output struct {
	path   pathsafe.Path
	size   int64
	holes  int64 // of size, bytes that take no room
	digest [sha256.Size]byte
}

// collect finds every file that the arguments name, in ascending order of the
// path's bytes, each once.
func collect(ctx context.Context, project *pathsafe.Dir, args []string) ([]output, error) {
	var outputs []output
	for _, arg := range args {
		found, err := collectArg(ctx, project, arg)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, found...)
	}
	if len(outputs) == 0 {
		return nil, errors.New("there is no file to seal: the outputs are empty directories")
	}
	slices.SortFunc(outputs, func(a, b output) int { return strings.Compare(a.path.String(), b.path.String()) })
	return slices.CompactFunc(outputs, func(a, b output) bool { return a.path == b.path }), nil
}

func collectArg(ctx context.Context, project *pathsafe.Dir, arg string) ([]output, error) {
	path, err := pathsafe.Parse(arg)
	if err != nil {
		return nil, fmt.Errorf("output %q: %w", arg, err)
	}
	st, err := project.StatPath(path, pathsafe.NoLinks)
	if err != nil {
		return nil, fmt.Errorf("output %q: %w", arg, err)
	}
	if !st.Mode.IsDir() {
		one, err := newOutput(arg, st)
		return []output{one}, err
	}
	return collectDir(ctx, project, path)
}

func collectDir(ctx context.Context, project *pathsafe.Dir, path pathsafe.Path) ([]output, error) {
	dir, err := project.OpenParent(path, len(path.Components()))
	if err != nil {
		return nil, fmt.Errorf("output %q: %w", path, err)
	}
	defer dir.Close()
	top, err := dir.Stat()
	if err != nil {
		return nil, err
	}
	var outputs []output
	err = dir.Walk(ctx, func(rel string, st pathsafe.Stat) error {
		if !st.IsOn(top.ID) {
			return fmt.Errorf("output %q: %w", path.String()+"/"+rel, pathsafe.ErrCrossesMount)
		}
		if st.Mode.IsDir() {
			return nil
		}
		o, err := newOutput(path.String()+"/"+rel, st)
		outputs = append(outputs, o)
		return err
	})
	return outputs, err
}

// newOutput refuses what could be sealed but never be restored.
func newOutput(name string, st pathsafe.Stat) (output, error) {
	path, err := pathsafe.Parse(name)
	switch {
	case err != nil:
		return output{}, fmt.Errorf("output %q: %w", name, err)
	case !st.Mode.IsRegular():
		return output{}, fmt.Errorf("output %q is %s; only regular files can be sealed", name, kindOf(st.Mode))
	case Reserved(path):
		return output{}, fmt.Errorf("output %q: this name is reserved for a restore", name)
	}
	o, err := namedOutput(path)
	o.size, o.holes = st.Size, max(0, st.Size-st.Allocated) // as far as is known before it is read
	return o, err
}

// namedOutput refuses the zero path, and one that JSON cannot hold.
func namedOutput(path pathsafe.Path) (output, error) {
	if path == (pathsafe.Path{}) {
		return output{}, errors.New("an output has no path")
	}
	if !utf8.ValidString(path.String()) {
		return output{}, fmt.Errorf("output %q: its name is not UTF-8, so JSON cannot hold it", path)
	}
	return output{path: path}, nil
}

// Reserved says whether a restore must keep an output path for itself: the two
// result artifacts, anything below their names, and what begins with
// ".spectrum06_" (decision D10).
func Reserved(p pathsafe.Path) bool {
	top, _, _ := strings.Cut(p.String(), "/")
	return top == "RESTORE_MANIFEST.json" || top == "RESTORE_REPORT.json" || strings.HasPrefix(top, ReservedPrefix)
}

// ReservedPrefix begins the names that a restore makes for itself.
const ReservedPrefix = sys.Prefix

func kindOf(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a FIFO"
	case fs.ModeSocket:
		return "a socket"
	default:
		return "a special file"
	}
}
