package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A tree is a scratch copy of a checkout.
type tree struct {
	base string // holds the copy, and what is built of it
	dir  string
	bins map[string]string // of the tests without a patch, by package
}

// newTree copies the files of a checkout that git tracks, as they are now.
func newTree(checkout string) (*tree, error) {
	list, err := output(checkout, "git", "ls-files", "-z")
	if err != nil {
		return nil, err
	}
	base, err := os.MkdirTemp("", "spectrum-mutants-")
	if err != nil {
		return nil, err
	}
	t := &tree{base: base, dir: filepath.Join(base, "tree"), bins: map[string]string{}}
	err = os.Chmod(base, 0o755) // tests that act as another user must get through
	for name := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		if err == nil {
			err = copyFile(filepath.Join(checkout, name), filepath.Join(t.dir, name))
		}
	}
	if err != nil {
		t.remove()
		return nil, err
	}
	return t, nil
}

// remove removes the copy, also a directory in it that a test has closed.
func (t *tree) remove() {
	_ = filepath.WalkDir(t.base, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(t.base)
}

// copyFile copies a file or a link. One that is tracked and not there was removed.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm())
}

// apply patches the copy; git tolerates that lines have moved, and nothing else.
func (t *tree) apply(m *mutant) error {
	if _, err := output(t.dir, "git", "apply", m.path); err != nil {
		return fmt.Errorf("the patch no longer applies: seed the fault again, elsewhere if its code is gone: %w", err)
	}
	return nil
}

// revert takes the patch back.
func (t *tree) revert(m *mutant) error {
	_, err := output(t.dir, "git", "apply", "-R", m.path)
	return err
}

// output runs a command in a directory and returns what it prints. Git looks for no
// repository above the directory.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(out.String()+errs.String()))
	}
	return out.String(), nil
}

// tail returns the last lines of a text.
func tail(text string) string {
	const most = 40
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
