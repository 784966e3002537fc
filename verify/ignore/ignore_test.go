package ignore_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/pathsafe"
	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/ignore"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var must = harness.Must

// place is a project with ignore files; with files of these contents.
func place(t testing.TB, files map[string]string) (string, *pathsafe.Dir) {
	t.Helper()
	top := t.TempDir()
	for name, content := range files {
		must(t, os.MkdirAll(filepath.Join(top, filepath.Dir(name)), 0o755))
		must(t, os.WriteFile(filepath.Join(top, name), []byte(content), 0o644))
	}
	dir, err := pathsafe.OpenRoot(top)
	must(t, err)
	t.Cleanup(func() { dir.Close() })
	return top, dir
}

// leftOut reports whether a path is excluded when it is reached by a walk from the top.
func leftOut(t testing.TB, r *ignore.Rules, name string) bool {
	t.Helper()
	plain := strings.TrimSuffix(name, "/")
	for i := range len(plain) {
		if plain[i] != '/' {
			continue
		}
		why, err := r.Match(plain[:i], true)
		must(t, err)
		if why != "" {
			return true
		}
	}
	why, err := r.Match(plain, plain != name)
	must(t, err)
	return why != ""
}

func TestMatch(t *testing.T) {
	for _, c := range []struct{ patterns, out, in string }{
		{"*.log", "a.log b/c.log .log", "a.logs log"},
		{"# a\n\n\\#b\n\\!c", "#b !c d/#b", "# a"},
		{"build/", "build/ a/build/ build/x", "build a/build"},
		{"/top", "top top/", "a/top"},
		{"a/b", "a/b a/b/ a/b/c", "x/a/b"},
		{"**/a/b", "a/b x/a/b x/y/a/b", "a/x/b"},
		{"a/**/b", "a/b a/x/b a/x/y/b", "a b x/a/b"},
		{"a/**", "a/b a/b/c", "a a/ b/a"},
		{"*.o\n!keep.o", "a.o d/b.o", "keep.o d/keep.o"},
		{"d/\n!d/x", "d/ d/x", "x"},
		{"d/*\n!d/x", "d/y d/z/", "d/ d/x"},
		{"/*\n!/x", "a b/ b/x", "x x/y"},
		{"a?c", "abc aéc", "ac a/c abbc"},
		{"[a-c]x", "ax bx cx", "dx -x"},
		{"[!a]x", "bx -x", "ax"},
		{"a[^b]c", "axc", "a/c abc"},
		{"a[+-9]c", "a-c a5c", "a/c"},
		{"[]x]y", "]y xy", "y"},
		{"[a\\]]", "a ]", "\\"},
		{"[[:digit:]-]", "1 -", "a"},
		{"{a,b}", "{a,b}", "a b"},
		{"a**b", "ab axb", "a/b"},
		{"***", "a b/", ""},
		{"trail  ", "trail", "x"},
		{"\ufeffbom\r\nnext\r", "bom next", "x"},
		{"[z-a]x\n[--.]y", "-y .y", "ax zx"},
		{"[/]x", "", "x a/x"},
	} {
		_, dir := place(t, map[string]string{ignore.File: c.patterns})
		r, err := ignore.New(dir, nil)
		must(t, err)
		for _, name := range strings.Fields(c.out) {
			if !leftOut(t, r, name) {
				t.Errorf("%q does not leave out %q", c.patterns, name)
			}
		}
		for _, name := range strings.Fields(c.in) {
			if leftOut(t, r, name) {
				t.Errorf("%q leaves out %q", c.patterns, name)
			}
		}
	}
}

func TestSpaces(t *testing.T) {
	_, dir := place(t, map[string]string{ignore.File: "a\\ \nb c \n"})
	r, err := ignore.New(dir, nil)
	must(t, err)
	for name, want := range map[string]bool{"a ": true, "a": false, "b c": true, "b c ": false} {
		if leftOut(t, r, name) != want {
			t.Errorf("%q: %v", name, !want)
		}
	}
}

