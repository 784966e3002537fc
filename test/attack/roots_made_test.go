package attack

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// TestMadeInHostileDirectory: the owner of the directory in which seal makes a run
// directory with those above it, or demo its project, exchanges it with a link to a tree
// elsewhere once it was opened; and a call fails later, or none. That tree is as it was.
func TestMadeInHostileDirectory(t *testing.T) { victims(t, madeInHostileDirectory) }

func madeInHostileDirectory(t *testing.T, uid int) {
	e := newExporting(t, uid)
	key := filepath.Join(e.Dir, "key.pem")
	e.Must(t, "keygen", "--out", key)
	place := filepath.Join(e.hostile, exportName)
	for name, args := range map[string][]string{
		"seal": {"seal", "--project-root", e.Dir, "--key", key, "--run-dir", filepath.Join(place, "x/y/run"), filepath.Join(e.Dir, "root/a")},
		"demo": {"demo", place},
	} {
		for _, errno := range []syscall.Errno{0, syscall.EIO} {
			t.Run(fmt.Sprint(name, "/", int(errno)), func(t *testing.T) {
				acted := 0
				for s := sample.Thin(t, 29, 3); acted == 0; s.First /= 2 { // a short command: an earlier call
					if s.First == 0 {
						t.Fatal("nothing was ever exchanged")
					}
					acted = e.made(t, s, errno, args)
				}
			})
		}
	}
}

// made runs a command for each call of a stride, before which the hostile directory is
// exchanged once something was made there. It returns how often it was.
func (e *exporting) made(t *testing.T, s sample.Stride, errno syscall.Errno, args []string) (acted int) {
	t.Helper()
	for i := 0; ; i++ {
		n, opened, seen, did := s.At(i), false, 0, false
		e.afresh(t, e.victim)
		match := func(c sysfault.Call) bool {
			// when something is made there it is open, or was looked up for nothing
			opened = opened || c.Name == "mkdirat" && strings.HasPrefix(c.Path, e.hostile)
			if !opened || !(e.inHostile(c) || strings.HasPrefix(c.Path, e.victim)) {
				return false
			}
			if seen++; seen >= n && !did {
				did = unix.Renameat2(unix.AT_FDCWD, e.hostile, unix.AT_FDCWD, e.aside, unix.RENAME_EXCHANGE) == nil
			}
			return true
		}
		r := e.Run(t, &sysfault.Plan{N: n + 3, Errno: errno, Match: match}, args...)
		if diff := harness.Diff(e.before, e.look(t)); r.Hung || diff != "" {
			t.Fatalf("acted before call %d, %s: %v", n, diff, r)
		}
		if seen < n {
			return acted
		}
		if did {
			acted++
		}
	}
}

// TestBoxIsImitated: the owner of the directory in which an export or a demo is made puts
// directories with the same names in the place of those that are made there. Nothing is
// written in his, and what is complete lacks nothing.
func TestBoxIsImitated(t *testing.T) { victims(t, boxIsImitated) }

func boxIsImitated(t *testing.T, uid int) {
	e := newExporting(t, uid)
	place := filepath.Join(e.hostile, exportName)
	for name, args := range map[string][]string{"export": e.args(), "demo": {"demo", place}} {
		t.Run(name, func(t *testing.T) {
			acted := 0
			for s, i := sample.Thin(t, 13, 2), 0; ; i++ {
				n, seen := s.At(i), 0
				var mine harness.Tree
				e.afresh(t, e.victim)
				plan := &sysfault.Plan{N: 1, Onward: true, Match: e.inHostile, Before: func(sysfault.Call) {
					if seen++; seen >= n && mine == nil {
						mine = e.imitate(t)
					}
				}}
				r := e.Run(t, plan, args...)
				if mine != nil {
					acted++
					if diff := harness.Diff(mine, harness.MustTake(t, e.hostile)); diff != "" {
						t.Fatalf("imitated before call %d: %s: %v", n, diff, r)
					}
					if key := filepath.Join(e.aside, exportName, "key.pem"); r.Status == 0 && name == "demo" {
						if _, err := os.Stat(key); err != nil {
							t.Fatalf("imitated before call %d: %v: %v", n, err, r)
						}
					}
				}
				if seen < n {
					break
				}
			}
			if acted == 0 {
				t.Error("nothing was ever imitated")
			}
		})
	}
}

// imitate exchanges the hostile directory with one in which there are directories of the same
// names, and returns what that holds; nil while nothing is made.
func (e *exporting) imitate(t *testing.T) harness.Tree {
	t.Helper()
	harness.Must(t, os.Remove(e.aside))
	made := false
	harness.Must(t, filepath.WalkDir(e.hostile, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return nil //nolint:nilerr // it is gone by now
		}
		rel, err := filepath.Rel(e.hostile, path)
		if err != nil {
			return err
		}
		made = made || rel != "."
		return os.Mkdir(filepath.Join(e.aside, rel), 0o777)
	}))
	own(t, e.uid, e.aside)
	if !made {
		harness.Must(t, os.RemoveAll(e.aside))
		harness.Must(t, os.Symlink(e.victim, e.aside))
		return nil
	}
	harness.Must(t, unix.Renameat2(unix.AT_FDCWD, e.hostile, unix.AT_FDCWD, e.aside, unix.RENAME_EXCHANGE))
	return harness.MustTake(t, e.hostile)
}
