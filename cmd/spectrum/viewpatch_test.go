package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/verify/bundletest"
)

// changes is changes.patch of a view now, and what "spectrum diff" prints.
func (p *proposed) changes() (shown []byte, printed string) {
	p.t.Helper()
	file, err := os.Open(p.control("changes.patch"))
	check(p.t, err)
	defer file.Close()
	info, err := file.Stat()
	check(p.t, err)
	var all bytes.Buffer
	_, err = all.ReadFrom(file)
	check(p.t, err)
	if info.Size() != int64(all.Len()) || info.Mode() != 0o400 {
		p.t.Errorf("%d bytes, stat says %d, mode %v", all.Len(), info.Size(), info.Mode())
	}
	printed, _, _ = spectrum(p.t, "diff", p.run.Dir, p.root)
	return all.Bytes(), printed
}

// TestChangesOfAView: the patch is that of "spectrum diff" whenever it is opened, whatever becomes
// of the root meanwhile; who has it open keeps the one that he has opened.
func TestChangesOfAView(t *testing.T) {
	p := propose(t)
	before := p.status()
	kept, err := os.Open(p.control("changes.patch"))
	check(t, err)
	defer kept.Close()
	first, printed := p.changes()
	if string(first) != printed || !strings.Contains(printed, "+++ b/a\n@@ -0,0 +1,1 @@\n+alpha\n\\ No newline") {
		t.Errorf("%s\n%s", first, printed)
	}
	if again, _ := p.changes(); !bytes.Equal(again, first) {
		t.Errorf("%s", again)
	}
	for _, content := range []string{"old\n", "odd\n", "\x00"} { // two of one length, at once
		check(t, os.WriteFile(filepath.Join(p.root, "a"), []byte(content), 0o600))
		shown, printed := p.changes()
		if string(shown) != printed || bytes.Equal(shown, first) {
			t.Errorf("%q: %s\n%s", content, shown, printed)
		}
		if content != "\x00" {
			if err := apply(t, appliers["git"][0], p.root, shown); err != nil || !bytes.Contains(shown, []byte("-"+content)) {
				t.Errorf("%v\n%s", err, shown)
			}
		}
	}
	check(t, os.Remove(filepath.Join(p.root, "a")))
	if shown, printed := p.changes(); string(shown) != printed || !bytes.Equal(shown, first) {
		t.Errorf("%s\n%s", shown, printed)
	}
	for name, content := range map[string]string{"a": "alpha", "b": "beta"} {
		check(t, os.WriteFile(filepath.Join(p.root, name), []byte(content), 0o600))
	}
	if shown, printed := p.changes(); string(shown) != printed || bytes.Contains(shown, []byte("diff --git")) {
		t.Errorf("%s\n%s", shown, printed)
	}
	old := make([]byte, len(first)+1)
	if n, _ := kept.ReadAt(old, 0); !bytes.Equal(old[:n], first) {
		t.Errorf("%s", old[:n])
	}
	if after := p.status(); after.Tampered != before.Tampered || after.Reads != before.Reads || after.ViewID != before.ViewID {
		t.Errorf("%+v, before %+v", after, before)
	}
}

// TestChangesOfATamperedView: a patch is made of checked bytes alone, or not at all, and the view
// has found it.
func TestChangesOfATamperedView(t *testing.T) {
	p := propose(t)
	commands := p.commands()
	harness.Flip(t, filepath.Join(p.project.Root, "b"), 1)
	for range 2 {
		if shown, err := os.ReadFile(p.control("changes.patch")); !errors.Is(err, syscall.EIO) || len(shown) > 0 {
			t.Errorf("%q, %v", shown, err)
		}
	}
	if s := p.status(); !s.Tampered || s.Findings != 1 || s.Tampering[0].Path != "b" {
		t.Errorf("%+v", s)
	}
	p.rejects(commands, statusRejected, "VIEW_TAMPERED")
}

