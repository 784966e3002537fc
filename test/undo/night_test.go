package undo

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
)

// A story is what happens in a night before a person comes.
type story struct {
	commits    []changes // at least one
	whole      bool      // a person took a snapshot of the whole root before the last commit
	killed     int       // the last commit is killed before this changing call; 0: it is not
	edits      []string  // by the user, of edits
	undone     int       // a rollback is killed before this changing call; 0: there is none
	damages    []loss
	isOrdinary bool // the program runs as an ordinary user
}

// changes are the names that a commit creates, replaces and removes, and those that it makes executable or not.
type changes struct{ creates, replaces, removes, modes []string }

// A loss is what becomes of a file of the state directory: of those that match the pattern, the one
// of this number, counted from 0, modulo their count.
type loss struct {
	pattern string
	nth     int
	kind    string
}

// standingFiles are in a root before its first commit.
var standingFiles = []string{"bin/tool", "data/deep/x.bin", "doc/one.txt", "doc/two.txt", "keep.txt"}

// newFiles are the names that commits create.
var newFiles = []string{"doc/three.txt", "empty", "new/a.txt", "new/sub/b.txt", "other/deep/c.txt", "top.txt"}

// stateParts are the files and directories of a state directory, by pattern; those on which a rollback depends are there
// more than once.
var stateParts = []string{
	"audit.log", "audit.log", "journal.key", "host.pem", "key.pem", "roots.log", "candidates.log", "attempts/*",
	"previews/*.json", "previews/*.used", "savepoints/*/chain/*/*", "savepoints/*/chain/*/*", "savepoints/*/*/*",
	"snapshots/roots/*/*", "snapshots/roots/*/*", "snapshots/objects/*/*", "snapshots/objects/*/*", "rolled-back/*",
	"snapshots", "snapshots/roots/*", "savepoints", "savepoints/*/*", "savepoints/*/chain/*",
}

// edits are what a user does in the root after the last commit.
var edits = []string{"own file", "edits a committed file", "file in a new directory", "edits another file", "removes a committed file"}

// lossKinds are what becomes of a file. The last kind is for an ordinary user: root reads all.
var lossKinds = []string{"removed", "cut", "emptied", "changed", "directory", "unreadable"}

// randomStory returns a story.
func randomStory(r *rand.Rand) story {
	var s story
	there := slices.Clone(standingFiles)
	some := func(from []string, most int) []string {
		from = slices.Clone(from)
		r.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		return from[:min(len(from), r.IntN(most+1))]
	}
	for range 1 + r.IntN(3) {
		absent := slices.DeleteFunc(slices.Clone(newFiles), func(name string) bool { return slices.Contains(there, name) })
		c := changes{creates: []string{absent[r.IntN(len(absent))]}}
		c.replaces = some(there, 2)
		rest := slices.DeleteFunc(slices.Clone(there), func(name string) bool { return slices.Contains(c.replaces, name) })
		c.modes = some(rest, 1)
		c.removes = some(slices.DeleteFunc(rest, func(name string) bool { return slices.Contains(c.modes, name) }), 1)
		there = slices.DeleteFunc(append(there, c.creates...), func(name string) bool { return slices.Contains(c.removes, name) })
		s.commits = append(s.commits, c)
	}
	s.isOrdinary, s.whole = os.Geteuid() == 0 && r.IntN(3) == 0, r.IntN(3) == 0
	if r.IntN(3) == 0 {
		s.killed = 1 + r.IntN(mostCalls)
	}
	s.edits = some(edits, 2)
	if r.IntN(4) == 0 {
		s.undone = 1 + r.IntN(mostCalls)
	}
	kinds := lossKinds
	if !s.isOrdinary && os.Geteuid() == 0 {
		kinds = kinds[:len(kinds)-1]
	}
	for range min(2, r.IntN(4)) {
		s.damages = append(s.damages, loss{stateParts[r.IntN(len(stateParts))], r.IntN(50), kinds[r.IntN(len(kinds))]})
	}
	return s
}

// mostCalls is about how many changing calls a commit or rollback of a night has.
const mostCalls = 120

// A night is a story that has happened.
type night struct {
	t         *testing.T
	story     story
	dir       string // all of it
	root      string
	state     string
	user      int
	told      []string        // what happened, and what the person has typed and read
	before    harness.Tree    // the root before the last commit
	committed harness.Tree    // after it
	edited    harness.Tree    // and after the edits of the user
	names     map[string]bool // that the last commit changes, with the directories that it creates
	whole     harness.Tree    // what the snapshot of the whole root has
	isDamaged map[string]bool // the first parts of the paths of damaged files
	typed     map[string]bool // commands, each with the state that it was typed in
	start     harness.Tree    // the root when the person comes
	read      string          // by the person
	restored  bool            // the person has restored a snapshot
}