// TestFiles: the file of a directory decides before the one above, and what is given before
// all of them.
func TestFiles(t *testing.T) {
	_, dir := place(t, map[string]string{ignore.File: "*.x\n/only\n", "d/" + ignore.File: "!a.x\nb.y\n/top\n", "d/e/" + ignore.File: "a.x"})
	r, err := ignore.New(dir, []string{"c.z", "!f.x"})
	must(t, err)
	for name, want := range map[string]ignore.Reason{
		"a.x": ignore.ByFile, "d/a.x": "", "d/e/a.x": ignore.ByFile, "d/q/a.x": "", "b.y": "", "d/b.y": ignore.ByFile, "d/e/b.y": ignore.ByFile,
		"d/top": ignore.ByFile, "d/e/top": "", "only": ignore.ByFile, "d/only": "", "c.z": ignore.ByGiven, "d/c.z": ignore.ByGiven, "f.x": "", "d/e/f.x": "",
	} {
		if got, err := r.Match(name, false); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestRejected(t *testing.T) {
	for _, text := range []string{"a[", "[]", "[!", "[a-", "a\\", "\xff", "/", "//", "//a", "a//b", "a//", "!", "!/", "[[:nope:]]", "[\\", strings.Repeat("x", ignore.MaxPattern+1)} {
		_, dir := place(t, map[string]string{ignore.File: "fine\n" + text + "\nalso"})
		r, err := ignore.New(dir, nil)
		must(t, err)
		if why, err := r.Match("x", false); !errors.Is(err, ignore.ErrPattern) || why != "" || !strings.Contains(err.Error(), "line 2: ") {
			t.Errorf("%q: %q, %v", text, why, err)
		}
		if r, err := ignore.New(dir, []string{text}); !errors.Is(err, ignore.ErrPattern) || r != nil {
			t.Errorf("%q given: %v", text, err)
		}
	}
	for _, text := range []string{"", " ", "# a"} {
		if _, err := ignore.New(nil, []string{text}); !errors.Is(err, ignore.ErrPattern) {
			t.Errorf("%q given: %v", text, err)
		}
	}
}

// TestUnreadable: rules that cannot be read are not passed over.
func TestUnreadable(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"link":      func(path string) error { return os.Symlink("other", path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o755) },
		"FIFO":      func(path string) error { return unix.Mkfifo(path, 0o644) },
		"large":     func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte("#"), ignore.MaxFile+1), 0o644) },
	} {
		top, dir := place(t, map[string]string{"other": "x", "d/y": ""})
		must(t, make(filepath.Join(top, "d", ignore.File)))
		r, err := ignore.New(dir, nil)
		must(t, err)
		if why, err := r.Match("d/x", false); err == nil || why != "" || !strings.Contains(err.Error(), `"d/.spectrumignore"`) {
			t.Errorf("%s: %q, %v", name, why, err)
		}
		if why, err := r.Match("x", false); why != "" || err != nil {
			t.Errorf("%s: above it: %q, %v", name, why, err)
		}
	}
}

// TestAsGit compares the rules with those of git, for any patterns of ASCII.
func TestAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not there")
	}
	names := []string{"a", "b", "ab", "a.b", "-", "!a", "#", "]", "{a}", "a b", "9", "ba/", "ba/a", "ba/ab", "ba/b/", "ba/b/a", "ba/b/b/", "ba/b/b/a", "aa/", "aa/ba/", "aa/ba/a.b"}
	piece := rapid.SampledFrom([]string{"a", "b", "*", "**", "***", "?", "/", "/", "/**/", "[ab]", "[!a]", "[^b]", "[]a]", "[+-9]", "[a-]", "[[:alpha:]]", "[![:digit:]b]", `\a`, `\*`, "{", "}", ".", " ", `\ `, "#", "!", "-", "9", "/***/", "/**"})
	line := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "", "", "!", "/"}).Draw(t, "front") + strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(t, "pieces"), "") + rapid.SampledFrom([]string{"", "", "/"}).Draw(t, "end")
	})
	git := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "git", "-c", "init.defaultBranch=x", "init", "-q", git).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range names {
		must(t, os.MkdirAll(filepath.Join(git, filepath.Dir(name+"x")), 0o755))
		if !strings.HasSuffix(name, "/") {
			must(t, os.WriteFile(filepath.Join(git, name), nil, 0o644))
		}
	}
	harness.Checks(t, 200)
	rapid.Check(t, func(rt *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 1, 4).Draw(rt, "lines"), "\n")
		if regexp.MustCompile(`[^/*\n]\*\*`).MatchString(text) {
			rt.Skip("git takes a** for a/** in some places")
		}
		must(t, os.WriteFile(filepath.Join(git, ".git/info/exclude"), []byte(text), 0o644))
		want := ignoredByGit(t, git, names)
		must(t, os.WriteFile(filepath.Join(git, ignore.File), []byte(text), 0o644))
		dir, err := pathsafe.OpenRoot(git)
		must(t, err)
		defer dir.Close()
		r, err := ignore.New(dir, nil)
		must(t, err)
		if _, err := r.Match("x", false); errors.Is(err, ignore.ErrPattern) {
			rt.Skip("rejected")
		}
		for _, name := range names {
			if got := leftOut(t, r, name); got != slices.Contains(want, strings.TrimSuffix(name, "/")) {
				rt.Fatalf("%q leaves out %q: %v, and by git %v", text, name, got, !got)
			}
		}
	})
}

// ignoredByGit returns the names that git ignores.
func ignoredByGit(t testing.TB, dir string, names []string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z", "--stdin")
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(strings.Join(names, "\x00"), "/\x00", "\x00") + "\x00")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatal(fmt.Errorf("git check-ignore: %w", err))
	}
	return strings.Split(string(out), "\x00")
}