// TestChangesOfAnotherRoot: what took the place of the restore root is not read.
func TestChangesOfAnotherRoot(t *testing.T) {
	p := propose(t)
	check(t, os.Rename(p.root, p.root+".moved"))
	check(t, os.Mkdir(p.root, 0o755))
	if shown, err := os.ReadFile(p.control("changes.patch")); !errors.Is(err, syscall.EIO) || len(shown) > 0 {
		t.Errorf("%q, %v", shown, err)
	}
	if s := p.status(); s.Tampered {
		t.Errorf("%+v", s)
	}
	check(t, os.Remove(p.root))
	check(t, os.Rename(p.root+".moved", p.root))
	if shown, printed := p.changes(); string(shown) != printed {
		t.Errorf("%s\n%s", shown, printed)
	}
}

// TestChangesHideNothing: a patch has the lines of a text as they are, since it is exact, and says
// where there is something in them that cannot be seen; everything else in it can be.
func TestChangesHideNothing(t *testing.T) {
	const name = "good\u202e\u3164\x1b"
	p := &proposed{project: bundletest.New(t), root: t.TempDir()}
	p.run = p.project.Run("run", map[string]string{name: "a\u202e\u3164\n\u00e9\n", "esc": "\x1b[2J", "plain": "a\r\n\tb\n"})
	p.mounted = startView(t, "--restore-root", p.root, p.run.Dir)
	shown, printed := p.changes()
	if string(shown) != printed {
		t.Errorf("%s\n%s", shown, printed)
	}
	for line := range strings.Lines(string(shown)) {
		if hiddenLines([]byte(line)) > 0 && line != "+a\u202e\u3164\n" {
			t.Errorf("%q", line)
		}
	}
	if !strings.Contains(printed, "# characters that cannot be seen are in 1 line below\ndiff --git \"a/good\\342\\200\\256\\343\\205\\244\\033\"") {
		t.Error(printed)
	}
	if strings.Count(printed, "cannot be seen") != 1 || strings.Contains(printed, "\x1b") {
		t.Error(printed)
	}
}

// TestChangesAreOfOneRoot: a view without a restore root has none, and does not list it.
func TestChangesAreOfOneRoot(t *testing.T) {
	project := bundletest.New(t)
	run := project.Run("run", map[string]string{"a": "a"})
	v, all := startView(t, run.Dir), mountAll(t, project)
	for _, file := range []string{v.control("changes.patch"), all.control("changes.patch"), all.at("run", ".spectrum", "changes.patch")} {
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// TestChangesAreMadeAnew: a patch is kept for as long as nothing in the root is another thing, and
// not at all where something in it has just changed; nothing is made for a view that ends.
func TestChangesAreMadeAnew(t *testing.T) {
	p := pair{dir: t.TempDir(), links: map[string]string{"link": "real"}, old: map[string]*side{"a": {"1\n", false}}, young: map[string]*side{"a": {"2\n", false}, "link/b": {"3\n", false}}}
	p.plant(t)
	d := p.diff(t)
	c, err := newChanges(d.plan, slices.Values(d.candidate), d.root, "")
	check(t, err)
	made, err := c.patch(nil)
	if check(t, err); len(made) == 0 || c.settled {
		t.Errorf("settled %v: %s", c.settled, made)
	}
	at := filepath.Join(p.dir, "a")
	for n, change := range []func() error{
		func() error { return os.WriteFile(at, []byte("4\n"), 0o600) },
		func() error { return os.Chmod(at, 0o755) },
		func() error { return os.WriteFile(filepath.Join(p.dir, "real", "b"), nil, 0o600) },
		func() error { return os.Remove(at) },
		func() error { return os.Mkdir(at, 0o700) },
		func() error { return os.Remove(filepath.Join(p.dir, "link")) },
	} {
		_, err := c.patch(nil)
		check(t, err)
		c.settled, c.text = true, []byte("kept")
		if made, err := c.patch(nil); err != nil || string(made) != "kept" {
			t.Errorf("%d: %v, %s", n, err, made)
		}
		check(t, change())
		if made, err := c.patch(nil); err != nil || string(made) == "kept" {
			t.Errorf("%d: %v, %s", n, err, made)
		}
	}
	ended := make(chan struct{})
	close(ended)
	c.settled = false
	if made, err := c.patch(ended); err == nil || made != nil {
		t.Errorf("%q, %v", made, err)
	}
}