func newNight(t *testing.T, s story) *night {
	t.Helper()
	fixtures.Lock()
	fixtures.made++
	dir := filepath.Join(shared, fmt.Sprintf("night-%d", fixtures.made))
	harness.CopyBinary(t, shared)
	fixtures.Unlock()
	n := &night{t: t, story: s, dir: dir, root: filepath.Join(dir, "root"), state: filepath.Join(dir, "state"), names: map[string]bool{}, isDamaged: map[string]bool{}, typed: map[string]bool{}}
	if s.isOrdinary {
		n.user = harness.Nobody
	}
	harness.Must(t, os.Mkdir(dir, 0o755))
	t.Cleanup(func() { harness.Must(t, os.RemoveAll(dir)) })
	harness.Must(t, os.Mkdir(n.state, 0o700))
	for i, name := range standingFiles {
		path := filepath.Join(n.root, name)
		harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		harness.Must(t, os.WriteFile(path, []byte(strings.Repeat("old "+name+"\n", 1+i*1000)), 0o644))
	}
	harness.Must(t, os.Chmod(filepath.Join(n.root, "bin/tool"), 0o755))
	n.give()
	n.happens()
	return n
}

func (n *night) give() {
	n.t.Helper()
	if n.user != 0 {
		harness.GiveAll(n.t, n.dir, n.user)
	}
}

func (n *night) at(name string) string { return filepath.Join(n.root, name) }

// happens plays the story.
func (n *night) happens() {
	n.t.Helper()
	last := len(n.story.commits) - 1
	for i, c := range n.story.commits {
		if i == last && n.story.whole {
			n.must("spectrum snapshot take -q " + n.root)
			n.whole = n.picture()
		}
		n.before = n.picture()
		id := n.prepare(i, c)
		commit := "spectrum commit -q --preview " + id + " --approve '" + harness.Statement + "'"
		if i == last && n.story.killed > 0 {
			n.kill(n.story.killed, "commit", "-q", "--preview", id, "--approve", harness.Statement)
		} else {
			n.must(commit)
		}
	}
	n.committed = n.picture()
	for _, name := range n.story.edits {
		n.edit(name)
	}
	n.give()
	n.edited = n.picture()
	if n.story.undone > 0 {
		n.kill(n.story.undone, "rollback", "-q", "latest", "--restore-root", n.root)
	}
	for _, d := range n.story.damages {
		n.inflict(d)
	}
}

