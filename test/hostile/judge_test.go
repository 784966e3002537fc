package hostile

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/tree"
	"golang.org/x/sys/unix"
)

// A census is all that is beneath a directory, with the times of change: a line
// for each path. Nothing is opened but directories, and other mounts are not
// entered.
type census map[string]string

// take makes a census of a directory, or of one that a link leads to.
func take(dir string) (census, error) {
	c, dev := census{}, uint64(0)
	return c, tree.Walk(dir+"/", func(path string, n *tree.Node, err error) error {
		switch {
		case err != nil:
			c[path] = err.Error()
			return nil
		case path == ".":
			dev = n.Dev
		}
		if c[path] = line(n); n.IsDir() && n.Dev != dev {
			return fs.SkipDir
		}
		return nil
	})
}

func line(st *tree.Node) string {
	return fmt.Sprintf("mode %o, inode %d, %d links, owner %d:%d, %d bytes, modified %d, changed %d",
		st.Mode, st.Ino, st.Nlink, st.Uid, st.Gid, st.Size, st.Mtim.Nano(), st.Ctim.Nano())
}

// diff names what is not the same in two censuses, but for what is allowed to
// change.
func diff(before, after census, allowed func(path string) bool) string {
	var lines []string
	names := maps.Clone(before)
	maps.Copy(names, after)
	for _, name := range sorted(names) {
		if before[name] != after[name] && !allowed(name) {
			lines = append(lines, fmt.Sprintf("  %.300q: %s, then %s", name, orNothing(before[name]), orNothing(after[name])))
		}
	}
	return few(lines)
}

// few keeps a report readable.
func few(lines []string) string {
	const enough = 8
	if n := len(lines); n > enough {
		lines = append(lines[:enough:enough], fmt.Sprintf("  and %d more", n-enough))
	}
	return strings.Join(lines, "\n")
}

func orNothing(line string) string {
	if line == "" {
		return "nothing"
	}
	return line
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// A picture is all that a command must not change.
type picture struct {
	tree, root census // the root's own, since it may be another mount
	mounts     string
}

func (p *place) picture() (pic picture) {
	p.Helper()
	var err error
	pic.tree, err = take(p.top)
	harness.Must(p, err)
	if pic.root, err = take(p.root); err != nil {
		pic.root = census{".": err.Error()} // no directory, or a dead one
	}
	pic.mounts = mounts(p, p.top)
	return pic
}

// below is a path below top.
func (p *place) below(path string) string {
	p.Helper()
	rel, err := filepath.Rel(p.top, path)
	harness.Must(p, err)
	return rel
}

// changed fails if anything has changed since, but for what is allowed, by its
// path below top.
func (p *place) changed(before picture, command string, allowed func(path string) bool) {
	p.Helper()
	for _, change := range p.changes(before, p.picture(), allowed) {
		p.Errorf("%s: %s", command, change)
	}
}

// changes are what is not the same in two pictures. The state directory is the
// program's own.
func (p *place) changes(before, now picture, allowed func(path string) bool) (found []string) {
	p.Helper()
	free := func(path string) bool { return harness.Inside(path, "state") || p.restless[path] || allowed(path) }
	root := p.below(p.root)
	for what, d := range map[string]string{
		"it changed what it must not": diff(before.tree, now.tree, free),
		"it changed the restore root": diff(before.root, now.root, func(path string) bool { return free(filepath.Join(root, path)) }),
		"it leaves a mount, or none":  unequal(before.mounts, now.mounts),
	} {
		if d != "" {
			found = append(found, what+":\n"+d)
		}
	}
	return found
}

func unequal(before, now string) string {
	if before == now {
		return ""
	}
	return fmt.Sprintf("  %q\n  before: %q", now, before)
}

// mounts is the part of the mount table that is beneath a directory.
func mounts(t testing.TB, dir string) string {
	t.Helper()
	var lines []string
	for entry := range strings.Lines(harness.ReadFile(t, "/proc/self/mountinfo")) {
		if strings.Contains(entry, " "+dir+"/") {
			lines = append(lines, entry)
		}
	}
	return strings.Join(lines, "")
}

// processes are the command lines that name a directory.
func processes(t testing.TB, dir string) string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	harness.Must(t, err)
	var found []string
	for _, name := range all {
		text, err := os.ReadFile(name) // it may be gone by now
		if err == nil && strings.Contains(string(text), dir+"/") {
			found = append(found, fmt.Sprintf("%s: %.300q", name, text))
		}
	}
	return strings.Join(found, "\n")
}

// contents are all regular files beneath a directory; an entry that is neither a file nor a
// directory is there with its type.
func contents(dir string) (map[string]string, error) {
	files := map[string]string{}
	return files, tree.Walk(dir+"/", func(path string, n *tree.Node, err error) error {
		switch {
		case err != nil || n.IsDir():
			return err
		case n.Kind() != unix.S_IFREG:
			files[path] = fmt.Sprintf("type %o", n.Kind())
			return nil
		}
		files[path], err = n.Content()
		return err
	})
}

// difference names what is not the same in two sets of files.
func difference(want, got map[string]string) string {
	var lines []string
	names := maps.Clone(want)
	maps.Copy(names, got)
	for _, name := range sorted(names) {
		w, wanted := want[name]
		g, there := got[name]
		if wanted != there || w != g {
			lines = append(lines, fmt.Sprintf("  %.300q: want %.500q (%v), got %.500q (%v)", name, w, wanted, g, there))
		}
	}
	return few(lines)
}

// judge says what is wrong with an answer: the verdict decides exit status, code
// and phase.
func judge(want verdict, r reply) error {
	switch {
	case r.hung:
		return fmt.Errorf("it hangs: %v", r)
	case strings.Contains(r.stderr, "panic") || strings.Contains(r.stderr, "goroutine ") || strings.Contains(r.stderr, "DATA RACE"):
		return fmt.Errorf("it broke down: %v", r)
	case !json.Valid([]byte(r.stdout)) || strings.TrimSpace(r.stdout) != r.stdout && r.command != "mount":
		return fmt.Errorf("stdout is not one JSON value: %v", r)
	}
	code := r.code()
	if want == taken {
		want = refusal
	}
	if !slices.Contains(want.codes(), code) || r.status != status(code) && !(r.status == 74 && isFaulty(code)) || (code == string(accepted)) != (r.answer.OK || r.answer.PreviewID != "") {
		return fmt.Errorf("want %s, got %v", want, r)
	}
	phase, ofLaw := phases[code]
	if ofLaw && r.answer.Phase != phase || ofLaw && r.answer.Cause != nil {
		return fmt.Errorf("want phase %s of %s, got %v", phase, code, r)
	}
	return nil
}

// isFaulty reports whether a code may come of a fault of the machine before anything is
// written: that of a root on a file system that is read-only, or whose server has gone.
func isFaulty(c string) bool { return c == "RESTORE_TARGET_NOT_WRITABLE" }
