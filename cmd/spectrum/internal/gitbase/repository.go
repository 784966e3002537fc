package gitbase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoRepository reports that the project is in no work tree of a repository.
var ErrNoRepository = errors.New("not in the work tree of a git repository")

// ErrNotOwned is a repository of another user, which git does not read.
var ErrNotOwned = errors.New("the git repository belongs to another user, so git does not read it")

// ErrTemporary is a temporary directory that cannot be made or written.
var ErrTemporary = errors.New("the temporary directory of git")

// A RevisionError is a revision that is not a commit of the repository.
type RevisionError struct {
	Revision  string
	IsShallow bool // the clone has not all commits
	Said      string
}

func (e *RevisionError) Error() string {
	text := fmt.Sprintf("%q is not a commit of this repository", e.Revision)
	if e.Said != "" {
		text += fmt.Sprintf("; git said %q", e.Said)
	}
	return text
}

// repository is where a repository has its parts, and how it is set.
type repository struct {
	git                 git // in the project, with the repository's configuration
	top                 string
	prefix              string // of the project in it: "" or "a/b/"
	gitDir, commonDir   string
	index               string
	format              string // of its objects: "sha1" or "sha256"
	settings            []string
	convertsAll         bool            // core.autocrlf
	filters             map[string]bool // that would run when a file is checked out
	noModes, isSubclone bool
}

// open finds the repository whose work tree has a project, by its real path.
func open(ctx context.Context, root string) (*repository, error) {
	g, err := newGit(root)
	if err != nil {
		return nil, err
	}
	if err := g.checkVersion(ctx); err != nil {
		return nil, err
	}
	w := waits{}
	if err := w.checkAbove(ctx, root); err != nil {
		return nil, err
	}
	r := &repository{git: g, filters: map[string]bool{}}
	inside, err := r.ask(ctx, "--is-inside-work-tree")
	if err != nil {
		return nil, err
	}
	if inside != "true" {
		return nil, fmt.Errorf("%q: %w: the repository is bare, or this is its git directory", root, ErrNoRepository)
	}
	shallow := ""
	for _, part := range []struct {
		args string
		to   *string
	}{
		{"--show-toplevel", &r.top}, {"--show-prefix", &r.prefix}, {"--absolute-git-dir", &r.gitDir}, {"--git-common-dir", &r.commonDir},
		{"--git-path index", &r.index}, {"--show-object-format", &r.format}, {"--is-shallow-repository", &shallow},
	} {
		if *part.to, err = r.ask(ctx, strings.Fields(part.args)...); err != nil {
			return nil, err
		}
	}
	r.isSubclone = shallow == "true"
	for _, path := range []*string{&r.commonDir, &r.index} {
		if !filepath.IsAbs(*path) {
			*path = filepath.Join(root, *path)
		}
	}
	_, noGit := os.Lstat(filepath.Join(r.top, ".git")) // core.worktree can name any directory
	if noGit != nil || filepath.Join(r.top, r.prefix) != root || r.format != "sha1" && r.format != "sha256" {
		return nil, fmt.Errorf("%q: %w: the repository is for the work tree %q, with %s hashes", root, ErrNoRepository, r.top, r.format)
	}
	if err := w.checkTree(ctx, root); err != nil {
		return nil, err
	}
	return r, r.readSettings(ctx)
}

// ask queries git for a part of the repository.
func (r *repository) ask(ctx context.Context, args ...string) (string, error) {
	answer, err := r.git.line(ctx, append([]string{"rev-parse"}, args...)...)
	var failed *RunError
	if errors.As(err, &failed) {
		switch {
		case strings.Contains(failed.Said, "dubious ownership"):
			return "", fmt.Errorf("%q: %w", r.git.dir, ErrNotOwned)
		case strings.Contains(failed.Said, "not a git repository"):
			return "", fmt.Errorf("%q: %w", r.git.dir, ErrNoRepository)
		}
	}
	return answer, err
}

// kept are the settings of the repository, the user and the system that count. None names a program.
var kept = map[string]bool{
	"core.autocrlf": true, "core.eol": true, "core.checkroundtripencoding": true, "core.ignorecase": true,
	"core.excludesfile": true, "core.attributesfile": true,
}

