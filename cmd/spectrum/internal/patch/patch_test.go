package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/spectrumfs/spectrum/cmd/spectrum/internal/patch"
	"github.com/spectrumfs/spectrum/test/harness"
	"pgregory.net/rapid"
)

var must = harness.Must

// change is a file of two trees; what is not there is nil.
type change struct {
	path       string
	old, young *patch.Version
}

func text(content string) *patch.Version {
	return &patch.Version{Mode: 0o644, Content: []byte(content)}
}

func program(content string) *patch.Version {
	return &patch.Version{Mode: 0o755, Content: []byte(content)}
}

var changes = []change{
	{"plain", text("a\nb\nc\n"), text("a\nB\nc\n")},
	{"with space", text("a\n"), text("b\n")},
	{" leading and trailing ", text("a\n"), text("b\n")},
	{`quote"d`, text("a\n"), text("b\n")},
	{"tab\tand\nline", text("a\n"), text("b\n")},
	{"grün/été", text("ä\n"), text("ö\n")},
	{"bidi\u202e", text("a\n"), text("b\u202e\n")},
	{"no end", text("a\nb"), text("a\nc")},
	{"end added", text("a\nb"), text("a\nb\n")},
	{"end removed", text("a\nb\n"), text("a\nb")},
	{"carriage", text("a\r\nb\r\n"), text("a\r\nc\r\n")},
	{"emptied", text("a\nb\n"), text("")},
	{"filled", text(""), text("a\nb\n")},
	{"new", nil, text("a\nb\n")},
	{"new no end", nil, text("a")},
	{"new empty", nil, text("")},
	{"made/in/a directory", nil, text("--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n")},
	{"new program", nil, program("#!/bin/sh\n")},
	{"mode", text("a\n"), program("a\n")},
	{"mode and more", program("a\n"), text("b\n")},
	{"removed", text("a\nb\n"), nil},
	{"removed no end", program("a\nb"), nil},
	{"removed empty", text(""), nil},
	{"removed empty program", program(""), nil},
	{"gone in/a\ndirectory", text("a\r\n"), nil},
	{"deep/dev/null", nil, text("a\n")},
	{"gone/dev/null", text("a\n"), nil},
	{"empty/dev/null", nil, text("")},
	{"backslash\\", text("a\n"), text("b\n")},
	{"\xff\xfe latin \xe9", text("a\n"), text("b\n")},
	{"d\u00e9j\u00e0 \u202e", nil, text("")},
	{"looks like one", text("-- a\n++ b\n"), text("++ b\n-- a\n@@ -1 +1 @@\n")},
	{"-dash", text("a\n"), text("b\n")},
	{"/dev/null"[1:], text("a\n"), text("b\n")},
}

// plant writes one side of some changes.
func plant(t testing.TB, dir string, all []change) {
	t.Helper()
	for _, c := range all {
		if c.old == nil {
			continue
		}
		name := filepath.Join(dir, c.path)
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, c.old.Content, 0o600))
		must(t, os.Chmod(name, c.old.Mode))
	}
}

// demand requires the other side.
func demand(t testing.TB, dir string, all []change) {
	t.Helper()
	for _, c := range all {
		got, err := os.ReadFile(filepath.Join(dir, c.path))
		if c.young == nil {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%q: %q, %v", c.path, got, err)
			}
			continue
		}
		if err != nil || !bytes.Equal(got, c.young.Content) {
			t.Errorf("%q: %q, %v, want %q", c.path, got, err, c.young.Content)
			continue
		}
		info, err := os.Stat(filepath.Join(dir, c.path))
		must(t, err)
		if info.Mode()&0o100 != c.young.Mode&0o100 {
			t.Errorf("%q: mode %v, want %v", c.path, info.Mode(), c.young.Mode)
		}
	}
}

// appliers are the programs that must accept a patch: first tried, then carried out.
var appliers = map[string][][]string{
	"git":   {{"git", "apply", "--check", "-"}, {"git", "apply", "-"}},
	"patch": {{"patch", "-s", "-p1", "--dry-run"}, {"patch", "-s", "-p1"}},
}

// accepted has each program apply a patch in a copy of the old side.
func accepted(t testing.TB, made []byte, all []change) {
	t.Helper()
	for name, steps := range appliers {
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("%s is not there", name)
			continue
		}
		dir, err := os.MkdirTemp(t.TempDir(), "")
		must(t, err)
		plant(t, dir, all)
		for _, argv := range steps {
			cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			cmd.Dir, cmd.Stdin = dir, bytes.NewReader(made)
			cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%q: %v\n%s\n%s", argv, err, out, made)
				return
			}
		}
		demand(t, dir, all)
	}
}

