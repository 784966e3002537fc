package undo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
)

// A broken is a state directory in which something is damaged, and the undo operation that is
// tried.
type broken struct {
	name     string
	inflict  func(t *testing.T, u user, state, root string)
	emergent bool // the emergency rollback has to work in the end; else the command of the hint does
}

func breakages() []broken {
	lose := func(t *testing.T, state string) {
		t.Helper()
		all, err := filepath.Glob(filepath.Join(state, "snapshots/objects/*/*"))
		harness.Must(t, err)
		for _, object := range all {
			if harness.ReadFile(t, object) == "precious" {
				harness.Must(t, os.Remove(object))
			}
		}
	}
	return []broken{
		{"content lost, in the root", func(t *testing.T, u user, state, root string) {
			lose(t, state)
			u.write(t, filepath.Join(root, "elsewhere"), "precious")
		}, true},
		{"content lost", func(t *testing.T, _ user, state, _ string) { lose(t, state) }, false},
		{"log unreadable", func(t *testing.T, _ user, state, _ string) {
			harness.Must(t, os.Chmod(filepath.Join(state, "audit.log"), 0))
		}, true},
		{"log of another user", func(t *testing.T, _ user, state, _ string) {
			harness.Must(t, os.Chown(filepath.Join(state, "audit.log"), 4711, 4711))
		}, true},
		{"log a directory", func(t *testing.T, u user, state, _ string) {
			harness.Must(t, os.Remove(filepath.Join(state, "audit.log")))
			harness.Must(t, os.Mkdir(filepath.Join(state, "audit.log"), 0o700))
			harness.Must(t, os.Chown(filepath.Join(state, "audit.log"), u.id, u.id))
		}, true},
		{"snapshots unreadable", func(t *testing.T, _ user, state, _ string) {
			harness.Must(t, os.Chmod(filepath.Join(state, "snapshots"), 0))
		}, true},
		{"savepoints of another user", func(t *testing.T, _ user, state, _ string) {
			harness.Must(t, os.Chown(filepath.Join(state, "savepoints"), 4711, 4711))
		}, true},
		{"no snapshot at all", func(t *testing.T, _ user, state, _ string) {
			harness.Must(t, os.RemoveAll(filepath.Join(state, "snapshots/roots")))
		}, false},
	}
}

// shellIn finds a command of the shell in a hint.
var shellIn = regexp.MustCompile(`(chmod|chown|mv) [^;:,]*`)

// TestHintsWork: whatever is damaged beside an undo operation, the rollback is done, or every
// command that its hints name does what it says when it is typed.
func TestHintsWork(t *testing.T) {
	onEveryVolume(t, func(t *testing.T, u user, root string) {
		dir := filepath.Dir(root)
		state, good := filepath.Join(dir, "state"), filepath.Join(filepath.Dir(dir), "good")
		u.write(t, filepath.Join(root, "f"), "good")
		u.write(t, filepath.Join(root, "d/g"), "precious")
		u.must(t, nil, "snapshot", "take", root)
		harness.Must(t, os.Mkdir(good, 0o700))
		harness.CopyAll(t, dir, good)
		for _, b := range breakages() {
			fresh := func() {
				for _, name := range []string{"root", "state"} {
					empty(t, filepath.Join(dir, name)) // the root stays the same directory
					harness.CopyAll(t, filepath.Join(good, name), filepath.Join(dir, name))
					harness.Must(t, os.Chown(filepath.Join(dir, name), u.id, u.id))
				}
				harness.Must(t, os.Chmod(state, 0o700))
				u.write(t, filepath.Join(root, "f"), "damaged")
				harness.Must(t, os.Remove(filepath.Join(root, "d/g")))
				b.inflict(t, u, state, root)
			}
			fresh()
			r := u.run(t, "rollback", "--emergency", root)
			if r.Status == 0 {
				continue
			}
			tried := 0
			for _, next := range steps(r.Stderr) {
				tried++
				fresh()
				if next[0] == "spectrum" {
					if again := u.run(t, next[1:]...); again.Status != 0 {
						t.Errorf("%s: %v\nafter\n%v", b.name, again, r)
					}
				} else if out, err := exec.Command("sh", "-c", strings.Join(next, " ")).CombinedOutput(); err != nil { // as root: only the owner is another one
					t.Errorf("%s: %q: %v: %s", b.name, next, err, out)
				}
				if !b.emergent {
					continue
				}
				if again := u.run(t, "rollback", "--emergency", root); again.Status != 0 {
					t.Errorf("%s: after %q: %v", b.name, next, again)
				} else if is := harness.ReadFile(t, filepath.Join(root, "f")); is != "good" {
					t.Errorf("%s: after %q the file is %q", b.name, next, is)
				}
			}
			if tried == 0 {
				t.Errorf("%s: no next step: %v", b.name, r)
			}
		}
	})
}

// steps are the commands that hints name, word for word.
func steps(stderr string) (all [][]string) {
	for line := range strings.Lines(stateOption.ReplaceAllString(stderr, "")) {
		hint, is := strings.CutPrefix(line, "hint: ")
		if !is {
			continue
		}
		for _, found := range commandIn.FindAllStringSubmatch(hint, -1) {
			all = append(all, strings.Fields("spectrum "+strings.ReplaceAll(found[1], "'", "")))
		}
		for _, found := range shellIn.FindAllString(hint, -1) {
			all = append(all, strings.Fields(found))
		}
	}
	return all
}
