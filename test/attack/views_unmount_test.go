package attack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spectrumfs/spectrum/test/harness"
	"github.com/spectrumfs/spectrum/test/sample"
	"github.com/spectrumfs/spectrum/test/sysfault"
	"golang.org/x/sys/unix"
)

// swap is a directory of another user with two of his in it, "mine" and "other". Both
// have a directory "view". On other/view root has mounted something that no command is
// given: it must stay there, whatever is exchanged for what.
type swap struct {
	t            *testing.T
	mine, other  string
	view, target string // mine/view, other/view
	swapped      bool
}

func newSwap(t *testing.T) *swap {
	t.Helper()
	dir := open(t)
	s := &swap{t: t, mine: filepath.Join(dir, "mine"), other: filepath.Join(dir, "other")}
	s.view, s.target = filepath.Join(s.mine, "view"), filepath.Join(s.other, "view")
	for _, path := range []string{s.view, s.target} {
		harness.Must(t, os.MkdirAll(path, 0o755))
		harness.Must(t, os.Chown(path, harness.Nobody, harness.Nobody))
	}
	harness.Must(t, unix.Mount("precious", s.target, "tmpfs", 0, ""))
	return s
}

func (s *swap) exchange() {
	harness.Must(s.t, unix.Renameat2(unix.AT_FDCWD, s.mine, unix.AT_FDCWD, s.other, unix.RENAME_EXCHANGE))
	s.swapped = !s.swapped
}

func (s *swap) back() {
	if s.swapped {
		s.exchange()
	}
}

// check requires the other mount where it was, and the view gone or not.
func (s *swap) check(what string, gone bool) {
	s.t.Helper()
	s.back()
	if mountsOn(s.t, s.target) != 1 {
		s.t.Errorf("%s: it unmounted another mount", what)
	}
	if (mountsOn(s.t, s.view) == 0) != gone {
		s.t.Errorf("%s: the view is gone: %v, want %v", what, !gone, gone)
	}
}

// TestUmountTakesWhatItChecked: the owner of a parent directory exchanges it before every
// call of "spectrum umount" that looks at it or at the mount table. The other mount
// stays; and the view goes, if the command says so.
func TestUmountTakesWhatItChecked(t *testing.T) { victims(t, umountTakesWhatItChecked) }

func umountTakesWhatItChecked(t *testing.T, uid int) {
	top := open(t)
	p := &harness.Project{Dir: filepath.Join(top, "project"), State: filepath.Join(top, "state")}
	harness.Must(t, os.Mkdir(p.State, 0o700))
	give(t, p, uid)
	by := uint32(alice)
	if uid != 0 {
		by = uint32(uid) // he ends none but his own
	}
	unmounted, tried, more := 0, sample.Every(t, 4), true
	for i := 0; more; i++ {
		n, s := tried.At(i), newSwap(t)
		serveAs(t, by, s.view, answers{})
		seen := 0
		plan := sysfault.Plan{N: 1, Onward: true, Match: func(c sysfault.Call) bool {
			return harness.Inside(c.Path, filepath.Dir(s.mine)) || strings.Contains(c.Path, "mountinfo") || strings.Contains(c.Path, "fdinfo")
		}, Before: func(sysfault.Call) {
			if seen++; seen == n {
				s.exchange()
			}
		}}
		r := p.Run(t, &plan, "umount", s.view)
		more = seen >= n
		if r.Status != 0 && r.Status != 1 && r.Status != 74 {
			t.Errorf("exchanged before call %d: %v", n, r)
		}
		s.check("exchanged", r.Status == 0)
		if r.Status == 0 && more {
			unmounted++
		}
		takeAway(t, filepath.Dir(s.mine))
	}
	if unmounted == 0 {
		t.Error("no exchange came after the look at the path")
	}
}

// TestServerTakesItsOwnMount: a view of root is ended, by a signal, by a rollback, and by
// the end of its connection, after the parent of its mount point was exchanged.
func TestServerTakesItsOwnMount(t *testing.T) { victims(t, serverTakesItsOwnMount) }

func serverTakesItsOwnMount(t *testing.T, uid int) {
	for name, end := range map[string]func(p *harness.Project, v *harness.View, commit string){
		"signal":   func(_ *harness.Project, v *harness.View, _ string) { v.Signal(t, os.Interrupt); v.Wait(t) },
		"rollback": func(p *harness.Project, v *harness.View, commit string) { p.Must(t, "rollback", commit); v.Wait(t) },
	} {
		t.Run(name, func(t *testing.T) {
			p, _, commit := committed(t, uid)
			s := newSwap(t)
			if uid != 0 { // fusermount3 requires the user to own the mount point
				own(t, uid, s.view)
			}
			v := p.MountOn(t, s.view, harness.Mounting{})
			s.exchange()
			end(p, v, commit)
			s.check(name, true)
		})
	}
}