// TestAccepted: each change by itself, and all of them with the lines between them that
// "spectrum diff" has.
func TestAccepted(t *testing.T) {
	var all bytes.Buffer
	for _, c := range changes {
		made := patch.Text(c.path, c.old, c.young)
		accepted(t, made, []change{c})
		fmt.Fprintf(&all, "# conflict %q 3 bytes abc, there: 4 bytes def\n%s", c.path, made)
	}
	all.WriteString("# create \"x\" 3 bytes abc; no lines: it is not text\n# DIFFERS abc 3 of 4 files\n")
	accepted(t, all.Bytes(), changes)
}

func TestSameContentHasNoPatch(t *testing.T) {
	if made := patch.Text("x", text("a"), text("a")); made != nil {
		t.Errorf("%s", made)
	}
}

func TestName(t *testing.T) {
	for name, want := range map[string]string{
		"a/b.txt": "a/b.txt", "a/grün": "a/grün", "a b": `"a b"`, `a"b`: `"a\"b"`, "a\tb\n": `"a\011b\012"`, "a\u202eé": `"a\342\200\256\303\251"`, "a\xff": `"a\377"`, "a\x7f": `"a\177"`,
	} {
		if got := patch.Name(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

// TestIsGits: git and this agree on which paths it applies no patch to.
func TestIsGits(t *testing.T) {
	for path, want := range map[string]bool{
		".git/config": true, "a/.GIT/x": true, "a/.git": true, "git~1/x": true, ".git./x": true, ".git ..": true, ".git:x": true, `.git\x`: true,
		".gitignore": false, ".github/x": false, "git": false, "x.git/y": false, "git~2": false, ".git~1": false, "a/b": false, "gi\u200ct": false,
	} {
		if patch.IsGits(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
		cmd := exec.CommandContext(t.Context(), "git", "apply", "--check", "-")
		cmd.Dir, cmd.Stdin = t.TempDir(), bytes.NewReader(patch.Text(path, nil, text("a\n")))
		cmd.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(cmd.Dir), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); (err != nil) != want {
			t.Errorf("%q: git: %v %s", path, err, out)
		}
	}
	if !patch.IsGits(".g\u200cit/config") {
		t.Error("HFS+ takes it for .git")
	}
}

func TestCount(t *testing.T) {
	added, removed := patch.Count(patch.Text("x", text("a\nb\nc"), text("a\n-x\n+y\nc\n")))
	if added != 3 || removed != 2 {
		t.Errorf("%d, %d", added, removed)
	}
}

func TestIsText(t *testing.T) {
	for content, want := range map[string]bool{"": true, "a\tb\r\n": true, "a\rb": false, "\x1b[2J": false, "\xff": false, "a\x00": false, "\u202e": true, "\u0085": false} {
		if patch.IsText([]byte(content)) != want {
			t.Errorf("%q: %v", content, !want)
		}
	}
}

// TestAnyAccepted: patches of any texts.
func TestAnyAccepted(t *testing.T) {
	line := rapid.SampledFrom([]string{"a\n", "b\n", "-a\n", "+b\n", " c\n", "\n", "\\ d\n", "@@ -1 +1 @@\n", "é\r\n", "--- a/x\n"})
	content := rapid.Custom(func(t *rapid.T) string {
		var b bytes.Buffer
		for _, l := range rapid.SliceOfN(line, 0, 12).Draw(t, "lines") {
			b.WriteString(l)
		}
		b.WriteString(rapid.SampledFrom([]string{"", "", "end"}).Draw(t, "end"))
		return b.String()
	})
	mode := rapid.SampledFrom([]fs.FileMode{0o644, 0o755})
	harness.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		c := change{rapid.SampledFrom([]string{"x", "d/x y"}).Draw(rt, "name"), nil, &patch.Version{Mode: mode.Draw(rt, "mode"), Content: []byte(content.Draw(rt, "young"))}}
		if rapid.Bool().Draw(rt, "there") {
			c.old = &patch.Version{Mode: mode.Draw(rt, "old mode"), Content: []byte(content.Draw(rt, "old"))}
			if rapid.Bool().Draw(rt, "removed") {
				c.young = nil
			}
		}
		if made := patch.Text(c.path, c.old, c.young); len(made) > 0 {
			accepted(t, made, slices.Clone([]change{c}))
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
}
