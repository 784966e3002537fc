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

// An exporting is a snapshot that is to be exported, and directories of others around it.
type exporting struct {
	*harness.Project
	id      string
	hostile string // whose owner does as he likes
	aside   string // what he has to put in its place: a link to victim, or a directory
	victim  string
	before  harness.Tree // of victim
	uid     int          // who exports
}

// exportName is the directory that is exported to, in the hostile one.
const exportName = "made"

func newExporting(t *testing.T, uid int) *exporting {
	t.Helper()
	top := filepath.Join(open(t), "top")
	e := &exporting{Project: &harness.Project{Dir: top, State: filepath.Join(filepath.Dir(top), "state")}, uid: uid}
	harness.Must(t, os.Mkdir(e.State, 0o700))
	e.hostile, e.aside, e.victim = filepath.Join(top, "hostile"), filepath.Join(top, "aside"), filepath.Join(top, "victim")
	root := filepath.Join(top, "root")
	for _, name := range []string{root + "/a", root + "/sub/b", e.victim + "/" + exportName + "/precious", e.victim + "/sub/precious"} {
		harness.Must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		harness.Must(t, os.WriteFile(name, []byte(filepath.Base(name)), 0o644))
	}
	give(t, e.Project, uid)
	e.id = strings.TrimPrefix(strings.TrimSpace(e.Must(t, "snapshot", "take", root).Stdout), "OK ")
	e.Must(t, "snapshot", "export", e.id, filepath.Join(top, "first")) // makes the host's key
	e.before = e.look(t)
	return e
}

func (e *exporting) look(t *testing.T) harness.Tree {
	t.Helper()
	tree := harness.MustTake(t, e.victim)
	return tree
}

func (e *exporting) args() []string {
	return []string{"snapshot", "export", e.id, filepath.Join(e.hostile, exportName)}
}

// afresh makes the hostile directory empty.
func (e *exporting) afresh(t *testing.T, link string) {
	t.Helper()
	harness.Must(t, os.RemoveAll(e.hostile))
	harness.Must(t, os.RemoveAll(e.aside))
	harness.Must(t, os.Mkdir(e.hostile, 0o777))
	harness.Must(t, os.Symlink(link, e.aside))
	own(t, e.uid, e.hostile)
	harness.Must(t, os.Lchown(e.aside, e.uid, e.uid))
}

// inHostile matches the calls that look up or change a name in the hostile directory.
func (e *exporting) inHostile(c sysfault.Call) bool {
	switch c.Name {
	case "openat", "openat2", "mkdirat", "renameat", "renameat2", "linkat", "symlinkat", "unlinkat", "newfstatat", "statx", "fchmodat", "utimensat":
		return strings.HasPrefix(c.Path, e.hostile) || strings.HasPrefix(c.To, e.hostile)
	}
	return false
}

// TestExportInHostileDirectory: the owner of the directory that an export is made in
// exchanges it, or what is made in it, with links to a tree elsewhere, at any call, and
// the export fails or does not. That tree is as it was.
func TestExportInHostileDirectory(t *testing.T) { victims(t, exportInHostileDirectory) }

func exportInHostileDirectory(t *testing.T, uid int) {
	e := newExporting(t, uid)
	exchange := func(one, two string) bool {
		return unix.Renameat2(unix.AT_FDCWD, one, unix.AT_FDCWD, two, unix.RENAME_EXCHANGE) == nil
	}
	attacks := []struct {
		name string
		link string
		act  func() bool
	}{
		{"the directory above", e.victim, func() bool { return exchange(e.hostile, e.aside) }},
		{"what is made", filepath.Join(e.victim, exportName), func() bool {
			names, _ := filepath.Glob(e.hostile + "/*")
			hidden, _ := filepath.Glob(e.hostile + "/.*")
			for _, name := range append(names, hidden...) {
				if b := filepath.Base(name); b != "." && b != ".." {
					return exchange(name, e.aside)
				}
			}
			return false
		}},
	}
	for _, attack := range attacks {
		for _, errno := range []syscall.Errno{0, syscall.EIO} {
			t.Run(fmt.Sprint(attack.name, "/", int(errno)), func(t *testing.T) {
				s, acted := sample.Thin(t, 23, 3), 0
				for i := 0; ; i++ {
					n, seen, did := s.At(i), 0, false
					e.afresh(t, attack.link)
					plan := sysfault.Plan{N: 1, Onward: true, Match: e.inHostile, Before: func(sysfault.Call) {
						if seen++; seen >= n && !did {
							did = attack.act()
						}
					}}
					if errno != 0 { // it fails some calls later
						inner := plan.Before
						plan = sysfault.Plan{N: n + 3, Errno: errno, Match: func(c sysfault.Call) bool {
							if !e.inHostile(c) {
								return false
							}
							inner(c)
							return true
						}}
					}
					r := e.Run(t, &plan, e.args()...)
					if diff := harness.Diff(e.before, e.look(t)); r.Hung || diff != "" {
						t.Fatalf("acted before call %d, %s: %v", n, diff, r)
					}
					if seen < n {
						break
					}
					if did {
						acted++
					}
				}
				if acted == 0 {
					t.Error("nothing was ever exchanged")
				}
			})
		}
	}
}

// TestExportTwice: a second export into the same directory, begun and ended while the
// first one is at any of its calls: what one of them called complete stays complete.
func TestExportTwice(t *testing.T) { victims(t, exportTwice) }

func exportTwice(t *testing.T, uid int) {
	e := newExporting(t, uid)
	s, trials := sample.Thin(t, 9, 2), 0
	for i := 0; ; i++ {
		n, at := s.At(i), 0
		e.afresh(t, e.victim)
		var second harness.Reply
		plan := sysfault.Plan{N: n, Match: e.inHostile, Before: func(c sysfault.Call) {
			at = c.N
			second = e.Run(t, nil, e.args()...)
		}}
		first := e.Run(t, &plan, e.args()...)
		if at == 0 {
			break
		}
		trials++
		if (first.Status == 0) == (second.Status == 0) {
			t.Fatalf("before call %d: %v\n%v", at, first, second)
		}
		run := strings.TrimSpace(first.Stdout + second.Stdout)
		if v := e.Run(t, nil, "verify", run); v.Status != 0 {
			t.Fatalf("before call %d: %v\n%v\n%v", at, first, second, v)
		}
		if names, err := os.ReadDir(e.hostile); err != nil || len(names) != 1 {
			t.Fatalf("before call %d: %v, %v is left", at, err, names)
		}
	}
	if trials == 0 {
		t.Error("no call was found")
	}
}
