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

// makers are the commands that make something in a directory, or mount on one, that the
// operator names.
func (n *neighbourhood) makers(in string) map[string][]string {
	return map[string][]string{
		"mount":   {"mount", "--daemon", n.run, filepath.Join(in, "empty")},
		"export":  {"snapshot", "export", n.whole, filepath.Join(in, "exported")},
		"demo":    {"demo", filepath.Join(in, "demo")},
		"keygen":  {"keygen", "--out", filepath.Join(in, "key.pem")},
		"seal":    {"seal", "--key", n.top + "/kept/key.pem", "--run-dir", filepath.Join(in, "run"), "--project-root", n.Dir, filepath.Join(n.Dir, "out")},
		"preview": {"preview", "--html", filepath.Join(in, "page.html"), "--restore-root", n.meant, n.run},
	}
}

// TestLinkOfAnotherUser: a path that leads through another user's link is followed by no
// command that makes something there; the error names the link, its owner and the real path,
// which is accepted. Links and directories of the operator are followed, in /tmp too.
func TestLinkOfAnotherUser(t *testing.T) {
	beside(t, func(t *testing.T, n *neighbourhood) {
		place, sticky := filepath.Join(n.top, "place"), filepath.Join(n.top, "sticky")
		for _, dir := range []string{place, place + "/empty", sticky, sticky + "/own", sticky + "/own/empty"} {
			harness.Must(t, os.Mkdir(dir, 0o755))
			own(t, n.operator, dir)
		}
		harness.Must(t, os.Chmod(sticky, 0o777|os.ModeSticky))
		harness.Must(t, os.Chown(sticky, 0, 0))
		n.becomeTheirs(n.theirs)
		before := n.take(place)
		n.attack("ln -s %s %s/to && ln -s %s %s/to", place, n.theirs, place, sticky)
		for _, link := range []string{n.theirs + "/to", sticky + "/to"} {
			for name, args := range n.makers(link) {
				r := n.spectrum(args...)
				if r.Status != 1 || !strings.Contains(r.Stderr, link+`" is a symbolic link of user 4241`) || !strings.Contains(r.Stderr, place) {
					t.Errorf("%s: %v", name, r)
				}
			}
			direct := filepath.Join(filepath.Dir(link), "direct")
			n.attack("ln -s %s/empty %s", place, direct)
			if r := n.spectrum("mount", "--daemon", n.run, direct); r.Status != 1 || !strings.Contains(r.Stderr, direct+`" is a symbolic link of user 4241`) {
				t.Error(r)
			}
		}
		if n.operator == 0 {
			n.must("mount", "--daemon", n.run, place+"/empty")
		}
		for _, view := range []string{n.theirs + "/to/empty", n.theirs + "/to/empty/", n.theirs + "/direct", sticky + "/direct", sticky + "/to/none/../empty"} {
			r := n.spectrum("umount", view)
			if r.Status != 1 || !strings.Contains(r.Stderr, `" is a symbolic link of user 4241`) || !strings.Contains(r.Stderr, "hint: links of other users are not followed; if "+place) {
				t.Error(r)
			}
		}
		if n.operator == 0 {
			n.must("umount", place+"/empty")
		}
		if diff := harness.Diff(before, n.take(place)); diff != "" {
			t.Fatal(diff)
		}
		mine := filepath.Join(sticky, "mine")
		harness.Must(t, os.Symlink(place, mine))
		harness.Must(t, os.Lchown(mine, n.operator, n.operator))
		for _, in := range []string{mine, sticky + "/own"} {
			for name, args := range n.makers(in) {
				if name != "seal" && (name != "mount" || n.operator == 0) { // a run directory is in the project; fusermount3 needs a user with a name
					n.must(args...)
				}
			}
			if n.operator == 0 {
				n.must("umount", filepath.Join(in, "empty"))
			}
		}
	})
}

// TestLinkComesMeanwhile: another user puts a link in the place of a directory of hers while
// a command that was given that directory is at any of its calls: nothing is made, and
// nothing mounted, where the link leads.
func TestLinkComesMeanwhile(t *testing.T) {
	needRoot(t)
	n := newNeighbourhood(t, 0)
	place, dir, link := filepath.Join(n.Dir, "place"), n.theirs+"/dir", n.theirs+"/to"
	for _, dir := range []string{place, place + "/empty", dir, dir + "/empty"} {
		harness.Must(t, os.Mkdir(dir, 0o755))
	}
	n.becomeTheirs(n.theirs)
	n.becomeTheirs(dir)
	n.attack("ln -s %s %s", place, link)
	before := n.take(place)
	for name, args := range n.makers(dir) {
		if name == "seal" || name == "mount" { // the one is in the project, the other a process of its own: TestMountThroughNoLink
			continue
		}
		few := map[string]int{"keygen": 3, "preview": 3, "export": 23, "demo": 61}[name] // by how many calls each has
		s, acted := sample.Thin(t, few, 1+few/10), 0
		for i := 0; ; i++ {
			nth, seen, did := s.At(i), 0, false
			r := n.Run(t, &sysfault.Plan{N: 1, Onward: true, Match: func(c sysfault.Call) bool {
				return strings.HasPrefix(c.Path, n.theirs) || strings.HasPrefix(c.To, n.theirs)
			}, Before: func(sysfault.Call) {
				if seen++; seen == nth {
					did = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) == nil
				}
			}}, args...)
			if r.Hung {
				t.Fatal(r)
			}
			if diff := harness.Diff(before, n.take(place)); diff != "" {
				t.Fatalf("%s, acted before call %d, %s: %v", name, nth, diff, r)
			}
			if !did {
				break
			}
			acted++
			harness.Must(t, unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE))
			harness.Must(t, os.RemoveAll(dir))
			harness.Must(t, os.MkdirAll(dir+"/empty", 0o755))
			n.becomeTheirs(dir)
		}
		if acted == 0 {
			t.Errorf("%s: nothing was ever exchanged", name)
		}
	}
}
