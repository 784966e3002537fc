package gitbase_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

// picked is a base as text: a line for each file and link.
func picked(b *gitbase.Base) string {
	var lines []string
	for _, f := range b.List.Files {
		lines = append(lines, fmt.Sprintf("%q %d %x %v", f.Path, f.Bytes, f.Digest, f.Executable))
	}
	for path, target := range b.List.Links {
		lines = append(lines, fmt.Sprintf("%q leads to %q", path, target))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// checkedOut is the same of a directory.
func checkedOut(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return fs.SkipDir
			}
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if d.Type() == fs.ModeSymlink {
			target, err := os.Readlink(path)
			lines = append(lines, fmt.Sprintf("%q leads to %q", rel, target))
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		lines = append(lines, fmt.Sprintf("%q %d %x %v", rel, len(raw), sha256.Sum256(raw), info.Mode()&0o100 != 0))
		return err
	}))
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// TestAsCheckout: a base is what a checkout writes, whatever the project's own attributes and files have
// become since.
func TestAsCheckout(t *testing.T) {
	for autocrlf, format := range map[string]string{"false": "sha256", "true": "sha1", "input": "sha1"} {
		t.Run(format+" autocrlf "+autocrlf, func(t *testing.T) {
			r := newRepo(t, "--object-format="+format)
			r.git("config", "core.autocrlf", autocrlf)
			r.write("plain", "a\nb\n").write("empty", "").write("large", strings.Repeat("0123456789abcdef\n", 60000))
			r.write("dos.txt", "a\nb\n").write("sub/dos.txt", "a\nb\n").write("sub/keep", "a\nb\n").write("id", "$Id$\n").write("wide.txt16", "wide\n")
			r.write("binary", "\x00\xff\r\n\n").write("no end", "x").write("ends\n\nwith\n", "\n\n").write(`"q"	\`, "q").write("\xff", "not UTF-8").write("new\nline.txt", "a\n")
			r.write(".gitattributes", "*.txt text eol=crlf\nid ident\n*.txt16 -text\n").write("sub/.gitattributes", "keep eol=crlf text\ndos.txt -text\n")
			must(t, os.Symlink("plain", filepath.Join(r.dir, "link")))
			must(t, os.Symlink("/nowhere\nelse", filepath.Join(r.dir, "far")))
			must(t, os.Chmod(filepath.Join(r.dir, "plain"), 0o755))
			r.git("add", "-A")
			r.git("commit", "-qm", "one")
			r.git("clone", "-q", "-c", "core.autocrlf="+autocrlf, ".", "../clone")
			// what the project is now does not count
			r.write(".gitattributes", "* eol=crlf text\n").write("sub/.gitattributes", "").write("plain", "other")
			r.git("add", "-A")
			b, err := r.read("HEAD")
			must(t, err)
			if got, want := picked(b), checkedOut(t, filepath.Join(r.dir, "../clone")); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// TestEncoding: a working tree encoding is one of git's own conversions, and info/attributes counts.
func TestEncoding(t *testing.T) {
	r := newRepo(t)
	r.write("a.txt", "a\x00b\x00").write("b", "one\n").write(".gitattributes", "*.txt text working-tree-encoding=UTF-16LE\n")
	r.write(".git/info/attributes", "b eol=crlf\n")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	must(t, os.Remove(filepath.Join(r.dir, "b")))
	r.git("checkout", "-q", "b")
	b, err := r.read("HEAD")
	must(t, err)
	if got, want := picked(b), checkedOut(t, r.dir); got != want || !strings.Contains(want, `"b" 5 `) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// reasons is why each name in a directory is left out.
func (r *repo) reasons(b *gitbase.Base, names ...string) string {
	r.t.Helper()
	var words []string
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(r.dir, name))
		mode := fs.FileMode(0)
		if err == nil {
			mode = info.Mode()
		}
		if why := b.Leave(name, mode); why != "" {
			words = append(words, fmt.Sprintf("%s:%s", name, strings.TrimPrefix(string(why), "git_")))
		}
	}
	return strings.Join(words, " ")
}

// TestLeave: what git ignores is left out, by every list that git reads, and nothing that it tracks, in the
// commit or in the index.
func TestLeave(t *testing.T) {
	r := newRepo(t)
	home := os.Getenv("HOME")
	must(t, os.MkdirAll(filepath.Join(home, ".config/git"), 0o755))
	must(t, os.WriteFile(filepath.Join(home, ".config/git/ignore"), []byte("*.user\n"), 0o644))
	r.write(".gitignore", "*.log\nbuild/\n!keep.log\n").write(".git/info/exclude", "*.local\n").write("sub/.gitignore", "/here\n")
	r.write("tracked.log", "").write("build/tracked", "").write("gone.log", "").write("uncached.log", "")
	r.git("add", "-A", "-f")
	r.git("commit", "-qm", "one")
	r.git("rm", "-q", "--cached", "uncached.log")
	must(t, os.Remove(filepath.Join(r.dir, "gone.log")))
	names := []string{"a.log", "keep.log", "build/o", "a.user", "a.local", "sub/here", "sub/there", "here", "added.log", "tracked.log", "build/tracked", "gone.log", "uncached.log", "old/only.log"}
	for _, name := range names {
		if name != "gone.log" {
			r.write(name, "x")
		}
	}
	r.git("add", "-f", "added.log")
	must(t, os.Mkdir(filepath.Join(r.dir, "hollow"), 0o755))
	want := "a.log:ignored build/o:ignored a.user:ignored a.local:ignored sub/here:ignored old/only.log:ignored"
	b, err := r.read("HEAD")
	must(t, err)
	if got := r.reasons(b, append(names, "build", "sub", "hollow")...); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if b.Leave("made/later", 0) != gitbase.Unlisted || b.Leave("made", fs.ModeDir) != "" {
		t.Error("what git has not seen")
	}
	// the user's own list can be named
	must(t, os.WriteFile(filepath.Join(home, "list"), []byte("here\n"), 0o644))
	r.git("config", "--global", "core.excludesFile", "~/list")
	b, err = r.read("HEAD")
	must(t, err)
	if got := r.reasons(b, "here", "a.user"); got != "here:ignored" {
		t.Errorf("with core.excludesFile: %s", got)
	}
}

// TestOtherRepositories: another repository in the project, a submodule, and what a sparse checkout has not.
func TestOtherRepositories(t *testing.T) {
	inner := newRepo(t)
	inner.write("f", "f")
	inner.git("add", "-A")
	inner.git("commit", "-qm", "one")
	r := newRepo(t)
	r.write("in/a", "a").write("out/b", "b").write("top", "t")
	r.git("submodule", "--quiet", "add", inner.dir, "sub")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	r.git("clone", "-q", inner.dir, "nested")
	r.git("sparse-checkout", "set", "--cone", "in")
	r.write("in/a", "changed")
	b, err := r.read("HEAD")
	must(t, err)
	if got := r.reasons(b, "in/a", "out/b", "top", "nested", "sub"); got != "out/b:sparse nested:repository sub:repository" {
		t.Error(got)
	}
	if got := b.LeftOut(); len(got) != 1 || got[0].Why != gitbase.Sparse || !slices.Equal(got[0].Paths, []string{"out/b"}) {
		t.Errorf("%v", got)
	}
	// one that is there although it need not be is compared
	r.write("out/b", "b")
	b, err = r.read("HEAD")
	must(t, err)
	if got := r.reasons(b, "out/b"); got != "" || b.LeftOut() != nil {
		t.Error(got)
	}
	r.git("sparse-checkout", "disable")
	must(t, os.RemoveAll(filepath.Join(r.dir, "sub")))
	r.write("sub", "a file")
	r.git("add", "-A")
	_, err = r.read("HEAD")
	if form, is := errors.AsType[*bundle.FormError](err); !is || form.Path != "sub" {
		t.Errorf("a submodule that became a file: %v", err)
	}
}

// TestPlaces: a project beneath the top, a linked work tree, a clone with the objects of another one, a
// split index; and outputs that are a part.
func TestPlaces(t *testing.T) {
	r := newRepo(t)
	r.write("top", "t").write("dir/a", "a").write("dir/b/c", "c").write("dirt", "d").write(".gitattributes", "dir/a eol=crlf text\n").write("dir/a", "a\n").write(".gitignore", "*.log\n")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	r.git("update-index", "--split-index")
	r.git("worktree", "add", "-q", "../linked")
	r.git("clone", "-q", "--shared", ".", "../shared")
	r.write("dir/x.log", "")
	before := r.picture()
	for _, dir := range []string{r.dir, filepath.Join(r.dir, "../linked"), filepath.Join(r.dir, "../shared")} {
		at := &repo{t, filepath.Clean(dir)}
		b, err := at.readAt("dir", "HEAD", bundle.Whole)
		must(t, err)
		if got := picked(b); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"a" 3 `) || !strings.Contains(got, `"b/c" 1 `) {
			t.Errorf("%s: %s", dir, got)
		}
		if dir == r.dir && b.Leave("x.log", 0) != gitbase.Ignored {
			t.Error("x.log is not ignored")
		}
		b, err = at.readAt("", "HEAD", "dir", "top")
		must(t, err)
		if got := len(b.List.Files); got != 3 {
			t.Errorf("%s: %d files of a part", dir, got)
		}
	}
	if now := r.picture(); now != before {
		t.Errorf("beneath .git was\n%s\nand is\n%s", before, now)
	}
}

// TestRevisions: what names a commit, and what does not.
func TestRevisions(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one")
	b, err := r.read("HEAD")
	must(t, err)
	if b.Commit != "" || len(b.List.Files) != 0 || b.Leave("a", 0) != "" {
		t.Errorf("without a commit: %+v", b)
	}
	if _, err := r.read("main"); err == nil {
		t.Error("a branch without a commit")
	}
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	r.git("tag", "-am", "v1", "v1")
	r.write("a", "two")
	r.git("commit", "-qam", "two")
	first, second := strings.TrimSpace(r.git("rev-parse", "HEAD~1")), strings.TrimSpace(r.git("rev-parse", "HEAD"))
	for revision, want := range map[string]string{"HEAD": second, "main": second, "v1": first, "HEAD~1": first, first[:8]: first, "HEAD@{1}": first, ":/one": first} {
		if b, err := r.read(revision); err != nil || b.Commit != want {
			t.Errorf("%q: %+v, %v", revision, b, err)
		}
	}
	for _, revision := range []string{"nope", "HEAD~5", "HEAD:a", "HEAD^{tree}", "--all", "-h", "main..v1", "^main", "", "a b", "HEAD\nmain", strings.Repeat("x", 5000)} {
		b, err := r.read(revision)
		if _, is := errors.AsType[*gitbase.RevisionError](err); !is || b != nil {
			t.Errorf("%q: %v", revision, err)
		}
	}
	// another commit in the place of one does not count
	r.git("replace", second, first)
	b, err = r.read("HEAD")
	must(t, err)
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("two"))); !strings.Contains(picked(b), want) {
		t.Error("refs/replace counts")
	}
	r.git("clone", "-q", "--depth=1", "file://"+r.dir, "../shallow")
	_, err = (&repo{t, filepath.Join(r.dir, "../shallow")}).read("HEAD~1")
	if e, is := errors.AsType[*gitbase.RevisionError](err); !is || !e.IsShallow {
		t.Errorf("a shallow clone: %v", err)
	}
}

