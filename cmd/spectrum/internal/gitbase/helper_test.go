package gitbase_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/gitbase"
	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundle"
)

var must = harness.Must

// repo is a repository of a test.
type repo struct {
	t   testing.TB
	dir string
}

// newRepo makes an empty one, for a user without any settings.
func newRepo(t testing.TB, args ...string) *repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", "")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	r := &repo{t, filepath.Join(dir, "repo")}
	must(t, os.Mkdir(r.dir, 0o755))
	r.git(append([]string{"-c", "init.defaultBranch=main", "init", "-q"}, args...)...)
	return r
}

// git runs git in the repository.
func (r *repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir = r.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return string(out)
}

func (r *repo) write(name, content string) *repo {
	r.t.Helper()
	path := filepath.Join(r.dir, name)
	must(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(r.t, os.WriteFile(path, []byte(content), 0o644))
	return r
}

func (r *repo) add(name, content string) {
	r.t.Helper()
	raw, err := os.ReadFile(filepath.Join(r.dir, name))
	must(r.t, err)
	r.write(name, string(raw)+content)
}

// replace puts something else in the place of a file of the git directory.
func (r *repo) replace(name string, make func(path string) error) {
	r.t.Helper()
	path := filepath.Join(r.dir, ".git", name)
	_ = os.Remove(path)
	must(r.t, make(path))
}

// read reads the whole repository.
func (r *repo) read(revision string) (*gitbase.Base, error) {
	return r.readAt("", revision, bundle.Whole)
}

// readAt reads a directory of it.
func (r *repo) readAt(dir, revision string, outputs ...string) (*gitbase.Base, error) {
	r.t.Helper()
	root := filepath.Join(r.dir, dir)
	project, err := pathsafe.OpenRoot(root)
	must(r.t, err)
	defer project.Close()
	return gitbase.Read(r.t.Context(), gitbase.Options{Project: project, Root: root, Revision: revision, Outputs: outputs})
}

// picture is all of the git directory: a line for each name, with all that a write changes.
type picture string

func (r *repo) picture() picture {
	r.t.Helper()
	var b strings.Builder
	must(r.t, filepath.WalkDir(filepath.Join(r.dir, ".git"), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		rel, _ := filepath.Rel(filepath.Join(r.dir, ".git"), path)
		fmt.Fprintf(&b, "%s %d %o %d %v %v\n", rel, st.Ino, st.Mode, st.Size, st.Mtim, st.Ctim)
		return nil
	}))
	return picture(b.String())
}

// without is a picture without the lines of a path and what is beneath it.
func (p picture) without(path string) picture {
	var b strings.Builder
	for line := range strings.Lines(string(p)) {
		if !strings.HasPrefix(line, path) {
			b.WriteString(line)
		}
	}
	return picture(b.String())
}