// prepare makes a preview of a candidate, and returns its ID.
func (n *night) prepare(i int, c changes) string {
	n.t.Helper()
	base, project := filepath.Join(n.dir, fmt.Sprint("base", i)), filepath.Join(n.dir, fmt.Sprint("project", i))
	for _, dir := range []string{base, project} {
		harness.CopyAll(n.t, n.root, dir)
		for _, name := range artifacts {
			harness.Must(n.t, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	for _, name := range slices.Concat(c.creates, c.replaces) {
		path := filepath.Join(project, name)
		harness.Must(n.t, os.MkdirAll(filepath.Dir(path), 0o755))
		harness.Must(n.t, os.WriteFile(path, fmt.Appendf(nil, "commit %d: %s\n", i, name), 0o644))
	}
	for _, name := range c.removes {
		harness.Must(n.t, os.Remove(filepath.Join(project, name)))
	}
	for _, name := range c.modes {
		info, err := os.Stat(filepath.Join(project, name))
		harness.Must(n.t, err)
		harness.Must(n.t, os.Chmod(filepath.Join(project, name), info.Mode()^0o111))
	}
	n.give()
	n.names = map[string]bool{artifacts[0]: true, artifacts[1]: true}
	for _, name := range slices.Concat(c.creates, c.replaces, c.removes, c.modes) {
		for ; name != "."; name = filepath.Dir(name) {
			if _, was := n.before[name]; !was || !n.before[name].Mode.IsDir() {
				n.names[name] = true
			}
		}
	}
	run := n.must("spectrum seal -q --base " + base + " --project-root " + project + " " + project)
	return strings.TrimSpace(n.must("spectrum preview -q --restore-root " + n.root + " " + run))
}

// artifacts are the result artifacts of a commit.
var artifacts = [...]string{"RESTORE_MANIFEST.json", "RESTORE_REPORT.json"}

// edit does what a user does.
func (n *night) edit(name string) {
	n.t.Helper()
	c := n.story.commits[len(n.story.commits)-1]
	write := func(name, text string) {
		if _, err := os.Stat(filepath.Dir(n.at(name))); err == nil {
			harness.Must(n.t, os.WriteFile(n.at(name), []byte(text), 0o600))
		}
	}
	switch name {
	case "own file":
		harness.Must(n.t, os.MkdirAll(n.at("own"), 0o755))
		write("own/notes", "my notes\n")
	case "edits a committed file":
		if _, err := os.Stat(n.at(c.creates[0])); err == nil {
			write(c.creates[0], "edited\n")
		}
	case "file in a new directory":
		write(filepath.Join(filepath.Dir(c.creates[0]), "mine"), "mine\n")
	case "edits another file":
		for _, other := range standingFiles {
			if _, err := os.Stat(n.at(other)); err == nil && !n.names[other] {
				write(other, "edited too\n")
				return
			}
		}
	case "removes a committed file":
		_ = os.Remove(n.at(append(slices.Clone(c.replaces), c.creates...)[0]))
	}
}

// inflict damages a file of the state directory.
func (n *night) inflict(d loss) {
	n.t.Helper()
	found, err := filepath.Glob(filepath.Join(n.state, d.pattern))
	harness.Must(n.t, err)
	found = slices.DeleteFunc(found, func(path string) bool {
		info, err := os.Lstat(path)
		return err != nil || info.Mode().Perm() == 0 || !info.IsDir() && !info.Mode().IsRegular()
	})
	if len(found) == 0 {
		n.tell("no %s", d.pattern)
		return
	}
	path := found[d.nth%len(found)]
	info, err := os.Lstat(path)
	harness.Must(n.t, err)
	switch {
	case d.kind == "removed":
		harness.Must(n.t, os.RemoveAll(path))
	case d.kind == "unreadable":
		harness.Must(n.t, os.Chmod(path, 0))
	case info.IsDir() != (d.kind == "directory"): // it is replaced by an empty directory
		harness.Must(n.t, os.RemoveAll(path))
		harness.Must(n.t, os.Mkdir(path, 0o700))
	case info.IsDir():
		harness.Must(n.t, os.RemoveAll(path))
		harness.Must(n.t, os.WriteFile(path, nil, 0o600))
	default:
		raw := []byte(harness.ReadFile(n.t, path))
		switch {
		case d.kind == "cut":
			raw = raw[:len(raw)-min(7, len(raw))]
		case d.kind == "emptied":
			raw = nil
		case len(raw) > 0:
			raw[d.nth*len(raw)/50] ^= 1
		}
		harness.Must(n.t, os.Remove(path))
		harness.Must(n.t, os.WriteFile(path, raw, info.Mode().Perm()))
	}
	if n.user != 0 && d.kind != "removed" {
		harness.Must(n.t, os.Lchown(path, n.user, n.user))
	}
	name := strings.TrimPrefix(path, n.state+"/")
	n.isDamaged[strings.Split(name, "/")[0]] = true
	n.tell("%s: %s", d.kind, name)
}

// kill kills a command of the program before a changing call in the root or the state directory.
func (n *night) kill(call int, args ...string) {
	n.t.Helper()
	argv := append([]string{filepath.Join(shared, "spectrum"), "--state-dir", n.state}, args...)
	if n.user != 0 {
		argv = append([]string{"setpriv", fmt.Sprint("--reuid=", n.user), fmt.Sprint("--regid=", n.user), "--clear-groups"}, argv...)
	}
	r, err := sysfault.Run(n.t.Context(), *harness.Killing(call, func(c sysfault.Call) bool {
		return harness.Changing(c) && (harness.Inside(c.Path, n.root) || harness.Inside(c.Path, n.state))
	}), argv...)
	harness.Must(n.t, err)
	at := "the end"
	if r.Status == 137 && len(r.Trace) > 0 {
		c := r.Trace[len(r.Trace)-1]
		at = fmt.Sprintf("%s %s %s", c.Name, c.Path, c.To)
	}
	n.tell("%s killed at call %d: %s (status %d)", args[0], call, strings.ReplaceAll(at, n.dir+"/", ""), r.Status)
}

func (n *night) tell(format string, args ...any) {
	n.told = append(n.told, fmt.Sprintf(format, args...))
}

// picture is what is in the root, without what is of an attempt. Inodes are not compared: a file of a
// snapshot is restored with another one.
func (n *night) picture() harness.Tree {
	n.t.Helper()
	seen := harness.MustTake(n.t, n.root)
	maps.DeleteFunc(seen, func(name string, _ harness.Thing) bool { return strings.HasPrefix(name, ".spectrum06_") })
	for name, thing := range seen {
		thing.Inode, thing.Links = 0, 0
		seen[name] = thing
	}
	return seen
}

// now identifies what is in the root and in the state directory.
func (n *night) now() string {
	n.t.Helper()
	var text strings.Builder
	for _, dir := range []string{n.root, n.state} {
		seen := harness.MustTake(n.t, dir)
		for _, name := range slices.Sorted(maps.Keys(seen)) {
			thing := seen[name]
			thing.Modified, thing.Inode = 0, 0
			fmt.Fprintln(&text, name, thing)
		}
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(text.String())))
}

// TestNights: a person who comes after a night in which something went wrong gets back by typing only what
// the program prints, or reads plainly what is lost.
func TestNights(t *testing.T) {
	for i := range sample.Of(3, 40, 1000) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			n := newNight(t, randomStory(sample.Rand(t)))
			n.follow()
			t.Logf("the story: %+v\n%s", n.story, strings.Join(n.told, "\n"))
		})
	}
}