// TestPartialClone: what a partial clone does not have is not fetched, and named.
func TestPartialClone(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one").write("b", "two")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	r.git("config", "uploadpack.allowFilter", "true")
	r.git("clone", "-q", "--no-checkout", "--filter=blob:none", "file://"+r.dir, "../partial")
	clone := &repo{t, filepath.Join(r.dir, "../partial")}
	before := clone.picture()
	_, err := clone.read("HEAD")
	if missing, is := errors.AsType[*gitbase.MissingError](err); !is || missing.Path != "a" {
		t.Errorf("%v", err)
	}
	if clone.picture() != before {
		t.Error("something beneath .git has changed")
	}
}

// TestNotHere: no git, no repository, a bare one, the git directory, and the environment of the caller.
func TestNotHere(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	r.git("clone", "-q", "--bare", ".", "../bare")
	for _, dir := range []string{"..", "../bare", ".git", ".git/objects"} {
		if _, err := r.readAt(dir, "HEAD", bundle.Whole); !errors.Is(err, gitbase.ErrNoRepository) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	for _, name := range []string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND", "GIT_CONFIG_COUNT", "GIT_TRACE"} {
		t.Setenv(name, filepath.Join(t.TempDir(), "none"))
	}
	if b, err := r.read("HEAD"); err != nil || len(b.List.Files) != 1 {
		t.Errorf("with GIT_* set: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "spectrum-git-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %q, %v", left, err)
	}
	old := t.TempDir()
	must(t, os.WriteFile(filepath.Join(old, "git"), []byte("#!/bin/sh\necho git version 2.31.9\n"), 0o755))
	path := os.Getenv("PATH")
	t.Setenv("PATH", old+":"+path)
	if _, err := r.read("HEAD"); !errors.Is(err, gitbase.ErrOldGit) {
		t.Errorf("an old git: %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := r.read("HEAD"); !errors.Is(err, gitbase.ErrNoGit) {
		t.Errorf("without git: %v", err)
	}
}

// TestNotOwned: a repository of another user is not read, unless this one has said so.
func TestNotOwned(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files to another user")
	}
	r := newRepo(t)
	r.write("a", "one")
	r.git("add", "-A")
	r.git("commit", "-qm", "one")
	if out, err := exec.CommandContext(t.Context(), "chown", "-R", "65534", r.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := r.read("HEAD"); !errors.Is(err, gitbase.ErrNotOwned) {
		t.Errorf("%v", err)
	}
	must(t, os.WriteFile(filepath.Join(os.Getenv("HOME"), ".gitconfig"), []byte("[safe]\n\tdirectory = "+r.dir+"\n"), 0o644))
	if _, err := r.read("HEAD"); err != nil {
		t.Errorf("%v", err)
	}
}

// TestInterrupted: git and what it has started end with the seal.
func TestInterrupted(t *testing.T) {
	r := newRepo(t)
	r.write("a", "one")
	slow := t.TempDir()
	must(t, os.WriteFile(filepath.Join(slow, "git"), []byte("#!/bin/sh\nsleep 1000\n"), 0o755))
	t.Setenv("PATH", slow+":"+os.Getenv("PATH"))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := gitbase.Read(ctx, gitbase.Options{Root: r.dir, Revision: "HEAD"})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