// readSettings chooses from all settings.
func (r *repository) readSettings(ctx context.Context) error {
	out, err := r.git.output(ctx, nil, "config", "--list", "-z")
	if err != nil {
		return err
	}
	list, err := fields(out)
	if err != nil {
		return fmt.Errorf("the settings of git: %w", err)
	}
	for _, setting := range list {
		name, value, hasValue := strings.Cut(setting, "\n")
		if !hasValue {
			value = "true"
		}
		isOff := value == "" || value == "false" || value == "no" || value == "off" || value == "0"
		filter, isFilter := strings.CutPrefix(name, "filter.")
		switch {
		case isFilter && (strings.HasSuffix(filter, ".smudge") || strings.HasSuffix(filter, ".process")):
			r.filters[filter[:strings.LastIndexByte(filter, '.')]] = value != ""
		case name == "core.filemode":
			r.noModes = isOff
		case name == "core.autocrlf":
			r.convertsAll = !isOff
		}
		if kept[name] && (!strings.HasSuffix(name, "file") || isPlain(value)) {
			r.settings = append(r.settings, name+"="+value)
		}
	}
	return nil
}

// isPlain reports whether a setting names a regular file, or a missing one: git waits for others.
func isPlain(path string) bool {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(os.Getenv("HOME"), rest)
	}
	info, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist) || err == nil && info.Mode().IsRegular()
}

var isHash = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// commit finds the commit of a revision. It is "" for a HEAD without any.
func (r *repository) commit(ctx context.Context, revision string) (string, error) {
	if strings.HasPrefix(revision, "-") {
		return "", &RevisionError{Revision: revision}
	}
	answer, err := r.git.line(ctx, "rev-parse", "--verify", revision)
	if err == nil && isHash.MatchString(answer) {
		answer, err = r.git.line(ctx, "rev-parse", "--verify", answer+"^{commit}")
	}
	var failed *RunError
	switch {
	case err == nil && isHash.MatchString(answer):
		return answer, nil
	case err == nil:
		return "", &RevisionError{Revision: revision}
	case !errors.As(err, &failed):
		return "", err
	}
	if revision == Head {
		_, notSet := r.git.line(ctx, "rev-parse", "--verify", "--quiet", Head)
		_, noBranch := r.git.line(ctx, "symbolic-ref", "--quiet", Head)
		if notSet != nil && noBranch == nil {
			return "", ctx.Err()
		}
	}
	return "", &RevisionError{revision, r.isSubclone, failed.Said}
}

// private is a git directory of our own, for the objects of a repository.
type private struct {
	dir string
	git git
}

// remove removes the directory.
func (p *private) remove() error { return os.RemoveAll(p.dir) }

// newPrivate makes one.
func (r *repository) newPrivate() (_ *private, err error) {
	dir, err := os.MkdirTemp("", "spectrum-git-")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTemporary, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	for _, name := range []string{"git/refs", "git/info", "tree"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTemporary, err)
		}
	}
	settings := "[core]\n\trepositoryformatversion = 1\n"
	if r.format == "sha256" {
		settings += "[extensions]\n\tobjectFormat = sha256\n"
	}
	for _, file := range []struct{ name, content string }{{"HEAD", "ref: refs/heads/none\n"}, {"config", settings}} {
		if err := os.WriteFile(filepath.Join(dir, "git", file.name), []byte(file.content), 0o600); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTemporary, err)
		}
	}
	shared, err := filepath.Glob(filepath.Join(escapeGlob(r.gitDir), "sharedindex.*"))
	if err != nil {
		return nil, err
	}
	copies := map[string]string{r.index: "index", filepath.Join(r.commonDir, "info/exclude"): "info/exclude", filepath.Join(r.commonDir, "info/attributes"): "info/attributes"}
	for _, path := range shared {
		copies[path] = filepath.Base(path)
	}
	for _, from := range slices.Sorted(maps.Keys(copies)) {
		if err := copyPlain(from, filepath.Join(dir, "git", copies[from])); err != nil {
			return nil, err
		}
	}
	own := filepath.Join(dir, "git")
	g := r.git.with(filepath.Join(dir, "tree"), "GIT_DIR="+own, "GIT_OBJECT_DIRECTORY="+filepath.Join(r.commonDir, "objects"), "GIT_WORK_TREE="+filepath.Join(dir, "tree"),
		"GIT_INDEX_FILE="+filepath.Join(own, "index"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null")
	g.config = append(g.config[:len(g.config):len(g.config)], r.settings...)
	return &private{dir, g}, nil
}

// escapeGlob returns a pattern that fits a path only.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// copyPlain copies a file where there is one.
func copyPlain(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	if info, err := in.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(fmt.Errorf("%q is not a regular file", from), err)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTemporary, err)
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrTemporary, err)
	}
	return err
}
